"""The files of a scan as Spark asks for them: a Python object that serves as the `FileIndex` of a relation.

Spark calls `listFiles` while it plans a query, with all predicates that it could push down, and that is when the table is
planned. Predicates on constant columns alone are not applied by Spark again, so they are applied here, exactly.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from icefloe.data import default_workers
from icefloe.expressions import Expression
from icefloe.parallel import in_order
from icefloe.planning import FileScanTask, ScanReport
from icefloe.schema import NestedField
from icefloe.spark.catalyst_tree import tree
from icefloe.spark.constant_rows import constant_rows
from icefloe.spark.constants import Constant, schema_of
from icefloe.spark.directories import partition_directories, true_places
from icefloe.spark.file_statuses import file_statuses, hadoop_location
from icefloe.spark.gateway import Gateway, Returned
from icefloe.spark.predicates import table_filter
from icefloe.storage import check_regular

logger = logging.getLogger("icefloe.spark")

_MOST_BYTES_KEPT = 64 << 20
"""Bitmaps of deleted rows beyond this are not kept in the JVM for the next query."""


class FilesOf(Protocol):
    """From the filter of a query to the files that it needs."""

    def __call__(self, pushed: Expression, /) -> Sequence[FileScanTask]:
        """The files."""
        ...


@dataclass(frozen=True, slots=True)
class IndexLabel:
    """What `explain()` shows, and what two indexes that give the same files have in common."""

    table: str
    snapshot_id: int | None
    part: str
    identity: str
    """Tells apart what the rest does not show: the table's uuid, its schema, filters, constants."""

    def __str__(self) -> str:
        return f"icefloe {self.table}, snapshot {self.snapshot_id}, engine native, {self.part} [{self.identity}]"


class ScanFileIndex:
    """A `FileIndex` whose files are planned when Spark asks for them."""

    def __init__(
        self,
        gateway: Gateway,
        label: IndexLabel,
        files_of: FilesOf,
        columns: Mapping[str, NestedField],
        constants: Sequence[Constant],
        size: int,
        report: Callable[[], ScanReport | None],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """`check` raises if Spark would misread the files under its settings at that time."""
        self._gateway = gateway
        self._label = label
        self._files_of = files_of
        self._columns = columns
        self._constants = tuple(constants)
        self._size = size
        self._report = report
        self._check = check
        self._returned = Returned()
        self._made: dict[Expression, Any] = {}
        self._roots: dict[str, Any] = {}

    # -- what Spark calls, by its names

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:  # noqa: N802  # Spark's name
        """The files for these predicates, with their constants."""
        try:
            self._check()
            pushed = table_filter(_items(data_filters), self._columns)
            asked = [predicate for predicate in _items(partition_filters) if not self._is_always_true(predicate)]
            return self._returned(self._listed(pushed, asked))
        except Exception:
            logger.exception("planning of %s failed", self._label)
            raise

    def rootPaths(self) -> Any:  # noqa: N802  # Spark's name
        """Nothing is below it: Spark only shows it in `explain()`."""
        shown = self._shown()
        if shown not in self._roots:
            # Spark asks many times while it plans a query.
            path = self._gateway.jvm.org.apache.hadoop.fs.Path("icefloe", None, "/" + shown)
            self._roots = {shown: self._gateway.seq([path])}
        return self._returned(self._roots[shown])

    def inputFiles(self) -> Any:  # noqa: N802  # Spark's name
        """All files, as `DataFrame.inputFiles` shows them."""
        tasks = self._files_of(table_filter((), {}))
        places = [hadoop_location(task.file.file_path) for task in tasks]
        return self._returned(self._gateway.texts(places))

    def refresh(self) -> None:
        """A snapshot never changes."""

    def sizeInBytes(self) -> int:  # noqa: N802  # Spark's name
        """For Spark's choice of joins."""
        return self._size

    def partitionSchema(self) -> Any:  # noqa: N802  # Spark's name
        """The constant columns."""
        return self._gateway.type(schema_of(self._constants))

    def isTimeTravel(self) -> bool:  # noqa: N802  # Spark's name
        """Not in Spark's sense."""
        return False

    def metadataOpsTimeNs(self) -> Any:  # noqa: N802  # Spark's name
        """Not measured for Spark: reports are for that."""
        return self._gateway.none()

    def toString(self) -> str:  # noqa: N802  # Java's name
        """The label, by which equal indexes are known."""
        return str(self._label)

    def hashCode(self) -> int:  # noqa: N802  # Java's name
        """Equal for equal labels, whichever process asks."""
        return sum((index + 1) * byte for index, byte in enumerate(str(self._label).encode())) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        """Whether another index has the same files, so that Spark can reuse its plans."""
        if isinstance(other, ScanFileIndex):
            return other._label == self._label
        return other is not None and str(other.toString()) == str(self._label)

    class Java:
        """What py4j makes of it."""

        implements = ("org.apache.spark.sql.execution.datasources.FileIndex",)

    # -- how

    def _shown(self) -> str:
        # Short, as Spark shows no more than a hundred characters of it.
        label = self._label
        shown = f"{label.table}@{label.snapshot_id} native, {label.part}"
        report = self._report()
        return (
            shown if report is None else f"{shown}, {report.counts.result_data_files}/{report.counts.data_files} files"
        )

    def _facts(self, tasks: Sequence[FileScanTask], constants: Sequence[Constant]) -> list[tuple[Any, ...]]:
        """The constants of each file; some are read from a store, so several at once."""
        workers = default_workers() if constants else 1
        return list(in_order(lambda task: tuple(constant.of(task) for constant in constants), tasks, workers))

    def _listed(self, pushed: Expression, filters: Sequence[Any]) -> Any:
        """The Java directories for a filter, kept for queries with the same filter, as a snapshot never changes."""
        if not filters and pushed in self._made:
            return self._made[pushed]
        tasks = self._files_of(pushed)
        for predicate in filters:
            tasks = self._kept(tasks, predicate)
        # Spark's reader would wait for the other end of a pipe.
        check_regular(task.file.file_path for task in tasks)
        groups: dict[tuple[Any, ...], list[FileScanTask]] = {}
        for task, values in zip(tasks, self._facts(tasks, self._constants), strict=True):
            groups.setdefault(values, []).append(task)
        directories = self._directories(groups)
        size = sum(len(value) for values in groups for value in values if isinstance(value, bytes))
        if not filters and size <= _MOST_BYTES_KEPT:
            self._made = {pushed: directories}
        return directories

    def _directories(self, groups: Mapping[tuple[Any, ...], Sequence[FileScanTask]]) -> Any:
        gateway = self._gateway
        statuses = file_statuses(gateway, [_place(task) for members in groups.values() for task in members])
        rows = self._rows(list(groups))
        return partition_directories(gateway, rows, statuses, list(map(len, groups.values())))

    def _rows(self, facts: list[tuple[Any, ...]]) -> Any:
        """The constants of files as Catalyst's rows."""
        if not self._constants:
            return [self._gateway.kept("no constants", lambda: constant_rows(self._gateway, (), [()])[0])] * len(facts)
        return constant_rows(self._gateway, [constant.kind for constant in self._constants], facts)

    def _is_always_true(self, predicate: Any) -> bool:
        """Whether it only says, as Spark adds by itself, that a constant which every file has is not null."""
        shape = [node.name for node in tree(predicate).walk()]
        return shape == ["IsNotNull", "AttributeReference"] and self._asked(predicate)[1][0].is_always

    def _asked(self, predicate: Any) -> tuple[list[Any], list[Constant]]:
        """The attributes of a predicate, and the constants that they are."""
        attributes = _items(predicate.references().toSeq())
        by_name = {constant.name: constant for constant in self._constants}
        return attributes, [by_name[attribute.name()] for attribute in attributes]

    def _kept(self, tasks: Sequence[FileScanTask], predicate: Any) -> Sequence[FileScanTask]:
        """The files for which a Catalyst predicate on constant columns is true, asked by Catalyst itself."""
        attributes, asked = self._asked(predicate)
        expressions = self._gateway.jvm.org.apache.spark.sql.catalyst.expressions
        known = getattr(expressions, "package$AttributeSeq")(self._gateway.seq(attributes))
        bound = expressions.InterpretedPredicate(expressions.BindReferences.bindReference(predicate, known, False))
        facts = self._facts(tasks, asked)
        rows = constant_rows(self._gateway, [constant.kind for constant in asked], facts)
        return [tasks[index] for index in true_places(self._gateway, bound, rows, len(tasks))]


def _place(task: FileScanTask) -> tuple[str, int]:
    return task.file.file_path, task.file.file_size_in_bytes


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]
