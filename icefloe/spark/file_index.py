"""The files of a scan as Spark asks for them, and a Python object that serves as the `FileIndex` of a relation.

Spark calls `listFiles` while it plans a query, with all predicates that it could push down, and that is when the table is
planned. Facts about a file reach executors with it, as columns that are constant in the file. Predicates on constant columns
alone are not applied by Spark again, so they are applied here, exactly.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from py4j.java_collections import JavaArray
from py4j.java_gateway import JavaObject
from pyspark.sql import types as spark_types

from icefloe import parallel, planning
from icefloe.data import default_workers
from icefloe.expressions import Expression
from icefloe.schema import NestedField, Value
from icefloe.spark.catalyst import Node, tree
from icefloe.spark.directories import constant_rows, file_statuses, hadoop_location, partition_directories, true_indexes
from icefloe.spark.gateway import Gateway, Returned, items
from icefloe.spark.inner_names import PREFIX
from icefloe.spark.metadata_answers import Aggregate
from icefloe.spark.predicates import table_filter
from icefloe.spark.types import TypeMapping, file_type
from icefloe.storage import check_regular

logger = logging.getLogger("icefloe.spark")

Facts: TypeAlias = tuple[Value | None, ...]
"""The values of the constants of a file."""
MOST_BYTES_KEPT = 64 << 20
"""Bitmaps of deleted rows beyond this are not kept in the JVM for the next query."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A column of facts about files: its name, its Spark type, and how to get its value, in plain Python, from a task."""

    name: str
    data_type: spark_types.DataType
    of: Callable[[planning.FileScanTask], Value | None]
    is_always: bool = False
    """Whether every file has a value."""


def schema_of(constants: Sequence[Constant]) -> spark_types.StructType:
    """The constants as a Spark schema."""
    return spark_types.StructType(
        [spark_types.StructField(constant.name, constant.data_type, not constant.is_always) for constant in constants]
    )


FILE = Constant(f"{PREFIX}file", spark_types.StringType(), lambda task: task.file.file_path, True)
SPEC_ID = Constant(f"{PREFIX}spec_id", spark_types.IntegerType(), lambda task: task.spec_id, True)
FIRST_ROW_ID = Constant(f"{PREFIX}first_row_id", spark_types.LongType(), lambda task: task.first_row_id)
SEQUENCE_NUMBER = Constant(f"{PREFIX}sequence_number", spark_types.LongType(), lambda task: task.known_sequence_number)


def partition_constants(
    fields: Sequence[NestedField],
    partition_of: Callable[[planning.FileScanTask], dict[int, Value | None]],
    mapping: TypeMapping,
) -> list[Constant]:
    """One constant for each field of the partitions of all specs."""
    return [
        Constant(
            f"{PREFIX}partition_{index}",
            file_type(field.field_type, mapping),
            lambda task, field=field: partition_of(task).get(field.field_id),  # type: ignore[misc]
        )
        for index, field in enumerate(fields)
    ]


@dataclass(frozen=True, slots=True)
class IndexLabel:
    """What `explain()` shows, and what indexes of the same files have in common."""

    table: str
    snapshot_id: int | None
    part: str
    identity: str
    """Distinguishes what the rest does not show: the table's uuid, its schema, filters, constants."""

    def __str__(self) -> str:
        return f"icefloe {self.table}, snapshot {self.snapshot_id}, engine native, {self.part} [{self.identity}]"


@dataclass(frozen=True)
class ScanFiles:
    """The files of a relation: how they are planned for the filter of a query, and what Spark learns about them."""

    label: IndexLabel
    plan: Callable[[Expression], Sequence[planning.FileScanTask]]
    constants: Sequence[Constant]
    size: int = 0
    columns: Mapping[str, NestedField] = field(default_factory=dict)
    """Columns that filters may be about, by name."""
    report: Callable[[], planning.ScanReport | None] = lambda: None
    """What the newest plan did."""
    deleted: Callable[[Sequence[planning.FileScanTask]], list[bytes]] | None = None
    """If a reader of ours leaves out deleted rows: those of each file, as a portable 32-bit roaring bitmap, or nothing."""
    key: Callable[[planning.FileScanTask], bytes] | None = None
    """If the files are encrypted: the key of one, sealed for the JVM."""
    first: Callable[[int], Sequence[planning.FileScanTask]] | None = None
    """Files that are enough for so many rows, if that can be told."""
    aggregates: Callable[[Expression, Sequence[Aggregate]], list[Value | None] | None] | None = None
    """Aggregates of the rows that match a filter, if metadata answers them."""
    groups: Callable[[Sequence[planning.FileScanTask]], str | None] | None = None
    """By which columns files are partitioned, and the partition of each."""
    statistics: Callable[[Expression], JavaObject | None] | None = None
    """The entry of a catalog that tells Spark of the rows and columns of the files for a filter."""
    narrows: Callable[[NestedField, Expression], bool] = lambda _field, _where: True
    """Whether values of a column are likely to leave out some of the files for a filter."""


class FileLister:
    """Answers what Spark asks about the files of a relation, for whatever stands before Spark as its `FileIndex`."""

    def __init__(self, gateway: Gateway, files: ScanFiles) -> None:
        self.gateway = gateway
        self.files = files

    def shown(self) -> str:
        """What plans show; short, as Spark shows no more than a hundred characters of it."""
        label = self.files.label
        shown = f"{label.table}@{label.snapshot_id} native, {label.part}"
        report = self.files.report()
        return (
            shown if report is None else f"{shown}, {report.counts.result_data_files}/{report.counts.data_files} files"
        )

    def locations(self) -> list[str]:
        """All files, as `DataFrame.inputFiles` shows them."""
        return [hadoop_location(task.file.file_path) for task in self.files.plan(table_filter((), {}))]

    def groups(self, pushed: Expression, filters: Sequence[JavaObject]) -> dict[Facts, list[planning.FileScanTask]]:
        """The files for a filter and for Catalyst predicates on constants, by their constants."""
        tasks = self.files.plan(pushed)
        for predicate in filters:
            tasks = self._matching(tasks, predicate)
        return self.grouped(tasks)

    def grouped(self, tasks: Sequence[planning.FileScanTask]) -> dict[Facts, list[planning.FileScanTask]]:
        """Files by their constants."""
        # Spark's reader would wait for the other end of a pipe.
        check_regular(task.file.file_path for task in tasks)
        groups: dict[Facts, list[planning.FileScanTask]] = {}
        for task, values in zip(tasks, self._facts(tasks, self.files.constants), strict=True):
            groups.setdefault(values, []).append(task)
        return groups

    def is_always_true(self, predicate: Node) -> bool:
        """Whether it only says that a constant of every file is not null, as Spark adds on its own."""
        nodes = list(predicate.walk())
        if [node.name for node in nodes] != ["IsNotNull", "AttributeReference"]:
            return False
        return any(constant.is_always and constant.name == nodes[1].facts["name"] for constant in self.files.constants)

    def _facts(self, tasks: Sequence[planning.FileScanTask], constants: Sequence[Constant]) -> list[Facts]:
        """The constants of each file; some are read from a store, so several at once."""
        if not constants:
            return [()] * len(tasks)
        return list(
            parallel.in_order(lambda task: tuple(constant.of(task) for constant in constants), tasks, default_workers())
        )

    def _matching(
        self, tasks: Sequence[planning.FileScanTask], predicate: JavaObject
    ) -> Sequence[planning.FileScanTask]:
        """The files for which a Catalyst predicate on constant columns is true, evaluated by Catalyst itself."""
        attributes = items(predicate.references().toSeq())
        by_name = {constant.name: constant for constant in self.files.constants}
        constants = [by_name[attribute.name()] for attribute in attributes]
        expressions = self.gateway.expressions
        known = getattr(expressions, "package$AttributeSeq")(self.gateway.seq(attributes))
        bound = expressions.InterpretedPredicate(expressions.BindReferences.bindReference(predicate, known, False))
        facts = self._facts(tasks, constants)
        rows = constant_rows(self.gateway, [constant.data_type for constant in constants], facts)
        return [tasks[index] for index in true_indexes(self.gateway, bound, rows, len(tasks))]


class ScanFileIndex:
    """A `FileIndex` in Python, whose files are planned when Spark asks for them; for sessions without Java classes of ours."""

    def __init__(self, lister: FileLister, check: Callable[[], None]) -> None:
        """`check` raises if Spark would misread the files under its settings at that time."""
        self._lister = lister
        self._gateway = lister.gateway
        self._files = lister.files
        self._check = check
        self._returned = Returned()
        self._listings: dict[Expression, JavaObject] = {}
        self._roots: dict[str, JavaObject] = {}

    # -- what Spark calls, by its names

    def listFiles(  # noqa: N802  # Spark's name
        self, partition_filters: JavaObject, data_filters: JavaObject
    ) -> JavaObject:
        """The files for these predicates, with their constants."""
        try:
            self._check()
            pushed = table_filter(items(data_filters), self._files.columns, for_files_only=True)
            filters = [
                predicate for predicate in items(partition_filters) if not self._lister.is_always_true(tree(predicate))
            ]
            return self._returned(self._listed(pushed, filters))
        except Exception:
            logger.exception("planning of %s failed", self._files.label)
            raise

    def rootPaths(self) -> JavaObject:  # noqa: N802  # Spark's name
        """Nothing is below it: Spark only shows it in `explain()`."""
        shown = self._lister.shown()
        if shown not in self._roots:
            # Spark asks many times while it plans a query.
            path = self._gateway.jvm.org.apache.hadoop.fs.Path("icefloe", None, "/" + shown)
            self._roots = {shown: self._gateway.seq([path])}
        return self._returned(self._roots[shown])

    def inputFiles(self) -> JavaObject:  # noqa: N802  # Spark's name
        """All files."""
        return self._returned(self._gateway.texts(self._lister.locations()))

    def refresh(self) -> None:
        """A snapshot never changes."""

    def sizeInBytes(self) -> int:  # noqa: N802  # Spark's name
        """For Spark's choice of joins."""
        return self._files.size

    def partitionSchema(self) -> JavaObject:  # noqa: N802  # Spark's name
        """The constant columns."""
        return self._gateway.type(schema_of(self._files.constants))

    def isTimeTravel(self) -> bool:  # noqa: N802  # Spark's name
        """Not in Spark's sense."""
        return False

    def metadataOpsTimeNs(self) -> JavaObject:  # noqa: N802  # Spark's name
        """Not measured for Spark: reports are for that."""
        return self._gateway.none()

    def toString(self) -> str:  # noqa: N802  # Java's name
        """The label, by which equal indexes are recognized."""
        return str(self._files.label)

    def hashCode(self) -> int:  # noqa: N802  # Java's name
        """Equal for equal labels, whichever process asks."""
        return sum((index + 1) * byte for index, byte in enumerate(str(self._files.label).encode())) & 0x7FFFFFFF

    def equals(self, other: JavaObject | None) -> bool:
        """Whether another index has the same files, so that Spark can reuse its plans."""
        if isinstance(other, ScanFileIndex):
            return other._files.label == self._files.label
        return other is not None and str(other.toString()) == str(self._files.label)

    class Java:
        """What py4j makes of it."""

        implements = ("org.apache.spark.sql.execution.datasources.FileIndex",)

    # -- planning

    def _listed(self, pushed: Expression, filters: Sequence[JavaObject]) -> JavaObject:
        """The Java directories for a filter, kept for queries with the same filter, as a snapshot never changes."""
        if not filters and pushed in self._listings:
            return self._listings[pushed]
        groups = self._lister.groups(pushed, filters)
        files = [(task.file.file_path, task.file.file_size_in_bytes) for members in groups.values() for task in members]
        directories = partition_directories(
            self._gateway,
            self._rows(list(groups)),
            file_statuses(self._gateway, files),
            [len(members) for members in groups.values()],
        )
        size = sum(len(value) for values in groups for value in values if isinstance(value, bytes))
        if not filters and size <= MOST_BYTES_KEPT:
            self._listings = {pushed: directories}
        return directories

    def _rows(self, facts: list[Facts]) -> JavaArray | list[JavaObject]:
        """The constants of files as Catalyst's rows."""
        if not self._files.constants:
            return [self._gateway.cached("no constants", lambda: constant_rows(self._gateway, (), [()])[0])] * len(
                facts
            )
        return constant_rows(self._gateway, [constant.data_type for constant in self._files.constants], facts)
