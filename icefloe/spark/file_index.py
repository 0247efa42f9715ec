"""The files of a scan as Spark asks for them: a Python object that serves as the `FileIndex` of a relation.

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
from icefloe.spark.catalyst import tree
from icefloe.spark.directories import (
    constant_rows,
    file_statuses,
    hadoop_location,
    ints,
    partition_directories,
    true_indexes,
)
from icefloe.spark.gateway import Gateway, Returned, items
from icefloe.spark.inner_names import PREFIX
from icefloe.spark.predicates import table_filter
from icefloe.spark.types import TypeMapping, file_type
from icefloe.storage import check_regular

logger = logging.getLogger("icefloe.spark")

Facts: TypeAlias = tuple[Value | None, ...]
"""The values of the constants of a file."""
_MOST_BYTES_KEPT = 64 << 20
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
    live_rows: "LiveRows | None" = None
    """If deleted rows are left out by a reader of ours."""


@dataclass(frozen=True)
class LiveRows:
    """A reader that leaves deleted rows out (icefloe/spark/jvm/live_rows.java), and how to get those of a file for it."""

    entry: JavaObject
    deleted: Callable[[planning.FileScanTask], bytes]
    """A portable 32-bit roaring bitmap; nothing if all rows are live."""


class ScanFileIndex:
    """A `FileIndex` whose files are planned when Spark asks for them."""

    def __init__(self, gateway: Gateway, files: ScanFiles, check: Callable[[], None]) -> None:
        """`check` raises if Spark would misread the files under its settings at that time."""
        self._gateway = gateway
        self._files = files
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
            filters = [predicate for predicate in items(partition_filters) if not self._is_always_true(predicate)]
            return self._returned(self._listed(pushed, filters))
        except Exception:
            logger.exception("planning of %s failed", self._files.label)
            raise

    def rootPaths(self) -> JavaObject:  # noqa: N802  # Spark's name
        """Nothing is below it: Spark only shows it in `explain()`."""
        shown = self._shown()
        if shown not in self._roots:
            # Spark asks many times while it plans a query.
            path = self._gateway.jvm.org.apache.hadoop.fs.Path("icefloe", None, "/" + shown)
            self._roots = {shown: self._gateway.seq([path])}
        return self._returned(self._roots[shown])

    def inputFiles(self) -> JavaObject:  # noqa: N802  # Spark's name
        """All files, as `DataFrame.inputFiles` shows them."""
        tasks = self._files.plan(table_filter((), {}))
        return self._returned(self._gateway.texts([hadoop_location(task.file.file_path) for task in tasks]))

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

    def _shown(self) -> str:
        # Short, as Spark shows no more than a hundred characters of it.
        label = self._files.label
        shown = f"{label.table}@{label.snapshot_id} native, {label.part}"
        report = self._files.report()
        return (
            shown if report is None else f"{shown}, {report.counts.result_data_files}/{report.counts.data_files} files"
        )

    def _facts(self, tasks: Sequence[planning.FileScanTask], constants: Sequence[Constant]) -> list[Facts]:
        """The constants of each file; some are read from a store, so several at once."""
        workers = default_workers() if constants else 1
        return list(parallel.in_order(lambda task: tuple(constant.of(task) for constant in constants), tasks, workers))

    def _listed(self, pushed: Expression, filters: Sequence[JavaObject]) -> JavaObject:
        """The Java directories for a filter, kept for queries with the same filter, as a snapshot never changes."""
        if not filters and pushed in self._listings:
            return self._listings[pushed]
        tasks = self._files.plan(pushed)
        for predicate in filters:
            tasks = self._matching(tasks, predicate)
        # Spark's reader would wait for the other end of a pipe.
        check_regular(task.file.file_path for task in tasks)
        groups: dict[Facts, list[planning.FileScanTask]] = {}
        for task, values in zip(tasks, self._facts(tasks, self._files.constants), strict=True):
            groups.setdefault(values, []).append(task)
        directories, size = self._directories(groups)
        if not filters and size <= _MOST_BYTES_KEPT:
            self._listings = {pushed: directories}
        return directories

    def _directories(self, groups: Mapping[Facts, Sequence[planning.FileScanTask]]) -> tuple[JavaObject, int]:
        """The Java directories of files with the same constants, and how many bytes say which of their rows are deleted."""
        tasks = [task for members in groups.values() for task in members]
        statuses = file_statuses(self._gateway, [(task.file.file_path, task.file.file_size_in_bytes) for task in tasks])
        rows, sizes = self._rows(list(groups)), [len(members) for members in groups.values()]
        live = self._files.live_rows
        if live is None:
            size = sum(len(value) for values in groups for value in values if isinstance(value, bytes))
            return partition_directories(self._gateway, rows, statuses, sizes), size
        deleted = list(parallel.in_order(live.deleted, tasks, default_workers()))
        lengths = list(map(len, deleted))
        constants = (
            self._gateway.array(self._gateway.jvm.org.apache.spark.sql.catalyst.InternalRow, rows)
            if isinstance(rows, list)
            else rows
        )
        return live.entry.directories(constants, statuses, ints(sizes), b"".join(deleted), ints(lengths)), sum(lengths)

    def _rows(self, facts: list[Facts]) -> JavaArray | list[JavaObject]:
        """The constants of files as Catalyst's rows."""
        if not self._files.constants:
            return [self._gateway.cached("no constants", lambda: constant_rows(self._gateway, (), [()])[0])] * len(
                facts
            )
        return constant_rows(self._gateway, [constant.data_type for constant in self._files.constants], facts)

    def _is_always_true(self, predicate: JavaObject) -> bool:
        """Whether it only says that a constant of every file is not null, as Spark adds on its own."""
        shape = [node.name for node in tree(predicate).walk()]
        return shape == ["IsNotNull", "AttributeReference"] and self._asked(predicate)[1][0].is_always

    def _asked(self, predicate: JavaObject) -> tuple[list[JavaObject], list[Constant]]:
        """The attributes of a predicate, and their constants."""
        attributes = items(predicate.references().toSeq())
        by_name = {constant.name: constant for constant in self._files.constants}
        return attributes, [by_name[attribute.name()] for attribute in attributes]

    def _matching(
        self, tasks: Sequence[planning.FileScanTask], predicate: JavaObject
    ) -> Sequence[planning.FileScanTask]:
        """The files for which a Catalyst predicate on constant columns is true, evaluated by Catalyst itself."""
        attributes, constants = self._asked(predicate)
        expressions = self._gateway.expressions
        known = getattr(expressions, "package$AttributeSeq")(self._gateway.seq(attributes))
        bound = expressions.InterpretedPredicate(expressions.BindReferences.bindReference(predicate, known, False))
        facts = self._facts(tasks, constants)
        rows = constant_rows(self._gateway, [constant.data_type for constant in constants], facts)
        return [tasks[index] for index in true_indexes(self._gateway, bound, rows, len(tasks))]
