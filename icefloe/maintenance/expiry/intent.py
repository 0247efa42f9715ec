"""A file that records what an expiry is about to do, so that the next one can finish what a killed one left.

The file exists from before the commit until the last file is deleted, in its own folder, so that one request lists it. Nothing
is cleaned up without it: snapshots may have been expired with their files kept on purpose.
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

from icefloe import errors, metadata as md
from icefloe.commit import delete_quietly
from icefloe.storage import Storage

LOG = logging.getLogger(__name__)

_FOLDER, _ENDING = "expiring", ".expiry.json"
_LOST_AFTER_MS = 86_400_000
"""Time after which an announced commit is considered dead: one day."""


@dataclass(frozen=True, slots=True)
class ExpiryIntent:
    """An expiry that may be running, or was abandoned."""

    location: str
    metadata_location: str
    """The metadata file that still contains the snapshots."""
    snapshot_ids: tuple[int, ...]
    with_content: bool
    written_ms: int
    not_before_ms: int = 0
    """Earliest time to delete files."""

    def write(self, storage: Storage) -> None:
        """Write the intent, replacing an earlier version."""
        document = {
            "metadata-file": self.metadata_location,
            "snapshot-ids": list(self.snapshot_ids),
            "with-content": self.with_content,
            "written-ms": self.written_ms,
            "not-before-ms": self.not_before_ms,
        }
        storage.write(self.location, json.dumps(document).encode())

    def remove(self, storage: Storage) -> None:
        """Remove the intent after the expiry is finished or did not happen."""
        delete_quietly(storage, [self.location], "intents of a finished expiry")

    def before(self, table: md.TableMetadata, storage: Storage) -> md.TableMetadata | None:
        """Return the metadata with the snapshots; None if it can no longer be determined."""
        try:
            metadata = md.decode_metadata_file(storage.read(self.metadata_location), storage.limits)
            metadata = metadata.located(self.metadata_location)
        except (errors.LocationNotFoundError, errors.InvalidInputError) as error:
            LOG.warning("an expiry cannot be finished; its files are left for orphan file removal: %s", error)
            return None
        if metadata.table_uuid != table.table_uuid:
            return None
        return metadata

    def is_lost(self, now_ms: int) -> bool:
        """Whether the intent is too old to be in progress."""
        return now_ms - self.written_ms > _LOST_AFTER_MS


def new_location(metadata: md.TableMetadata) -> str:
    """Return the location of a new intent."""
    return f"{_folder(metadata)}/{uuid4()}{_ENDING}"


def intents_of(metadata: md.TableMetadata, storage: Storage) -> Iterator[ExpiryIntent]:
    """Yield the pending intents; files that cannot be read are skipped."""
    for file in storage.list_prefix(_folder(metadata)):
        if not file.location.endswith(_ENDING):
            continue
        try:
            document = json.loads(storage.read(file.location))
            yield ExpiryIntent(
                file.location,
                str(document["metadata-file"]),
                tuple(map(int, document["snapshot-ids"])),
                bool(document["with-content"]),
                int(document["written-ms"]),
                int(document["not-before-ms"]),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            LOG.warning("%s is not a readable expiry intent: %s", file.location, error)


def _folder(metadata: md.TableMetadata) -> str:
    return f"{md.metadata_folder(metadata)}/{_FOLDER}"
