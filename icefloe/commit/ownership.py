"""Which files a table may delete, and how: those beneath its own locations; others may belong to somebody else.

Metadata may name files anywhere, since tables are made of files that lay elsewhere before; reading them needs no leave.
They are deleted only if the table's property `gc.foreign-files.enabled` says so.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, metadata as md, properties as props
from icefloe.storage import Storage, identity, is_beneath

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ownership:
    """The folders of a table, and whether files outside of them are deleted, too."""

    folders: tuple[str, ...]
    has_foreign: bool

    @staticmethod
    def of(metadata: md.TableMetadata, metadata_location: str | None = None, *earlier: md.TableMetadata) -> "Ownership":
        """What the table says of itself now, and said before; its catalog says where its metadata file is."""
        folders = [folder for each in (metadata, *earlier) for folder in _folders(each)]
        if metadata_location is not None and "/" in metadata_location:
            folders.append(metadata_location.rpartition("/")[0])
        return Ownership(tuple(dict.fromkeys(folders)), props.GC_FOREIGN_FILES.of(metadata.properties))

    def owns(self, location: str) -> bool:
        """Whether the file may be deleted."""
        try:
            return self.has_foreign or any(is_beneath(folder, location) for folder in self.folders)
        except errors.InvalidLocationError:
            return False

    def mask(self, locations: pa.Array) -> pa.Array:
        """Which of many locations, in their normal form, may be deleted."""
        if self.has_foreign:
            return locations.is_valid()
        is_own = pc.and_(False, locations.is_valid())
        for folder in self.folders:
            # Kept as they are spelled where they are not locations: then nothing lies beneath them.
            is_own = pc.or_(is_own, pc.starts_with(locations, f"{identity(folder).rstrip('/')}/"))
        return is_own

    def split(self, locations: Iterable[str]) -> tuple[list[str], list[str]]:
        """The files that may be deleted, and the others."""
        own: list[str] = []
        foreign: list[str] = []
        for location in locations:
            (own if self.owns(location) else foreign).append(location)
        return own, foreign


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


def delete_own(storage: Storage, ownership: Ownership, locations: Iterable[str], why: str) -> frozenset[str]:
    """Delete the files that are the table's own, as `delete_quietly` does; the others are noted, and are the answer."""
    own, foreign = ownership.split(locations)
    delete_quietly(storage, own, why)
    note_foreign(foreign, why)
    return frozenset(foreign)


def note_foreign(foreign: list[str], why: str) -> None:
    """Say in the log that files were left alone."""
    if foreign:
        LOG.warning(
            "%d files that are %s are left alone, as they lie outside of the table's locations, such as %s; %s=true deletes"
            " such files, too",
            len(foreign),
            why,
            foreign[0],
            props.GC_FOREIGN_FILES.key,
        )


def _folders(metadata: md.TableMetadata) -> Iterable[str]:
    if metadata.location is None:
        return
    yield metadata.location
    yield md.metadata_folder(metadata)
    for known in (props.DATA_PATH, props.OBJECT_STORAGE_PATH, props.FOLDER_STORAGE_PATH):
        path = known.of(metadata.properties)
        if path is not None:
            yield md.resolve_location(metadata.location, path)
