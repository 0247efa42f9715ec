"""How rows of a table become frames to delete, update and merge, and how what these decide is written and committed.

Copy-on-write reads the files of such rows once more and writes them without them. Merge-on-read writes the positions of the
rows, and the new rows as files of their own. Which of the two, and what is committed, is decided in `icefloe.rows`.
"""

import hashlib
import uuid
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, functions as F  # noqa: N812  # its usual name

from icefloe import errors, manifests as mf, metadata as md, planning
from icefloe.expressions import Expression
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.rows import RowChange, Statement
from icefloe.schema import Schema, reserved
from icefloe.spark.column_names import Qualifier
from icefloe.spark.engine import SparkEngine, native_scan, notes_places, read_scan, with_lineage
from icefloe.spark.gateway import Gateway, col, lit
from icefloe.spark.row_positions import FILE, POS, Gathered
from icefloe.spark.shaping import bare_type
from icefloe.spark.spark_sessions import is_case_sensitive
from icefloe.spark.store_assignment import Assigner
from icefloe.spark.types import mapping_of, user_schema
from icefloe.streaming import StreamBatch, once
from icefloe.table import Table, Transaction

_POSITION = {"_file": FILE, "_pos": POS}
_DELETED = reserved.DELETED.name
_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
"""What Spark calls it."""
_HELD_PER_COUNTED = 4
"""Bytes that Spark takes to hold rows for one byte that it counts of them where it chooses what to broadcast, at most."""
_BYTES_PER_POSITION = 256
"""The approximate bytes of a position in the hash table of a join."""
LINEAGE = (reserved.ROW_ID.name, reserved.LAST_UPDATED_SEQUENCE_NUMBER.name)


@dataclass(frozen=True)
class TargetTable:
    """The table that a statement changes: the branch, and the name and the metadata columns that conditions may use."""

    spark: SparkSession
    table: Table
    branch: str | None = None
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    alias: Qualifier | None = None
    metadata_columns: Sequence[str] = ()
    batch: StreamBatch | None = None
    """The micro-batch of a stream that the change is, which is committed once."""

    def change(self, statement: Statement, tx: Transaction) -> "FrameChange":
        """A change of its rows as part of a transaction."""
        rule = tx.rows(self.branch, self.snapshot_properties).change(statement, SparkEngine())
        return FrameChange(self.spark, rule, ".".join(self.table.name()), tuple(self.metadata_columns))

    def run(self, change: Callable[[Transaction], md.Snapshot | None]) -> md.Snapshot | None:
        """A change in a transaction of its own: the snapshot as it was committed, if it made one."""
        return self.table.transaction().run(once(self.batch, self.branch, change))


@dataclass(frozen=True)
class _OnlyFiles:
    """Plans a scan for some files alone, by their paths."""

    paths: frozenset[str]

    def plan_files(self, scan: planning.TableScan) -> Generator[planning.FileScanTask, None, None]:
        for task in replace(scan, planner=None).plan_files():
            if task.file.file_path in self.paths:
                yield task


@dataclass(frozen=True)
class FrameChange:
    """One change of rows as frames, by the rules of `rule`, under the name of its table in messages."""

    spark: SparkSession
    rule: RowChange
    table: str
    mentioned: tuple[str, ...] = ()
    """Metadata columns that conditions and values may name."""

    @property
    def schema(self) -> Schema:
        """The table's schema when the change is planned."""
        return self.rule.metadata.schema()

    @property
    def columns(self) -> list[str]:
        """The names of the table's columns."""
        return [field.name for field in self.schema.fields]

    def scan(self, row_filter: Expression | None = None) -> planning.TableScan:
        """The rows that may be changed, with their positions and their ids."""
        about = ("_file", "_pos", *(LINEAGE if self.rule.has_lineage else ()))
        if taken := self._columns_named(about):
            raise errors.InvalidInputError(
                f"column {taken[0]!r} has the name of a metadata column, by which rows to change are found; rename it"
            )
        about += tuple(name for name in self._hidden if name not in (*about, _DELETED))
        return self.rule.branch.scan(row_filter, ("*", *about))

    def blank(self) -> DataFrame:
        """A frame with the columns of `frame` and no rows: for questions to conditions, which need no file to be planned."""
        spark = self.spark
        gateway = Gateway(spark)
        schema = gateway.type(user_schema(self.scan().projection(), mapping_of(spark)))
        return self._placed(gateway.frame(spark._jsparkSession.createDataFrame(gateway.list(()), schema)))

    def frame(self, scan: planning.TableScan, label: str = "") -> DataFrame:
        """The rows of such a scan, with their positions under names that no column has."""
        return self._placed(read_scan(self.spark, scan, self.table + label))

    @property
    def _hidden(self) -> tuple[str, ...]:
        """The metadata columns that are mentioned, but for those that are columns of the table."""
        return tuple(name for name in self.mentioned if not self._columns_named((name,)))

    def _columns_named(self, names: Sequence[str]) -> list[str]:
        key = str if is_case_sensitive(self.spark) else str.lower
        return [name for name in self.columns if key(name) in names]

    def _placed(self, rows: DataFrame) -> DataFrame:
        placed = rows.withColumnsRenamed(_POSITION)
        again = {name: col(column) for name, column in _POSITION.items() if name in self._hidden}
        if _DELETED in self._hidden:
            # No row is deleted that a change can find.
            again[_DELETED] = lit(False)
        return placed.withColumns(again) if again else placed

    def plain(self, rows: DataFrame) -> DataFrame:
        """Rows of such a frame as they are written: the table's own columns, and the ids of rows."""
        ids = LINEAGE if self.rule.has_lineage else ()
        return rows.drop(FILE, POS, *(name for name in self._hidden if name not in ids))

    def rows_of(self, files: Iterable[str]) -> DataFrame:
        """The rows of some files."""
        paths = frozenset(files)
        digest = hashlib.sha256("\n".join(sorted(paths)).encode()).hexdigest()[:16]
        return self.frame(self._scan_of(paths), f" [{len(paths)} files, {digest}]")

    def rows_but(self, positions: Mapping[str, DeletionVector], otherwise: Callable[[], DataFrame]) -> DataFrame:
        """The rows of these files but for those at the positions, as they are written; what `otherwise` gives if Spark's own
        reader does not read them."""
        # No other frame may be taken for this one, and none has its name.
        label = f"{self.table} [{len(positions)} files, {uuid.uuid4()}]"
        native = native_scan(self.spark, self._scan_of(frozenset(positions)), label)
        if native is None:
            return otherwise()
        return self.plain(replace(native, hidden=positions).frame().drop(*_POSITION))

    def others(self, files: Iterable[str], changed: DataFrame) -> DataFrame:
        """The rows of these files but for those at the positions of `changed`, as they are written."""
        return self.plain(self.rows_of(files).join(changed.select(FILE, POS), [FILE, POS], "left_anti"))

    def _scan_of(self, paths: frozenset[str]) -> planning.TableScan:
        return replace(self.scan(), planner=_OnlyFiles(paths))

    def assigner(self, *, evolves: bool = False) -> Assigner:
        """The assigner of values to columns of the table."""
        return Assigner(Gateway(self.spark), self.schema, self.table, evolves)

    def write(self, frame: DataFrame) -> list[mf.DataFile]:
        """Write rows as data files, with their ids if the frame has them."""
        lineage = self.rule.has_lineage and LINEAGE[0] in frame.columns
        self._check_types(frame, with_lineage(self.schema) if lineage else self.schema)
        return self.rule.write(frame, lineage=lineage)

    @property
    def is_one_job(self) -> bool:
        """Whether rows can be replaced by one job: where they were is noted while they are written."""
        return not self.rule.copies and notes_places(self.spark, self.rule.branch.request(lineage=False))

    def replace_rows(self, new: DataFrame, read: Expression) -> md.Snapshot | None:
        """Replace rows, all of which match the filter `read`, by these, which have their files and positions, in one job."""
        places = Gathered()
        placed = replace(self, rule=replace(self.rule, engine=SparkEngine(places)))
        added = placed.write(new)
        rows = sum(file.record_count for file in added)
        if rows != len(places):
            raise AssertionError(
                f"{rows} rows of {self.table} were written for {len(places)} places; nothing is changed"
            )
        return self.rule.commit(self.rule.branch.located(places.chosen, read), added, read) if added else None

    def _check_types(self, frame: DataFrame, schema: Schema) -> None:
        """Raise if a plan of ours casts columns that it keeps.

        Spark brings the choices of a CASE and the parts of a union to one type. Old values are of the column's type, and new
        ones are made so: if what comes out is of another, old ones were cast, and values would change that nobody assigned.
        """
        expected = {shown.name: bare_type(shown.dataType) for shown in user_schema(schema, mapping_of(self.spark))}
        for column in frame.schema.fields:
            if column.name not in (FILE, POS) and bare_type(column.dataType) != expected[column.name]:
                raise AssertionError(
                    f"column {column.name!r} of {self.table} became {column.dataType.simpleString()} in the"
                    " plan of a change of rows, which would change rows that it keeps; nothing was written"
                )

    def delete(self, chosen: DataFrame, read: Expression) -> md.Snapshot | None:
        """Delete the chosen rows, all of which match the filter `read`, by their positions."""
        return self.rule.commit(self.rule.find(chosen, read), (), read)

    def rewrite_without(
        self, chosen: DataFrame, read: Expression, others: Callable[[Collection[str]], DataFrame]
    ) -> md.Snapshot | None:
        """Delete the chosen rows, all of which match the filter `read`, and write the other rows of their files anew.

        `others` gives these rows of some files where Spark's own reader does not read them.
        """
        matches = self.rule.find(chosen, read)
        partly = {match.path: match.positions for match in matches if not match.is_whole_file}
        added = self.write(self.rows_but(partly, lambda: others(partly))) if partly else []
        return self.rule.commit(matches, added, read)

    def commit(
        self,
        touched: Mapping[str, DeletionVector] | Iterable[str],
        make: Callable[[], DataFrame | None],
        read: Expression,
        *,
        relies_on_read: bool = False,
    ) -> md.Snapshot | None:
        """Delete rows of the touched files, by positions unless these are rewritten, and add the rows that `make` returns."""
        positions = touched if isinstance(touched, Mapping) else dict.fromkeys(touched, DeletionVector())
        matches = self.rule.branch.located(positions, read)
        frame = make()
        added = [] if frame is None else self.write(frame)
        return self.rule.commit(matches, added, read, relies_on_read=relies_on_read)


def is_true(condition: Column | None) -> Column:
    """A condition as SQL means it where rows are chosen: unknown is false."""
    return lit(True) if condition is None else F.coalesce(condition, lit(False))


def are_few_positions(spark: SparkSession, count: int) -> bool:
    """Whether so many positions are better broadcast than shuffled."""
    return count * _BYTES_PER_POSITION <= _most_held(spark)


@contextmanager
def persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """A frame that is computed once, and again only if Spark loses part of it, which must yield the same rows."""
    held = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield held
    finally:
        held.unpersist()


@contextmanager
def fixed(frame: DataFrame) -> Iterator[DataFrame]:
    """A frame that is computed exactly once: a query that loses part of it fails, by an error that `is_loss` knows."""
    held = frame.localCheckpoint(eager=False)
    try:
        yield held
    finally:
        frame.sparkSession.sparkContext._jsc.sc().unpersistRDD(_held_as(held), False)


def is_loss(error: PySparkException | Py4JJavaError) -> bool:
    """Whether a query failed since part of a fixed frame was lost with an executor."""
    return _LOST in str(error)


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


def _most_held(spark: SparkSession) -> int:
    """The most bytes of held rows to broadcast; nothing if the session has that turned off."""
    limit = int(spark._jsparkSession.sessionState().conf().autoBroadcastJoinThreshold())
    return limit * _HELD_PER_COUNTED


def _held_as(held: DataFrame) -> int:
    """The id of the data of a fixed frame."""
    plan: JavaObject = held._jdf.queryExecution().logical()
    while plan.getClass().getSimpleName() == "SubqueryAlias":
        plan = plan.child()
    number: int = plan.rdd().id()
    return number
