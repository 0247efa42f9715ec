"""Orphan file removal: files under a table's location, old enough, that the table does not reference.

The referenced files are collected before the listing, so that little of it is buffered on disk, and updated from the catalog
after it and before each batch of deletes: a file committed in between is kept, however old (FAILURES, rule 9).
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit import Ownership
from icefloe.errors import InvalidInputError, ValidationError
from icefloe.maintenance.engines import MaintenanceEngine, in_rounds
from icefloe.maintenance.expiry.unneeded import FILES
from icefloe.maintenance.files.deleting import BATCH, DeleteSettings, Deletions, delete_batch, resized
from icefloe.maintenance.files.spool import Spool
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.maintenance.orphans.keys import Prefixes
from icefloe.maintenance.orphans.listing import FileList, Listing, listed_by_others
from icefloe.maintenance.orphans.needed_files import NeededFiles
from icefloe.maintenance.orphans.refusals import check_alone, check_metadata_files, checked_location
from icefloe.progress import Listener, Progress
from icefloe.storage import Storage

MOST_STREAMED = 20_000
"""Maximum number of locations in the result of a streaming run."""
_METADATA = r"\.metadata\.json(\.gz)?$"
_METADATA_FILES = pa.schema([("location", pa.string())])
_MOST_CONFLICTS = 1_000


class PrefixMismatch(Enum):
    """What to do with a file whose path is referenced with another scheme or authority."""

    ERROR = "error"
    """Delete nothing."""
    IGNORE = "ignore"
    """Keep the file."""
    DELETE = "delete"
    """Delete the file."""

    @staticmethod
    def named(text: str) -> "PrefixMismatch":
        """Return the mode by its case-insensitive name."""
        try:
            return PrefixMismatch(text.lower())
        except ValueError:
            raise InvalidInputError(
                f"prefix_mismatch_mode must be 'error', 'ignore' or 'delete', not {text!r}"
            ) from None


@dataclass(frozen=True, slots=True)
class OrphanRequest:
    """What to search for, where and how."""

    older_than_ms: int
    engine: MaintenanceEngine
    listener: Listener
    location: str | None = None
    prefixes: Prefixes = field(default_factory=Prefixes)
    mismatch: PrefixMismatch = PrefixMismatch.ERROR
    file_list: FileList | None = None
    force: bool = False
    max_files: int | None = None
    max_concurrent_deletes: int | None = None
    most_named: int | None = None

    def deleting(self, storage: Storage) -> DeleteSettings:
        """Return how to delete files."""
        return DeleteSettings(storage, self.engine, self.listener, self.max_concurrent_deletes)


@dataclass(frozen=True, slots=True)
class OrphanFiles:
    """Result of an orphan file removal."""

    orphan_file_location: pa.ChunkedArray
    """Locations of the orphan files: all of them, or the first 20,000 of a streaming run."""
    count: int = 0
    """Number of orphan files."""
    bytes: int = 0
    """Total size."""
    failed: tuple[str, ...] = ()
    """Files that could not be deleted; at most 1,000."""

    def __str__(self) -> str:
        failed = f"; {len(self.failed)} could not be deleted" if self.failed else ""
        return f"{self.count} orphan files, {self.bytes:,} bytes{failed}"


@dataclass(frozen=True, slots=True)
class OrphanPlan:
    """The current orphan files."""

    orphan_file_location: pa.ChunkedArray
    count: int
    bytes: int
    _delete: Callable[[], OrphanFiles] = field(repr=False, compare=False)

    def run(self) -> OrphanFiles:
        """Delete exactly these files, except those that the table references by now."""
        return self._delete()

    def to_json(self) -> str:
        """Return the plan as JSON."""
        document = {"count": self.count, "bytes": self.bytes}
        return json.dumps(document | {"locations": self.orphan_file_location.to_pylist()}, indent=2)

    def __str__(self) -> str:
        return f"{self.count} orphan files would be deleted, {self.bytes:,} bytes"


def remove_orphan_files(table: MaintainedTable, request: OrphanRequest) -> OrphanFiles:
    """Delete orphan files."""
    with NeededFiles(table, request.prefixes, request.engine) as needed, _orphans(table, request, needed) as orphans:
        return _delete(table, request, needed, orphans)


def plan_orphan_files(table: MaintainedTable, request: OrphanRequest) -> OrphanPlan:
    """Find orphan files without deleting them."""
    with NeededFiles(table, request.prefixes, request.engine) as needed:
        orphans = _orphans(table, request, needed)

    def run() -> OrphanFiles:
        with NeededFiles(table, request.prefixes, request.engine) as known:
            return _delete(table, request, known, orphans)

    size = sum(pc.sum(batch["size"]).as_py() or 0 for batch in orphans.batches())
    named = _Named(request.most_named)
    for batch in orphans.batches():
        named.add(batch["location"])
    return OrphanPlan(named.locations(), len(orphans), size, run)


class _Named:
    """The first locations, up to a limit."""

    def __init__(self, most: int | None) -> None:
        self._left = most
        self._parts: list[pa.Array] = []

    def add(self, locations: pa.Array) -> None:
        part = locations if self._left is None else locations.slice(0, self._left)
        if len(part):
            self._parts.append(part)
        self._left = None if self._left is None else self._left - len(part)

    def locations(self) -> pa.ChunkedArray:
        return pa.chunked_array(self._parts, pa.string())


def _orphans(table: MaintainedTable, request: OrphanRequest, needed: NeededFiles) -> Spool:
    table.refresh().metadata.check_changeable()
    """Return the orphan files of a location; the caller closes the spool."""
    request.deleting(table.storage)
    location = checked_location(table.refresh(), request.location, force=request.force)
    check_alone(table.surroundings, location)
    needed.catch_up()
    with Spool(FILES) as candidates, Spool(_METADATA_FILES) as metadata_files:
        for batch in _unknown(table, request, needed, location, metadata_files):
            candidates.write(batch)
        # After the listing: files committed in between are referenced, whatever their age.
        needed.catch_up()
        strange = _check_metadata_files(table, needed, metadata_files)
        orphans = Spool(FILES)
        try:
            _sort_out(request, needed, candidates, orphans, strange)
        except BaseException:
            orphans.close()
            raise
    return orphans


def _unknown(
    table: MaintainedTable, request: OrphanRequest, needed: NeededFiles, location: str, metadata_files: Spool
) -> Iterator[pa.RecordBatch]:
    """Collect listed files that are old enough and not known to be referenced; also collect metadata files of any age."""
    if request.file_list is None:
        listed = Listing.of(table.metadata, location, table.storage).batches(request.engine)
    else:
        listed = listed_by_others(request.file_list, location)
    seen = 0
    for batch in listed:
        is_needed, _ = needed.compare(batch["location"])
        unknown = batch.filter(pa.array(~is_needed))
        is_metadata = pc.match_substring_regex(unknown["location"], _METADATA)
        metadata_files.write(unknown.filter(is_metadata).select(["location"]))
        old = unknown.filter(pc.less(unknown["modified_ms"], request.older_than_ms))
        kinds = pa.array(np.zeros(len(old), np.int8))
        yield pa.RecordBatch.from_arrays([old["location"], kinds, old["size"]], schema=FILES)
        seen += len(batch)
        request.listener(Progress("list", seen, None))
    if seen:
        request.listener(Progress("list", seen, seen))


def _check_metadata_files(table: MaintainedTable, needed: NeededFiles, files: Spool) -> set[str]:
    """Raise an error if there are files of other tables; return files of unknown tables."""

    def strange() -> Iterator[str]:
        for batch in files.batches():
            is_needed, _ = needed.compare(batch["location"])
            yield from batch.filter(pa.array(~is_needed))["location"].to_pylist()

    return check_metadata_files(table.metadata, strange(), table.storage)


def _sort_out(
    request: OrphanRequest, needed: NeededFiles, candidates: Spool, orphans: Spool, strange: set[str]
) -> None:
    conflicts: list[str] = []
    left = request.max_files
    for batch in candidates.batches():
        is_needed, is_conflicting = needed.compare(batch["location"])
        conflicts += batch["location"].filter(pa.array(is_conflicting)).to_pylist()[: _MOST_CONFLICTS - len(conflicts)]
        stays = is_needed if request.mismatch is PrefixMismatch.DELETE else is_needed | is_conflicting
        unneeded = batch.filter(pa.array(~stays))
        if strange:
            unneeded = unneeded.filter(pc.invert(pc.is_in(unneeded["location"], pa.array(sorted(strange)))))
        orphans.write(unneeded if left is None else unneeded.slice(0, left))
        left = None if left is None else max(left - len(unneeded), 0)
    if conflicts and request.mismatch is PrefixMismatch.ERROR:
        raise _mismatch(needed, conflicts)


def _mismatch(needed: NeededFiles, conflicts: list[str]) -> ValidationError:
    pairs = ", ".join(sorted(f"{listed} and {known}" for listed, known in needed.conflicts(conflicts)))
    return ValidationError(
        f"files are listed with another scheme or authority than in the metadata, such as {conflicts[0]};"
        f" nothing was deleted. Declare them equal with equal_schemes or equal_authorities ({pairs}), or set"
        " prefix_mismatch_mode to 'ignore' or 'delete'"
    )


def _delete(table: MaintainedTable, request: OrphanRequest, needed: NeededFiles, orphans: Spool) -> OrphanFiles:
    """Delete in batches; before each one, update what the table references."""
    settings = request.deleting(table.storage)
    named, done = _Named(request.most_named), Deletions()
    counts = np.zeros(2, np.int64)

    def todo() -> Iterator[pa.RecordBatch]:
        for batch in resized(orphans.batches()):
            needed.catch_up()
            is_needed, is_conflicting = needed.compare(batch["location"])
            stays = is_needed if request.mismatch is PrefixMismatch.DELETE else is_needed | is_conflicting
            rest = batch.filter(pa.array(~stays))
            named.add(rest["location"])
            counts[:] += (len(rest), pc.sum(rest["size"]).as_py() or 0)
            yield rest

    work = partial(delete_batch, table.storage, Ownership((), True), "an orphan")
    total = len(orphans)
    for number, deleted in enumerate(in_rounds(settings.engine_for(total), work, todo(), settings.a_round), 1):
        done.add(deleted)
        request.listener(Progress("delete", min(number * BATCH, total), total))
    return OrphanFiles(named.locations(), int(counts[0]), int(counts[1]), tuple(done.failed))
