"""What an expiry is about to do, in a file of its own: so that the next one finishes what a killed one has left.

The file is there from before the commit until the last file is deleted, in a folder of its own, which one request lists. Without
it nothing is finished: somebody may have dropped snapshots and kept their files on purpose.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

from icefloe import errors, metadata as md
from icefloe.maintenance.files.ownership import LOG, delete_quietly
from icefloe.storage import Storage

_FOLDER, _ENDING = "expiring", ".expiry.json"
_LOST_AFTER_MS = 86_400_000
"""A commit that has not happened a day after it was announced never will."""


@dataclass(frozen=True, slots=True)
class ExpiryIntent:
    """An expiry that may be under way, or was given up."""

    location: str
    metadata_location: str
    """The metadata file that still has the snapshots."""
    snapshot_ids: tuple[int, ...]
    with_content: bool
    written_ms: int
    not_before_ms: int = 0
    """When files may be deleted."""

    def write(self, storage: Storage) -> None:
        """Announce it, or say it anew."""
        document = {
            "metadata-file": self.metadata_location,
            "snapshot-ids": list(self.snapshot_ids),
            "with-content": self.with_content,
            "written-ms": self.written_ms,
            "not-before-ms": self.not_before_ms,
        }
        storage.write(self.location, json.dumps(document).encode())

    def remove(self, storage: Storage) -> None:
        """It is done, or did not happen."""
        delete_quietly(storage, [self.location], "about an expiry that is over")

    def before(self, table: md.TableMetadata, storage: Storage) -> md.TableMetadata | None:
        """The table with the snapshots; None if that cannot be known any more."""
        try:
            metadata = md.decode_metadata_file(storage.read(self.metadata_location), storage.limits)
            metadata = metadata.located(self.metadata_location)
        except (errors.LocationNotFoundError, errors.InvalidInputError) as error:
            LOG.warning("an expiry cannot be finished, and its files are left to the removal of orphans: %s", error)
            return None
        if metadata.table_uuid != table.table_uuid:
            return None
        return metadata

    def is_lost(self, now_ms: int) -> bool:
        """Whether it is too old to be under way."""
        return now_ms - self.written_ms > _LOST_AFTER_MS


def new_location(metadata: md.TableMetadata) -> str:
    """Where the next intent goes."""
    return f"{_folder(metadata)}/{uuid4()}{_ENDING}"


def intents_of(metadata: md.TableMetadata, storage: Storage) -> Iterator[ExpiryIntent]:
    """What was announced and is not over; a file that cannot be read is left alone."""
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
            LOG.warning("%s does not say which expiry is to be finished: %s", file.location, error)


def _folder(metadata: md.TableMetadata) -> str:
    return f"{md.metadata_folder(metadata)}/{_FOLDER}"
