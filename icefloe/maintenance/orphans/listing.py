"""Which files lie beneath a location: a flat listing, cut by folders where partitions make many of them; hidden names are left out.

Hidden are names that begin with `_` or `.`, of folders and files, as in Java's procedure; folders of a partition field whose name
begins so are not.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, metadata as md
from icefloe.maintenance.engines import MaintenanceEngine, in_rounds
from icefloe.storage import FileInfo, Storage, names_below

LISTED = pa.schema([("location", pa.string()), ("modified_ms", pa.int64()), ("size", pa.int64())])
"""The columns of a listing."""
FileList: TypeAlias = pa.Table | pa.RecordBatchReader | Iterable[pa.RecordBatch]
"""A listing that somebody else made: `file_path`, a text, and `last_modified`, a timestamp; maybe `size`."""

_A_BATCH = 10_000
_HIDDEN = ("_", ".")


@dataclass(frozen=True, slots=True)
class Listing:
    """A location and what is not looked at in it."""

    location: str
    storage: Storage
    visible_folders: tuple[str, ...]
    """How folders begin that are not hidden although they look so."""
    has_folders: bool
    """Whether data files lie in folders, so that these can be listed at the same time."""

    @staticmethod
    def of(metadata: md.TableMetadata, location: str, storage: Storage) -> "Listing":
        """What lies beneath a location of a table."""
        names = {field.name for spec in metadata.specs_by_id.values() for field in spec.fields}
        visible = tuple(f"{name}=" for name in sorted(names) if name.startswith(_HIDDEN))
        return Listing(location.rstrip("/") or "/", storage, visible, bool(names))

    def batches(self, engine: MaintenanceEngine) -> Iterator[pa.RecordBatch]:
        """The files, as they come; folders with many files each are listed by the engine."""
        yield from self._batches(self.storage.list_files(self.location))
        for folder in self._folders(self.location):
            if not self.has_folders:
                yield from self._batches(self.storage.list_prefix(folder))
                continue
            yield from self._batches(self.storage.list_files(folder))
            for batches in in_rounds(engine, partial(_listed, self), list(self._folders(folder))):
                yield from batches

    def beneath(self, folder: str) -> Iterator[pa.RecordBatch]:
        """The files of one folder in it."""
        return self._batches(self.storage.list_prefix(folder))

    def _folders(self, location: str) -> Iterator[str]:
        for name in self.storage.list_folders(location):
            if not self._is_hidden_folder(name):
                yield f"{location.rstrip('/')}/{name}"

    def _batches(self, files: Iterable[FileInfo]) -> Iterator[pa.RecordBatch]:
        rows: list[tuple[str, int, int]] = []
        for file in files:
            if not self._is_hidden(file.location):
                rows.append((file.location, file.modified_ms, file.size))
            if len(rows) == _A_BATCH:
                yield _batch(rows)
                rows = []
        if rows:
            yield _batch(rows)

    def _is_hidden(self, location: str) -> bool:
        *folders, name = names_below(self.location, location)
        return name.startswith(_HIDDEN) or any(map(self._is_hidden_folder, folders))

    def _is_hidden_folder(self, name: str) -> bool:
        return name.startswith(_HIDDEN) and not name.startswith(self.visible_folders or ("\0",))


def _listed(listing: Listing, folder: str) -> list[pa.RecordBatch]:
    return list(listing.beneath(folder))


def _batch(rows: list[tuple[str, int, int]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], schema=LISTED)


def listed_by_others(files: FileList, location: str) -> Iterator[pa.RecordBatch]:
    """A list of files in the columns of a listing, as far as they lie beneath the location."""
    batches = files.to_batches() if isinstance(files, pa.Table) else files
    start = location if location.endswith("/") else f"{location}/"
    for batch in batches:
        _check_columns(batch.schema)
        paths, modified = batch["file_path"].cast(pa.string()), batch["last_modified"]
        times = modified.cast(pa.timestamp("ms", modified.type.tz), safe=False).cast(pa.int64())
        sizes = (
            batch["size"].cast(pa.int64()) if "size" in batch.schema.names else pa.array([0] * len(batch), pa.int64())
        )
        rows = pa.RecordBatch.from_arrays([paths, times, sizes], schema=LISTED)
        is_known = pc.and_(paths.is_valid(), times.is_valid())
        yield rows.filter(pc.and_(is_known, pc.fill_null(pc.starts_with(paths, start), False)))


def _check_columns(schema: pa.Schema) -> None:
    names = schema.names
    is_right = (
        {"file_path", "last_modified"} <= set(names)
        and pa.types.is_timestamp(schema.field("last_modified").type)
        and (
            pa.types.is_string(schema.field("file_path").type)
            or pa.types.is_large_string(schema.field("file_path").type)
        )
    )
    if not is_right:
        raise errors.InvalidInputError(
            f"the list of files has the columns {', '.join(f'{field.name} {field.type}' for field in schema)};"
            " it must have file_path, a string, and last_modified, a timestamp"
        )
