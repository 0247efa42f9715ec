"""Tables in memory for the tests of this room: real storage, a real swap, and faults on demand."""

import itertools
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from icefloe.commit import (
    BeforeSwap,
    Caches,
    Committer,
    Prepared,
    TableState,
    Timing,
    Workbench,
    check_same_table,
)
from icefloe.commit.parent import Parent
from icefloe.errors import CommitFailed
from icefloe.manifests import DataFile, FileContent, ManifestContent, ManifestEntry, ManifestFile
from icefloe.metadata import TableMetadata, apply_all, new_table_metadata
from icefloe.partitioning import UNPARTITIONED, PartitionSpec, parse_partition_spec
from icefloe.schema import NestedField, Schema
from icefloe.schema.binary import encode
from icefloe.schema.types import DoubleType, LongType, StringType
from icefloe.storage import Storage
from icefloe.table import Table

SCHEMA = Schema(
    NestedField(1, "id", LongType(), True),
    NestedField(2, "region", StringType()),
    NestedField(3, "price", DoubleType()),
)
BY_REGION = parse_partition_spec(["region"], SCHEMA)

Fault = Callable[[str], None]
"""Called at each boundary of a commit with its name; it may raise, or change the world."""

BOUNDARIES = ("before load", "before swap", "after swap")


class MemoryCommitter:
    """One table in a dict, with a lock as the atomic swap; `fault` is called at every boundary."""

    def __init__(self, metadata: TableMetadata, storage: Storage | None = None) -> None:
        self._storage = storage or Storage()
        self._lock = threading.Lock()
        self._state = TableState(metadata, f"{metadata.location}/metadata/00000-{uuid.uuid4()}.metadata.json")
        self.fault: Fault = lambda boundary: None
        self.swaps = 0
        self._now = itertools.count(1_700_000_000_000)

    @property
    def storage(self) -> Storage:
        return self._storage

    @property
    def name(self) -> str:
        return "memory.db.table"

    def load(self) -> TableState:
        self.fault("before load")
        return self._state

    def commit(self, base: TableState, prepared: Prepared, before_swap: BeforeSwap) -> TableState:
        before_swap()
        self.fault("before swap")
        with self._lock:
            check_same_table(base.metadata, self._state.metadata, self.name)
            changed = apply_all(
                self._state.metadata,
                prepared.updates,
                next(self._now),
                self._state.metadata_location,
                prepared.requirements,
            )
            if changed is not self._state.metadata:
                number = self.swaps + 1
                self._state = TableState(changed, f"{changed.location}/metadata/{number:05d}-x.metadata.json")
                self.swaps += 1
            done = self._state
        self.fault("after swap")
        return done


class Clock:
    """Time that only moves when somebody sleeps, or asks; sleeping is written down."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000
        self.sleeps: list[float] = []

    def __call__(self) -> int:
        self.now_ms += 1
        return self.now_ms

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now_ms += int(seconds * 1000)


def timing(clock: Clock | None = None) -> Timing:
    """Timing of tests: nobody really waits."""
    own = clock or Clock()
    return Timing(own.sleep, own, lambda: 0.5)


def new_table(
    version: int,
    spec: PartitionSpec = UNPARTITIONED,
    properties: Mapping[str, str] | None = None,
    schema: Schema = SCHEMA,
) -> tuple[Table, MemoryCommitter]:
    """An empty table and the committer behind it."""
    location = f"memory://commit/{uuid.uuid4()}"
    metadata = new_table_metadata(
        schema,
        spec,
        location=location,
        properties=properties,
        format_version=version,
        uuid=uuid.uuid4(),
        timestamp_ms=1_600_000_000_000,
    )
    committer = MemoryCommitter(metadata)
    return handle(committer), committer


def handle(committer: Committer, clock: Clock | None = None, caches: Caches | None = None) -> Table:
    """One more handle of the table, as another process would have it."""
    return Table(("db", "table"), committer.load(), committer, timing=timing(clock), caches=caches)


_NUMBERS = itertools.count()


def data_file(
    path: str | None = None,
    rows: int = 10,
    region: str | None = None,
    ids: tuple[int, int] | None = None,
    spec_id: int = 0,
    partitioned: bool = False,
    **more: Any,
) -> DataFile:
    """A data file that exists in manifests only; `ids` are the bounds of its column `id`."""
    metrics: dict[str, Any] = {}
    if ids is not None:
        metrics = {
            "value_counts": {1: rows},
            "null_value_counts": {1: 0},
            "lower_bounds": {1: encode(ids[0], LongType())},
            "upper_bounds": {1: encode(ids[1], LongType())},
        }
    values: dict[str, Any] = {
        "file_path": path or f"memory://data/{next(_NUMBERS)}.parquet",
        "file_format": "parquet",
        "record_count": rows,
        "file_size_in_bytes": rows * 100,
        "spec_id": spec_id,
        "partition": (region,) if partitioned or region is not None else (),
    }
    return DataFile(**{**values, **metrics, **more})


def equality_deletes(rows: int = 1, ids: Iterable[int] = (1,), **more: Any) -> DataFile:
    """An equality delete file that exists in manifests only."""
    return data_file(rows=rows, content=FileContent.EQUALITY_DELETES, equality_ids=tuple(ids), **more)


def position_deletes(rows: int = 1, **more: Any) -> DataFile:
    """A position delete file that exists in manifests only."""
    return data_file(rows=rows, content=FileContent.POSITION_DELETES, **more)


def manifests(table: Table, snapshot_id: int | None = None, caches: Caches | None = None) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot, read from storage by nobody's cache unless one is given."""
    metadata = table.metadata
    snapshot = metadata.current_snapshot() if snapshot_id is None else metadata.snapshot(snapshot_id)
    return Parent(metadata, bench_of(table, caches)).manifests_of(snapshot)


def entries(
    table: Table, content: ManifestContent | None = None, snapshot_id: int | None = None, live: bool = True
) -> list[ManifestEntry]:
    """The entries of a snapshot, with all that they inherit, read anew."""
    found = []
    for manifest in manifests(table, snapshot_id):
        if content is None or manifest.content is content:
            columns = Parent(table.metadata, bench_of(table)).read(manifest)
            found += [each for each in columns.entries() if each.is_live or not live]
    return found


def live_paths(table: Table, snapshot_id: int | None = None) -> list[str]:
    """The paths of the data files of a snapshot, sorted."""
    return sorted(each.data_file.file_path for each in entries(table, ManifestContent.DATA, snapshot_id))


def bench_of(table: Table, caches: Caches | None = None) -> Workbench:
    """A workbench that remembers nothing of its own."""
    return Workbench(table.storage, caches or Caches(), lambda: 0)


def stored(table: Table) -> set[str]:
    """Every file under the table's location."""
    return {each.location for each in table.storage.list_prefix(str(table.location()))}


def lose_race(times: int = 1) -> Fault:
    """Another writer is faster, so many times, in a way that needs no other writer."""
    left = iter(range(times))

    def fault(boundary: str) -> None:
        if boundary == "before swap" and next(left, None) is not None:
            raise CommitFailed("lost the race on purpose")

    return fault


def fail_at(wanted: str, error: Exception, times: int = 1) -> Fault:
    """An error at one boundary, so many times."""
    left = iter(range(times))

    def fault(boundary: str) -> None:
        if boundary == wanted and next(left, None) is not None:
            raise error

    return fault
