"""Decides which properties of a catalog may be shown: those that are known to hold no secret, and no others."""

import re
from collections.abc import Mapping

from icefloe.errors import without_credentials

HIDDEN = "***"
"""What is shown in place of a value that may be secret."""

_SHOWN = re.compile(
    r"""type | uri | warehouse | prefix | scope | audience | resource | unique-table-location | init_catalog_tables | echo
      | pool_pre_ping | schema_version | namespace-separator | scan-planning-mode | snapshot-loading-mode | view-endpoints-supported
      | rest\.auth\.type | rest\.sigv4-enabled | rest\.signing-(?:name|region) | rest-(?:page-size|metrics-reporting-enabled)
      | oauth2-server-uri | client\.region
      | s3\.(?:endpoint|region|path-style-access|force-virtual-addressing|anonymous|signer|remote-signing-enabled)
      | gcs\.(?:project-id|service\.host|endpoint) | adls\.(?:account-name|endpoint|account-host)
      | metrics-reporter-impl | openlineage\.(?:job-name|job-namespace|run|transport\.(?:type|url|endpoint)) | .*-timeout(?:-ms)? | .*max-retries
      | table-(?:default|override)\..+""",
    re.VERBOSE,
)


def redacted(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties as they may be shown, in order of their keys."""
    return {key: redacted_value(key, value) for key, value in sorted(properties.items())}


def redacted_value(key: str, value: str) -> str:
    """One value as it may be shown; users and passwords in locations are struck out, too."""
    return without_credentials(value) if is_shown(key) else HIDDEN


def is_shown(key: str) -> bool:
    """Whether a property is known to hold no secret."""
    return _SHOWN.fullmatch(key) is not None
