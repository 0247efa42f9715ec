"""How files are deleted that nothing needs any more: in groups, and never in a way that changes what was decided before."""

import logging
from collections.abc import Iterable

from icefloe.storage import Storage

LOG = logging.getLogger(__name__)


def delete_quietly(storage: Storage, locations: Iterable[str], why: str) -> frozenset[str]:
    """Delete files; a failure is noted in the log, and changes nothing. Which files stayed behind."""
    asked = tuple(locations)
    try:
        left = list(storage.delete(asked))
    except Exception as error:  # noqa: BLE001 - what was decided before stands, whatever happens to leftovers
        LOG.warning("files that are %s stay behind: %s", why, error)
        return frozenset(asked)
    for failure in left:
        LOG.warning("a file that is %s stays behind: %s", why, failure.error)
    return frozenset(failure.location for failure in left)
