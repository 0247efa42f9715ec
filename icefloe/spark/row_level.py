"""How rows of a table are deleted, updated and merged on Spark: how they are located, what is written, and how it is committed.

Copy-on-write reads the files that hold such rows once more and writes them anew without them. Merge-on-read writes where the
rows are, as deletion vectors or position deletes, and the new rows as files of their own. Rows keep their ids either way.
"""

import hashlib
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pyspark import StorageLevel
from pyspark.sql import (
    Column,
    DataFrame,
    functions as F,  # noqa: N812 - its usual name
)

from icefloe import properties as props
from icefloe.commit import Isolation, Planned
from icefloe.data import MatchedRows, ReadContext, WriteRequest, matched_rows
from icefloe.errors import InvalidInputError
from icefloe.expressions import Expression
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.manifests import DataFile
from icefloe.metadata import MAIN_BRANCH, Snapshot, TableMetadata
from icefloe.planning import FileScanTask
from icefloe.schema import Schema, reserved
from icefloe.spark.engine import SparkEngine, native_scan, read_scan
from icefloe.spark.gateway import Gateway, col, lit
from icefloe.spark.shaping import bare_type
from icefloe.spark.spark_sessions import is_case_sensitive
from icefloe.spark.store_assignment import Assigner
from icefloe.spark.types import mapping_of, user_schema
from icefloe.table import DataScan, Table, Transaction
from icefloe.versions import Feature, allows

_COPY = "copy-on-write"
FILE = "__icefloe_file"
POS = "__icefloe_pos"
_PLACE = {"_file": FILE, "_pos": POS}
_DELETED = reserved.DELETED.name
_CHOSEN = "__icefloe_chosen"
_CHUNK_BITS = 18
"""So many low bits of a position tell rows apart that are gathered as one list, so that no list is long."""
_HELD_PER_COUNTED = 4
"""Bytes that Spark takes to hold rows for one byte that it counts of them where it chooses what to broadcast, at most."""
_BYTES_PER_PLACE = 256
"""The approximate bytes of a position in the hash table of a join."""
LINEAGE = (reserved.ROW_ID.name, reserved.LAST_UPDATED_SEQUENCE_NUMBER.name)


@dataclass(frozen=True)
class ScanOfFiles(DataScan):
    """A scan of some files of a snapshot, by their paths."""

    only: frozenset[str] = frozenset()

    def plan_files(self) -> Generator[FileScanTask, None, None]:
        """The tasks of those files."""
        for task in super().plan_files():
            if task.file.file_path in self.only:
                yield task


@dataclass(frozen=True)
class RowChange:
    """One change of rows of one table, from its plan to its commit, which may be part of an open transaction."""

    spark: Any
    table: Table
    mode: props.Property[str]
    isolation: props.Property[str]
    branch: str | None = None
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    begun: Transaction | None = None
    mentioned: tuple[str, ...] = ()
    """Metadata columns that conditions and values may name."""

    @property
    def metadata(self) -> TableMetadata:
        """The table as it is when the change is planned."""
        return self.table.metadata if self.begun is None else self.begun.table_metadata

    @property
    def copies(self) -> bool:
        """Whether touched files are rewritten, as they always are in v1."""
        return copies_files(self.metadata, self.mode)

    @property
    def has_lineage(self) -> bool:
        """Whether rows have ids that must be kept."""
        return allows(self.metadata.format_version, Feature.ROW_LINEAGE)

    @property
    def columns(self) -> list[str]:
        """The names of the table's columns."""
        return [field.name for field in self.metadata.schema().fields]

    def scan(self, row_filter: Expression | None = None) -> DataScan:
        """The rows that may be changed, with where they are and which ids they have."""
        about = ("_file", "_pos", *(LINEAGE if self.has_lineage else ()))
        if taken := self._columns_named(about):
            raise InvalidInputError(
                f"column {taken[0]!r} has the name of a metadata column, by which rows to change are found; rename it"
            )
        about += tuple(name for name in self._hidden if name not in (*about, _DELETED))
        ref = self.branch if self.branch in self.metadata.refs else None
        return replace(self.table.scan(row_filter, ("*", *about), ref=ref), metadata=self.metadata)

    def blank(self) -> DataFrame:
        """A frame with the columns of `frame` and no rows: for questions to conditions, which need no file to be planned."""
        spark = self.spark
        gateway = Gateway(spark)
        schema = gateway.type(user_schema(self.scan().projection(), mapping_of(spark)))
        return self._placed(gateway.frame(spark._jsparkSession.createDataFrame(gateway.list(()), schema)))

    def frame(self, scan: DataScan, name: str = "") -> DataFrame:
        """The rows of such a scan, with their place under names that no column has."""
        label = ".".join(self.table.name()) + name
        return self._placed(read_scan(self.spark, scan, label))

    @property
    def _hidden(self) -> tuple[str, ...]:
        """The metadata columns that are mentioned, but for those that are columns of the table."""
        return tuple(name for name in self.mentioned if not self._columns_named((name,)))

    def _columns_named(self, names: Sequence[str]) -> list[str]:
        key = str if is_case_sensitive(self.spark) else str.lower
        return [name for name in self.columns if key(name) in names]

    def _placed(self, rows: DataFrame) -> DataFrame:
        placed = rows.withColumnsRenamed(_PLACE)
        again = {name: col(column) for name, column in _PLACE.items() if name in self._hidden}
        if _DELETED in self._hidden:
            # No row is deleted that a change can find.
            again[_DELETED] = lit(False)
        return placed.withColumns(again) if again else placed

    def plain(self, rows: DataFrame) -> DataFrame:
        """Rows of such a frame as they are written: the table's own columns, and the ids of rows."""
        kept = LINEAGE if self.has_lineage else ()
        return rows.drop(FILE, POS, *(name for name in self._hidden if name not in kept))

    def rows_of(self, files: Iterable[str]) -> DataFrame:
        """The rows of some files."""
        paths = frozenset(files)
        digest = hashlib.sha256("\n".join(sorted(paths)).encode()).hexdigest()[:16]
        return self.frame(self._scan_of(paths), f" [{len(paths)} files, {digest}]")

    def rows_but(self, places: Mapping[str, DeletionVector], gone: DataFrame) -> DataFrame:
        """The rows of these files but for those at the places, which are those of `gone`: all of them to be written anew."""
        # No other frame may be taken for this one, and none has its name.
        label = f"{'.'.join(self.table.name())} [{len(places)} files, {uuid.uuid4()}]"
        native = native_scan(self.spark, self._scan_of(frozenset(places)), label)
        if native is None:
            return self.plain(without_places(self.rows_of(places), gone))
        return self.plain(replace(native, hidden=places).frame().drop(*_PLACE))

    def _scan_of(self, paths: frozenset[str]) -> ScanOfFiles:
        whole = self.scan()
        given = {name: getattr(whole, name) for name in whole.__dataclass_fields__ if name != "only"}
        return ScanOfFiles(**given, only=paths)

    def planned(self) -> Planned:
        """What the commit is checked against."""
        return Planned.on(self.metadata, self.branch or MAIN_BRANCH, Isolation.of(self.metadata, self.isolation))

    def places(self, rows: DataFrame) -> dict[str, DeletionVector]:
        """Where rows are: positions by file."""
        return gathered(rows).by_file()

    def assigner(self, *, evolves: bool = False) -> Assigner:
        """The assigner of values to columns of the table."""
        return Assigner(Gateway(self.spark), self.metadata.schema(), ".".join(self.table.name()), evolves)

    def write(self, frame: DataFrame, written: list[DataFile]) -> list[DataFile]:
        """Write rows as data files, with their ids if the frame has them."""
        has_ids = self.has_lineage and reserved.ROW_ID.name in frame.columns
        metadata = with_lineage(self.metadata) if has_ids else self.metadata
        self._check_kept(frame, metadata.schema())
        return SparkEngine().write(frame, WriteRequest(metadata, self.table.storage, written))

    def _check_kept(self, frame: DataFrame, schema: Schema) -> None:
        """Raise if a plan of ours casts columns that it keeps.

        Spark brings the choices of a CASE and the parts of a union to one type. Old values are of the column's type, and new
        ones are made so: if what comes out is of another, old ones were cast, and values would change that nobody assigned.
        """
        wanted = {shown.name: bare_type(shown.dataType) for shown in user_schema(schema, mapping_of(self.spark)).fields}
        for column in frame.schema.fields:
            if bare_type(column.dataType) != wanted[column.name]:
                raise AssertionError(
                    f"column {column.name!r} of {'.'.join(self.table.name())} became {column.dataType.simpleString()} in the"
                    " plan of a change of rows, which would change rows that it keeps; nothing was written"
                )

    def commit_copies(
        self,
        planned: Planned,
        touched: Iterable[str],
        make: Callable[[], DataFrame | None],
        read: Expression,
        *,
        relies_on_read: bool = False,
    ) -> Snapshot | None:
        """Replace the touched files by files of the rows that `make` returns, which may depend on rows that are not touched."""
        paths = frozenset(touched)
        removed = [task.file for task in self.scan().plan_files() if task.file.file_path in paths]
        with self._transaction() as tx:
            rows = tx.rows(self.branch, self.snapshot_properties)
            frame = make()
            added = [] if frame is None else self.write(frame, rows.written)
            if not removed and not added:
                return None
            snapshot = rows.replace_files(planned, added, removed, read, relies_on_read=relies_on_read)
        return self._committed(snapshot)

    def commit_deletes(
        self,
        planned: Planned,
        places: Mapping[str, DeletionVector],
        make: Callable[[], DataFrame | None],
        read: Expression,
    ) -> Snapshot | None:
        """Delete rows by position, and add those that `make` returns."""
        matches = list(self._matches(places))
        with self._transaction() as tx:
            rows = tx.rows(self.branch, self.snapshot_properties)
            frame = make()
            added = [] if frame is None else self.write(frame, rows.written)
            if not matches and not added:
                return None
            snapshot = rows.delete_matches(planned, matches, added, read)
        return self._committed(snapshot)

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        if self.begun is not None:
            yield self.begun
            return
        with self.table.transaction() as tx:
            yield tx

    def _matches(self, places: Mapping[str, DeletionVector]) -> Iterator[MatchedRows]:
        context = ReadContext(self.metadata, self.table.storage)
        for task in self.scan().plan_files() if places else ():
            if task.file.file_path in places:
                yield matched_rows(task, places[task.file.file_path], context)

    def _committed(self, snapshot: Snapshot | None) -> Snapshot | None:
        """The snapshot as it was committed; in an open transaction it is only known after its commit."""
        return snapshot if snapshot is None or self.begun else self.metadata.snapshot_by_id(snapshot.snapshot_id)


def with_lineage(metadata: TableMetadata) -> TableMetadata:
    """The table with the columns of row lineage among its own, for whoever writes rows that have ids already."""
    current = metadata.schema()
    widened = Schema(
        *current.fields,
        reserved.ROW_ID,
        reserved.LAST_UPDATED_SEQUENCE_NUMBER,
        schema_id=current.schema_id,
        identifier_field_ids=current.identifier_field_ids,
    )
    others = (schema for schema in metadata.schemas if schema.schema_id != current.schema_id)
    return replace(metadata, schemas=(*others, widened))


@dataclass(frozen=True)
class Gathered:
    """Where rows are: for each list of positions its file, and whether its rows are chosen. A row may be there twice."""

    lists: tuple[tuple[str, bool, Any], ...]

    def __len__(self) -> int:
        return sum(len(positions) for _, _, positions in self.lists)

    def by_file(self) -> dict[str, DeletionVector]:
        """The positions of the chosen rows by file."""
        return {
            name: DeletionVector.from_positions(np.concatenate(positions))
            for name, positions in self._lists(lambda is_chosen: is_chosen).items()
        }

    def leaves_rows(self) -> bool:
        """Whether there are rows that are not chosen."""
        return any(not is_chosen for _, is_chosen, _ in self.lists)

    def twice(self) -> tuple[int, str, int] | None:
        """How many rows are there more than once, and the place of one of them."""
        count, example = 0, None
        for name, lists in self._lists(lambda _: True).items():
            positions, times = np.unique(np.concatenate(lists), return_counts=True)
            repeated = positions[times > 1]
            if len(repeated):
                count += len(repeated)
                example = example or (name, int(repeated[0]))
        return None if example is None else (count, *example)

    def _lists(self, is_wanted: Callable[[bool], bool]) -> dict[str, list[Any]]:
        lists: dict[str, list[Any]] = {}
        for name, is_chosen, positions in self.lists:
            if is_wanted(is_chosen):
                lists.setdefault(name, []).append(positions)
        return lists


def gathered(rows: DataFrame, chosen: Column | None = None) -> Gathered:
    """Where rows are, and which of them are chosen; eight bytes a row reach the driver, and each file's name a few times."""
    gateway = Gateway(rows.sparkSession)
    flag = lit(True) if chosen is None else chosen
    chunk = gateway.cached("chunks of places", lambda: F.shiftright(POS, _CHUNK_BITS))
    listed = gateway.cached("lists of places", lambda: F.collect_list(POS).alias(POS))
    groups = rows.groupBy(col(FILE), flag.alias(_CHOSEN), chunk).agg(listed).select(FILE, _CHOSEN, POS).toArrow()
    lists = []
    for batch in groups.to_batches():
        positions = batch.column(2)
        values, ends = positions.values.to_numpy(), positions.offsets.to_numpy()
        parts = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), ends[:-1], ends[1:], strict=True)
        lists += [(name, flag, values[start:end]) for name, flag, start, end in parts]
    return Gathered(tuple(lists))


def copies_files(metadata: TableMetadata, mode: props.Property[str]) -> bool:
    """Whether files that a change touches are written anew, by the table's mode for such changes; always in v1."""
    return mode.of(metadata.properties) == _COPY or not allows(metadata.format_version, Feature.DELETE_FILES)


def is_true(condition: Column | None) -> Column:
    """A condition as SQL means it where rows are chosen: unknown is false."""
    return lit(True) if condition is None else F.coalesce(condition, lit(False))


def without_places(rows: DataFrame, gone: DataFrame) -> DataFrame:
    """The rows except those at the positions of others."""
    return rows.join(gone.select(FILE, POS), [FILE, POS], "left_anti")


def are_few_places(spark: Any, count: int) -> bool:
    """Whether so many positions are better broadcast than shuffled."""
    return count * _BYTES_PER_PLACE <= _most_held(spark)


@contextmanager
def kept(frame: DataFrame) -> Iterator[DataFrame]:
    """A frame that is computed once, and again only if Spark loses part of it, which must yield the same rows."""
    held = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield held
    finally:
        held.unpersist()


@contextmanager
def fixed(frame: DataFrame) -> Iterator[DataFrame]:
    """A frame that is computed exactly once: a query that loses part of it fails."""
    held = frame.localCheckpoint(eager=False)
    try:
        yield held
    finally:
        frame.sparkSession.sparkContext._jsc.sc().unpersistRDD(_held_as(held), False)


def held_bytes(held: DataFrame) -> int | None:
    """What is held of a fixed frame, in memory and on disk; None as long as it was not computed."""
    for info in held.sparkSession.sparkContext._jsc.sc().getRDDStorageInfo():
        if info.id() == _held_as(held) and info.isCached():
            return int(info.memSize() + info.diskSize())
    return None


def is_small(held: DataFrame) -> bool:
    """Whether a fixed frame is better sent to all tasks: by what is held of it, as Spark itself cannot tell."""
    size = held_bytes(held)
    return size is not None and size <= _most_held(held.sparkSession)


def _most_held(spark: Any) -> int:
    """The most bytes of held rows to broadcast; nothing if the session has that turned off."""
    limit = int(spark._jsparkSession.sessionState().conf().autoBroadcastJoinThreshold())
    return limit * _HELD_PER_COUNTED


def _held_as(held: DataFrame) -> int:
    """The id of the data of a fixed frame."""
    plan: Any = held._jdf.queryExecution().logical()
    while plan.getClass().getSimpleName() == "SubqueryAlias":
        plan = plan.child()
    number: int = plan.rdd().id()
    return number
