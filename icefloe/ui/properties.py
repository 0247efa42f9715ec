"""Which properties of tables, views and namespaces are shown: those known to hold no secrets."""

import re
from collections.abc import Mapping

from icefloe.catalog import HIDDEN
from icefloe.errors import without_credentials

_SHOWN = re.compile(
    r"""(?: write | read | commit | history | gc | maintenance | schema | format | compatibility | engine | icefloe | identifier )
        [.\-] [\w.\-]+
      | owner | owner-type | comment | description | title | provider | location | created-at | creator | format-version
      | current-(?:schema|snapshot-id|snapshot-summary|snapshot-timestamp-ms) | default-(?:partition-spec|sort-order)
      | uuid | snapshot-count | encryption\.data-key-length | sort-order | transient_lastDdlTime | numRows | totalSize""",
    re.VERBOSE,
)


def shown_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties sorted by key, with the values of unknown keys masked."""
    return {
        key: without_credentials(value) if _SHOWN.fullmatch(key) else HIDDEN
        for key, value in sorted(properties.items())
    }
