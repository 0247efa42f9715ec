"""`MERGE` on Spark: which clause each pair of rows falls to, what becomes of it, and what is added.

The source is computed once and held, whatever its query is. The target is joined with it once, and every condition is
evaluated there once, so that all later steps follow the same decisions: source rows without a match are identified by the
numbers that they were given, and, for copy-on-write, the other rows of changed files by the positions of the changed ones.

As soon as the source is held its size is known. A small one is sent to all tasks, and all that follows is planned once.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, reduce

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, functions as F  # noqa: N812  # its usual name

from icefloe import errors, metadata as md
from icefloe.data import write_default
from icefloe.expressions import AlwaysTrue, Expression
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.rows import MERGE
from icefloe.schema import NestedField, Schema
from icefloe.spark import row_level, row_statements
from icefloe.spark.column_names import Qualifier, bare_path, take_in_columns
from icefloe.spark.distribution import distribution_of
from icefloe.spark.gateway import col, lit, when, without_call_sites
from icefloe.spark.jvm.door import in_session
from icefloe.spark.row_filters import check_deterministic, check_deterministic_join, key_filter
from icefloe.spark.row_positions import FILE, POS, Gathered, gathered
from icefloe.spark.shaping import frame_columns
from icefloe.spark.spark_sessions import is_case_sensitive, static_session
from icefloe.spark.store_assignment import check_left_out
from icefloe.spark.types import mapping_of
from icefloe.spark.user_side import quoted_name
from icefloe.table import Transaction

logger = logging.getLogger("icefloe.spark")

SOURCE = "__icefloe_source"
ACTION = "__icefloe_action"
NEW = "__icefloe_new_"
MATCHED = "__icefloe_matched_"
_NOTHING = -1
_MOST_LOSSES = 3
"""How often a statement begins again that lost what it held of its source."""
_HELD_PER_TASK = 4 << 20
"""Bytes that are held of the source for a task that adds rows of it, so that a small one does not make many small files."""


class Action(Enum):
    """The action of a clause."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True)
class Clause:
    """One WHEN: the first whose condition is true counts. Without assignments it means every column (`*`)."""

    action: Action
    condition: Column | None = None
    assignments: tuple[row_statements.Assignment, ...] | None = None


@dataclass(frozen=True)
class Merge:
    """A MERGE statement: `matched`, `not_matched` and `by_source` are its clauses, each in order."""

    on: Column
    matched: tuple[Clause, ...] = ()
    not_matched: tuple[Clause, ...] = ()
    by_source: tuple[Clause, ...] = ()
    target_alias: Qualifier | None = None
    source_alias: Qualifier | None = None
    evolves: bool = False
    """Whether the table takes in the columns of the source that it lacks and the clauses name, and wider types."""


@without_call_sites()
def merge_rows(target: row_level.TargetTable, source: DataFrame, merge: Merge) -> md.Snapshot | None:
    """Run a MERGE into a table in one commit; None if it changes nothing."""

    def run(tx: Transaction) -> md.Snapshot | None:
        if merge.evolves and (wanted := _columns_to_merge(merge, source)):
            take_in_columns(tx, source.select(*wanted))
        for _ in range(_MOST_LOSSES):
            try:
                return _merged(target.change(MERGE, tx), source, merge)
            except (PySparkException, Py4JJavaError) as error:
                if not row_level.is_loss(error):
                    raise
                # Nothing is added to the transaction yet, so the statement begins again, with its source computed anew.
                logger.warning("MERGE INTO %s lost rows of its source with an executor, and begins again", target.table)
        return _merged(target.change(MERGE, tx), source, merge)

    return target.run(run)


def _merged(change: row_level.FrameChange, source: DataFrame, merge: Merge) -> md.Snapshot | None:
    merge = _with_exact_names(merge, change)
    _check(merge, source, change.schema)
    with row_level.fixed(source.withColumn(SOURCE, F.monotonically_increasing_id())) as held:
        static = replace(change, spark=static_session(change.spark))
        asked = _Merging(static, merge, in_session(held, static.spark))
        asked.check_left_out()
        asked.check_deterministic()
        read = asked.read_filter()
        if row_level.held_bytes(held) is None:
            # No key was asked for; the source is computed now, so that its size is known.
            asked.held.count()
        merging = asked if row_level.is_small(held) else _Merging(change, merge, held)
        return _run(merging, read, change.spark)


def _columns_to_merge(merge: Merge, source: DataFrame) -> list[str]:
    """The columns that the table may take in: all of the source if a clause says `*`, else those that are assigned."""
    clauses = [clause for clause in (*merge.matched, *merge.not_matched) if clause.action is not Action.DELETE]
    key = _key(source)
    paths = [assignment.path for clause in clauses for assignment in clause.assignments or ()]
    # What comes first in a name may be the table or a column that has fields.
    named = {key(name) for path in paths for name in (path[0], bare_path(path, merge.target_alias)[0])}
    has_star = any(clause.assignments is None for clause in clauses)
    return [quoted_name(name) for name in source.columns if has_star or key(name) in named]


@dataclass(frozen=True)
class _Merging:
    """A merge under way: `held` are the numbered rows of the source, all of which `change` sends to all tasks if it can."""

    change: row_level.FrameChange
    merge: Merge
    held: DataFrame

    @property
    def schema(self) -> Schema:
        return self.change.schema

    @cached_property
    def source(self) -> DataFrame:
        """The source with each column once more under a name of ours, under its alias."""
        copies = {f"{NEW}{index}": col(quoted_name(name)) for index, name in enumerate(_names(self.held))}
        rows = self.held.withColumns(copies)
        return row_statements.aliased(rows, self.merge.source_alias)

    @cached_property
    def blank(self) -> DataFrame:
        """The columns of the target, without rows."""
        return self.target(self.change.blank())

    @cached_property
    def joined(self) -> DataFrame:
        """The columns of the pairs of rows that the merge looks at, without rows of the target."""
        return self.blank.join(self.source, self.merge.on)

    def check_deterministic(self) -> None:
        """Raise if a condition is not deterministic."""
        merge = self.merge
        try:
            check_deterministic_join(self.joined, merge.on, "MERGE")
        except PySparkException:
            # Spark has no joins by such conditions; it does not say so in words of a MERGE.
            check_deterministic(self.blank.crossJoin(self.source), (merge.on,), "MERGE")
            raise
        check_deterministic(self.joined, _conditions(merge.matched), "MERGE")
        check_deterministic(self.source, _conditions(merge.not_matched), "MERGE")
        check_deterministic(self.blank, _conditions(merge.by_source), "MERGE")

    def check_left_out(self) -> None:
        """Raise if new rows have no value for a column that needs one."""
        for clause in self.merge.not_matched:
            names = {assignment.path[0] for assignment in self._assignments(clause)}
            check_left_out(self.change.spark, self.schema, names, self.change.table)

    def read_filter(self) -> Expression:
        """A filter that matches all rows that the merge reads, from its join keys where possible."""
        if self.merge.by_source:
            return AlwaysTrue()
        return key_filter(self.joined, self.blank, self.source, self.schema)

    def target(self, rows: DataFrame) -> DataFrame:
        return row_statements.aliased(row_statements.with_old(rows, self.change.columns), self.merge.target_alias)

    @property
    def target_clauses(self) -> tuple[Clause, ...]:
        """The clauses that change rows of the target."""
        return (*self.merge.matched, *self.merge.by_source)

    @property
    def updates(self) -> bool:
        """Whether rows of the target get other values."""
        return any(clause.action is Action.UPDATE for clause in self.target_clauses)

    @property
    def row_ids(self) -> list[Column]:
        """The ids that updated rows keep."""
        return [col(row_level.LINEAGE[0])] if self.updates and self.change.rule.has_lineage else []

    def clause_of(self, clauses: Sequence[Clause], first: int = 0) -> Column:
        """The index of the first clause whose condition is true."""
        tests = {index: row_level.is_true(clause.condition) for index, clause in enumerate(clauses, first)}
        return _choice(tests, {index: lit(index) for index in tests}, lit(_NOTHING))

    def values(
        self, rows: DataFrame, clauses: Sequence[Clause], action: Column, first: int = 0
    ) -> tuple[DataFrame, dict[str, Column]]:
        """Each column as the clause of a row says; null where none updates it, so that a column is read only if it is kept."""
        updates = {index: clause for index, clause in enumerate(clauses, first) if clause.action is Action.UPDATE}
        assigned = [self._assignments(clause) for clause in updates.values()]
        are_stars = [clause.assignments is None for clause in updates.values()]
        wider, new = row_statements.new_values(
            rows, assigned, self.change.assigner(evolves=self.merge.evolves), are_stars
        )
        old = row_statements.old_values(self.schema)
        tests = {index: action == index for index in updates}
        return wider, {
            name: _choice(tests, {index: row.get(name, old[name]) for index, row in zip(updates, new, strict=True)})
            for name in self.change.columns
        }

    def _assignments(self, clause: Clause) -> tuple[row_statements.Assignment, ...]:
        if clause.assignments is not None:
            return clause.assignments
        return tuple(row_statements.Assignment((name,), column) for name, column in self.star().items())

    def star(self) -> dict[str, Column]:
        """Each column of the table from the source's column of the same name, where there is one."""
        key = _key(self.source)
        copies = {key(name): f"{NEW}{index}" for index, name in enumerate(_names(self.source))}
        return {name: col(copies[key(name)]) for name in self.change.columns if key(name) in copies}

    def inserts(self, matched: DataFrame) -> DataFrame | None:
        """The rows to add: those of the source that nothing matched, by the clauses for them."""
        clauses = self.merge.not_matched
        if not clauses:
            return None
        rest = row_statements.aliased(self.source.join(matched, SOURCE, "left_anti"), self.merge.source_alias)
        rest = rest.withColumn(ACTION, self.clause_of(clauses)).filter(col(ACTION) != _NOTHING)
        # One choice for each column, and not a query for each clause: a row then falls to one of them, whatever they ask.
        rest, inserted = self._inserted(rest, clauses)
        columns = [self._insert(field, inserted).alias(field.name) for field in self.schema.fields]
        if self.change.rule.has_lineage:
            columns += [lit(None).cast("bigint").alias(name) for name in row_level.LINEAGE]
        return rest.select(*columns)

    def _insert(self, field: NestedField, inserted: Sequence[Mapping[str, Column]]) -> Column:
        """The value of a column in new rows; a single clause applies to all of them, and what none gives is the default."""
        values = {index: columns[field.name] for index, columns in enumerate(inserted) if field.name in columns}
        if len(inserted) == len(values) == 1:
            return values[0]
        tests = {index: col(ACTION) == index for index in values}
        default = row_statements.default_column(write_default(field), field.field_type, mapping_of(self.change.spark))
        return _choice(tests, values, default)

    def _inserted(self, rows: DataFrame, clauses: Sequence[Clause]) -> tuple[DataFrame, list[dict[str, Column]]]:
        """For each clause, its values for the table's columns, over the rows to add."""
        assigner = self.change.assigner(evolves=self.merge.evolves)
        shown = []
        for clause in clauses:
            values = {assignment.path: assignment.value for assignment in self._assignments(clause)}
            if nested := [path for path in values if len(path) > 1]:
                raise errors.InvalidInputError(f"INSERT of a MERGE gives whole columns, not {'.'.join(nested[0])!r}")
            shown.append(assigner.shown(rows, values))
        wider, expressions = assigner.resolved(rows, [value for columns in shown for value in columns.values()])
        resolved = iter(expressions)
        return wider, [assigner.inserted({path[0]: next(resolved) for path in columns}) for columns in shown]


# -- from pairs of rows to a commit


def _run(merging: _Merging, read: Expression, spark: SparkSession) -> md.Snapshot | None:
    change = merging.change
    with row_level.persisted(_decided(merging, read, is_static=change.spark is not spark)) as decided:
        matches = gathered(decided, col(ACTION) != _NOTHING)
        _check_cardinality(matches, merging.merge.matched)
        positions = matches.chosen
        rows = _Rows(merging, decided, matches, spark)
        replaced = positions if change.rule.copies else None
        # A source row whose match is left alone is not inserted: that must be right when it is committed, too.
        return change.commit(positions, lambda: rows.frame(replaced), read, relies_on_read=matches.leaves_rows())


@dataclass(frozen=True)
class _Rows:
    """The rows that a merge writes, in the session `spark` of the user unless their plan needs no adapting."""

    merging: _Merging
    decided: DataFrame
    matches: Gathered
    spark: SparkSession

    @property
    def are_few(self) -> bool:
        """Whether what was decided is small enough to be sent to all tasks, as the source is."""
        change = self.merging.change
        return change.spark is not self.spark and row_level.are_few_positions(change.spark, len(self.matches))

    def frame(self, replaced: Mapping[str, DeletionVector] | None = None) -> DataFrame | None:
        """The rows as they are to be; with those that stay of files that are replaced, where others change at these positions."""
        change = self.merging.change
        others = change.rows_but(replaced, lambda: self._others(replaced)) if replaced else None
        rows = _union([others, _updates(self.decided, self.merging.target_clauses, change), self._inserts()])
        if rows is None:
            return None
        is_spread = distribution_of(change.rule.metadata).mode != "none"
        return in_session(rows, self.spark) if is_spread or not self.are_few else rows

    def _others(self, files: Iterable[str]) -> DataFrame:
        return self.merging.change.others(files, self.decided.filter(col(ACTION) != _NOTHING))

    def _inserts(self) -> DataFrame | None:
        matched = self.decided.select(SOURCE)
        rows = self.merging.inserts(F.broadcast(matched) if self.are_few else matched)
        size = row_level.held_bytes(self.merging.held)
        if rows is None or size is None or not self.are_few:
            return rows
        return rows.coalesce(size // _HELD_PER_TASK + 1)


def _decided(merging: _Merging, read: Expression, *, is_static: bool) -> DataFrame:
    """Each pair of a target row and a source row, and each target row without one that a clause is for: with the index of
    its clause, and what the target row is to be."""
    change, merge = merging.change, merging.merge
    target = merging.target(change.frame(change.scan(None if isinstance(read, AlwaysTrue) else read)))
    source = F.broadcast(merging.source) if is_static else merging.source
    if merge.by_source:
        return _decided_by_source(merging, target, target.join(source, merge.on, "left"))
    rows = target.join(source, merge.on, "inner").withColumn(ACTION, merging.clause_of(merge.matched))
    rows, values = merging.values(rows, merge.matched, col(ACTION)) if merging.updates else (rows, {})
    return rows.select(FILE, POS, SOURCE, ACTION, *_named(values), *merging.row_ids)


def _decided_by_source(merging: _Merging, target: DataFrame, rows: DataFrame) -> DataFrame:
    """The same where rows without a source row have clauses, too: these see the columns of the target alone."""
    merge, first = merging.merge, len(merging.merge.matched)
    is_matched = col(SOURCE).isNotNull()
    rows = rows.withColumn(ACTION, F.when(is_matched, merging.clause_of(merge.matched)))
    rows, values = merging.values(rows, merge.matched, col(ACTION)) if merging.updates else (rows, {})
    rows = rows.select(*_first_columns(rows, len(target.columns)), SOURCE, ACTION, *_named(values, MATCHED))
    rows = rows.withColumn(ACTION, F.when(is_matched, col(ACTION)).otherwise(merging.clause_of(merge.by_source, first)))
    rows = rows.filter(is_matched | (col(ACTION) != _NOTHING))
    rows, others = merging.values(rows, merge.by_source, col(ACTION), first) if merging.updates else (rows, {})
    chosen = {
        name: F.when(is_matched, col(f"{MATCHED}{index}")).otherwise(other)
        for index, (name, other) in enumerate(others.items())
    }
    return rows.select(FILE, POS, SOURCE, ACTION, *_named(chosen), *merging.row_ids)


def _first_columns(rows: DataFrame, count: int) -> list[Column]:
    """The columns of one side of a join, whatever their names are."""
    return [column for _, column in frame_columns(rows)[:count]]


def _named(values: Mapping[str, Column], prefix: str | None = None) -> list[Column]:
    """Columns under their names, or under names of ours by their index."""
    return [
        column.alias(name if prefix is None else f"{prefix}{index}")
        for index, (name, column) in enumerate(values.items())
    ]


def _updates(rows: DataFrame, clauses: Sequence[Clause], change: row_level.FrameChange) -> DataFrame | None:
    updates = [index for index, clause in enumerate(clauses) if clause.action is Action.UPDATE]
    if not updates:
        return None
    columns = [col(quoted_name(name)) for name in change.columns]
    if change.rule.has_lineage:
        columns += [col(row_level.LINEAGE[0]), lit(None).cast("bigint").alias(row_level.LINEAGE[1])]
    return rows.filter(col(ACTION).isin(updates)).select(*columns)


# -- parts of both


def _check(merge: Merge, source: DataFrame, schema: Schema) -> None:
    if not (merge.matched or merge.not_matched or merge.by_source):
        raise errors.InvalidInputError("a MERGE has at least one WHEN clause")
    key = _key(source)
    known = {key(name) for name in source.columns}
    if len(known) < len(source.columns):
        raise errors.InvalidInputError(f"the source has a column twice: {', '.join(source.columns)}")
    clauses = (*merge.matched, *merge.not_matched, *merge.by_source)
    has_star = any(clause.action is not Action.DELETE and clause.assignments is None for clause in clauses)
    missing = [field.name for field in schema.fields if key(field.name) not in known]
    if has_star and missing and not merge.evolves:
        raise errors.InvalidInputError(
            f"MERGE ... *: the source has no column {missing[0]!r}; it has {', '.join(source.columns)}."
            " Name the columns, or say WITH SCHEMA EVOLUTION"
        )


def _check_cardinality(matches: Gathered, clauses: Sequence[Clause]) -> None:
    """No target row may match two source rows if the clauses could tell these apart; deleting it twice is deleting it."""
    if not clauses or (len(clauses) == 1 and clauses[0].action is Action.DELETE and clauses[0].condition is None):
        return
    if (twice := matches.twice()) is not None:
        count, file, position = twice
        raise errors.InvalidValueError(
            f"MERGE: {count} rows of the target match more than one row of the source, such as row"
            f" {position} of {file}; make the source's keys unique"
        )


def _with_exact_names(merge: Merge, change: row_level.FrameChange) -> Merge:
    """The merge with the columns that it assigns as the table writes them."""

    def exact(clause: Clause) -> Clause:
        if clause.assignments is None:
            return clause
        assignments = row_statements.exact_assignments(
            clause.assignments, change.schema, change.spark, merge.target_alias
        )
        return replace(clause, assignments=assignments)

    matched, not_matched, by_source = (
        tuple(map(exact, clauses)) for clauses in (merge.matched, merge.not_matched, merge.by_source)
    )
    return replace(merge, matched=matched, not_matched=not_matched, by_source=by_source)


def _key(frame: DataFrame) -> Callable[[str], str]:
    """The key that names are compared by in the frame's session."""
    return str if is_case_sensitive(frame.sparkSession) else str.lower


def _conditions(clauses: Sequence[Clause]) -> list[Column | None]:
    return [clause.condition for clause in clauses]


def _names(source: DataFrame) -> list[str]:
    return [name for name in source.columns if not name.startswith("__icefloe_")]


def _choice(tests: Mapping[int, Column], values: Mapping[int, Column], otherwise: Column | None = None) -> Column:
    """The value whose test is true; where none is, `otherwise` or null."""
    choice: Column | None = None
    for index, value in values.items():
        choice = when(tests[index], value) if choice is None else choice.when(tests[index], value)
    if choice is None:
        return lit(None) if otherwise is None else otherwise
    return choice if otherwise is None else choice.otherwise(otherwise)


def _union(frames: Sequence[DataFrame | None]) -> DataFrame | None:
    present = [frame for frame in frames if frame is not None]
    if not present:
        return None
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), present)
