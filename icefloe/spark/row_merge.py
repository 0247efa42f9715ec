"""`MERGE` on Spark: which clause each pair of rows falls to, what becomes of it, and what is added.

The target is joined with the source once; the source can be broadcast, since what no target row matches is found from the
result by the ids that source rows are given. For copy-on-write, only the files that change are read again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from icefloe.errors import InvalidInputError, InvalidValueError
from icefloe.expressions import AlwaysTrue, Expression
from icefloe.metadata.properties import MERGE_ISOLATION_LEVEL, MERGE_MODE
from icefloe.metadata.snapshot import Snapshot
from icefloe.schema.schema import Schema
from icefloe.spark.row_filters import check_deterministic, key_filter
from icefloe.spark.row_level import FILE, LINEAGE, POS, RowChange, is_true, kept, positions_by_file
from icefloe.spark.row_statements import (
    Assignment,
    check_assignments,
    new_values,
    old_values,
    resolved_path,
    with_old,
)
from icefloe.spark.user_side import quoted_name
from icefloe.table import Table

SOURCE = "__icefloe_source"
ACTION = "__icefloe_action"
NEW = "__icefloe_new_"
_NOTHING = -1


class Action(Enum):
    """What a clause does."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True)
class Clause:
    """One WHEN: the first whose condition is true counts. Without assignments it means every column (`*`)."""

    action: Action
    condition: Column | None = None
    assignments: tuple[Assignment, ...] | None = None


@dataclass(frozen=True)
class Merge:
    """A MERGE statement: `matched`, `not_matched` and `by_source` are its clauses, each in order."""

    on: Column
    matched: tuple[Clause, ...] = ()
    not_matched: tuple[Clause, ...] = ()
    by_source: tuple[Clause, ...] = ()
    target_alias: str | None = None
    source_alias: str | None = None


def merge_rows(
    spark: Any,
    table: Table,
    source: DataFrame,
    merge: Merge,
    *,
    branch: str | None = None,
    notes: Mapping[str, str] | None = None,
) -> Snapshot | None:
    """Run a MERGE into a table in one commit; None if it changes nothing."""
    _check(merge, source, table.schema())
    conditions = [each.condition for each in (*merge.matched, *merge.not_matched, *merge.by_source)]
    check_deterministic((merge.on, *conditions), "MERGE")
    change = RowChange(spark, table, MERGE_MODE, MERGE_ISOLATION_LEVEL, branch, notes or {})
    with kept(_numbered(source, merge.source_alias)) as rows:
        return (_copying if change.copies else _deleting)(_Merging(change, merge, rows))


@dataclass(frozen=True)
class _Merging:
    """A merge under way: `source` has its rows numbered."""

    change: RowChange
    merge: Merge
    source: DataFrame

    @property
    def schema(self) -> Schema:
        return self.change.metadata.schema()

    def read_filter(self) -> Expression:
        """What all rows match that the merge looks at: by keys that it joins by, where that can be told."""
        if self.merge.by_source:
            return AlwaysTrue()
        target = self.target(self.change.frame(self.change.scan()))
        return key_filter(target, self.source, self.merge.on, self.schema)

    def target(self, rows: DataFrame) -> DataFrame:
        found = with_old(rows, self.change.columns)
        return found if self.merge.target_alias is None else found.alias(self.merge.target_alias)

    def clause_of(self, clauses: Sequence[Clause]) -> Column:
        """The place of the first clause whose condition is true."""
        found: Column | None = None
        for place, clause in enumerate(clauses):
            started = F if found is None else found
            found = started.when(is_true(clause.condition), F.lit(place))
        return F.lit(_NOTHING) if found is None else found.otherwise(F.lit(_NOTHING))

    def values(self, clauses: Sequence[Clause], action: Column) -> dict[str, Column]:
        """Each column as the clause of a row says, or as it was."""
        old = old_values(self.schema)
        chosen = {
            place: new_values(self._assignments(clause), self.schema)
            for place, clause in enumerate(clauses)
            if clause.action is Action.UPDATE
        }
        return {name: _choice(action, {key: each[name] for key, each in chosen.items()}, old[name]) for name in old}

    def _assignments(self, clause: Clause) -> tuple[Assignment, ...]:
        if clause.assignments is not None:
            return clause.assignments
        return tuple(Assignment((name,), column) for name, column in self.star().items())

    def star(self) -> dict[str, Column]:
        """Each column of the table from the source's column of the same name."""
        given = {name.lower(): f"{NEW}{place}" for place, name in enumerate(_names(self.source))}
        return {name: F.col(given[name.lower()]) for name in self.change.columns}

    def inserts(self, matched: DataFrame | None) -> DataFrame | None:
        """The rows to add: those of the source that nothing matched, by the clauses for them."""
        clauses = self.merge.not_matched
        if not clauses:
            return None
        rest = (
            self.source if matched is None else self.source.join(matched.select(SOURCE).distinct(), SOURCE, "left_anti")
        )
        if self.merge.source_alias is not None:
            rest = rest.alias(self.merge.source_alias)
        rest = rest.withColumn(ACTION, self.clause_of(clauses)).filter(F.col(ACTION) != _NOTHING)
        parts = [self._insert(rest.filter(F.col(ACTION) == place), each) for place, each in enumerate(clauses)]
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)

    def _insert(self, rows: DataFrame, clause: Clause) -> DataFrame:
        if clause.assignments is None:
            columns = [column.alias(name) for name, column in self.star().items()]
        else:
            columns = [each.value.alias(resolved_path(each.path, self.schema)[0]) for each in clause.assignments]
        if self.change.has_lineage:
            columns += [F.lit(None).cast("bigint").alias(name) for name in LINEAGE]
        return rows.select(*columns)


# -- merge-on-read


def _deleting(merging: _Merging) -> Snapshot | None:
    change, merge = merging.change, merging.merge
    planned = change.planned()
    read = merging.read_filter()
    with kept(_matched(merging, read, with_values=True)) as pairs:
        found = pairs.select(FILE, POS, SOURCE, ACTION).toArrow()
        _check_cardinality(found, merge.matched)
        frames = [_updates(pairs, merge.matched, change)] if merge.matched else []
        with kept(_unmatched(merging)) if merge.by_source else _nothing() as others:
            places = [_chosen(found)]
            if others is not None:
                places.append(_chosen(others.select(FILE, POS, ACTION).toArrow()))
                frames.append(_updates(others, merge.by_source, change))
            frames.append(merging.inserts(pairs))
            gone = positions_by_file(pa.concat_tables(places))
            return change.commit_deletes(planned, gone, lambda: _union(frames), read)


def _matched(merging: _Merging, read: Expression, *, with_values: bool) -> DataFrame:
    """Each pair of a target row and a source row, with its clause, and what the target row is to be."""
    change, clauses = merging.change, merging.merge.matched
    target = merging.target(change.frame(change.scan(read)))
    pairs = target.join(merging.source, merging.merge.on, "inner").withColumn(ACTION, merging.clause_of(clauses))
    return pairs.select(FILE, POS, SOURCE, ACTION, *(_outcome(merging, clauses) if with_values else ()))


def _unmatched(merging: _Merging) -> DataFrame:
    """Each target row that no source row matches and a clause is for."""
    change, clauses = merging.change, merging.merge.by_source
    target = merging.target(change.frame(change.scan()))
    rest = target.join(merging.source, merging.merge.on, "left_anti")
    if merging.merge.target_alias is not None:
        rest = rest.alias(merging.merge.target_alias)
    rest = rest.withColumn(ACTION, merging.clause_of(clauses)).filter(F.col(ACTION) != _NOTHING)
    return rest.select(FILE, POS, ACTION, *_outcome(merging, clauses))


def _outcome(merging: _Merging, clauses: Sequence[Clause]) -> list[Column]:
    values = merging.values(clauses, F.col(ACTION))
    columns = [column.alias(name) for name, column in values.items()]
    return [*columns, F.col(LINEAGE[0])] if merging.change.has_lineage else columns


def _updates(rows: DataFrame, clauses: Sequence[Clause], change: RowChange) -> DataFrame | None:
    places = [place for place, clause in enumerate(clauses) if clause.action is Action.UPDATE]
    if not places:
        return None
    columns = [F.col(quoted_name(name)) for name in change.columns]
    if change.has_lineage:
        columns += [F.col(LINEAGE[0]), F.lit(None).cast("bigint").alias(LINEAGE[1])]
    return rows.filter(F.col(ACTION).isin(places)).select(*columns)


# -- copy-on-write


def _copying(merging: _Merging) -> Snapshot | None:
    change, merge = merging.change, merging.merge
    planned = change.planned()
    read = merging.read_filter()
    with kept(_matched(merging, read, with_values=False)) as pairs:
        found = pairs.select(FILE, POS, SOURCE, ACTION).toArrow()
        _check_cardinality(found, merge.matched)
        touched = set(found.filter(pc.not_equal(found.column(ACTION), _NOTHING)).column(FILE).to_pylist())
        if merge.by_source:
            touched |= {row[0] for row in _unmatched(merging).select(FILE).distinct().collect()}

        def rows() -> DataFrame | None:
            return _union([_rewritten(merging, touched) if touched else None, merging.inserts(pairs)])

        return change.commit_copies(planned, touched, rows, read)


def _rewritten(merging: _Merging, touched: set[str]) -> DataFrame:
    """All rows of the touched files as they are to be."""
    change, merge = merging.change, merging.merge
    rows = merging.target(change.rows_of(touched)).join(merging.source, merge.on, "left")
    is_matched = F.col(SOURCE).isNotNull()
    # Clauses by the source come after those for matches, so that one number tells them apart.
    clauses = (*merge.matched, *merge.by_source)
    later = merging.clause_of(merge.by_source)
    by_source = F.when(later == _NOTHING, _NOTHING).otherwise(later + F.lit(len(merge.matched)))
    rows = rows.withColumn(ACTION, F.when(is_matched, merging.clause_of(merge.matched)).otherwise(by_source))
    gone = [place for place, clause in enumerate(clauses) if clause.action is Action.DELETE]
    if gone:
        rows = rows.filter(~F.col(ACTION).isin(gone))
    columns = [column.alias(name) for name, column in merging.values(clauses, F.col(ACTION)).items()]
    if change.has_lineage:
        columns += [F.col(LINEAGE[0]), F.when(F.col(ACTION) == _NOTHING, F.col(LINEAGE[1])).alias(LINEAGE[1])]
    return rows.select(*columns)


# -- parts of both


def _check(merge: Merge, source: DataFrame, schema: Schema) -> None:
    if not (merge.matched or merge.not_matched or merge.by_source):
        raise InvalidInputError("a MERGE has at least one WHEN clause")
    known = {name.lower() for name in source.columns}
    for clause in (*merge.matched, *merge.not_matched, *merge.by_source):
        if clause.action is Action.DELETE:
            continue
        if clause.assignments is not None:
            check_assignments(clause.assignments, schema)
            continue
        missing = [each.name for each in schema.fields if each.name.lower() not in known]
        if missing:
            raise InvalidInputError(
                f"MERGE ... *: the source has no column {missing[0]!r}; it has {', '.join(source.columns)}."
                " Name the columns, or say WITH SCHEMA EVOLUTION"
            )


def _check_cardinality(found: pa.Table, clauses: Sequence[Clause]) -> None:
    """No target row may be changed by two source rows; deleting it twice is deleting it."""
    if not clauses or (len(clauses) == 1 and clauses[0].action is Action.DELETE and clauses[0].condition is None):
        return
    counts = found.select([FILE, POS]).group_by([FILE, POS]).aggregate([([], "count_all")])
    twice = counts.filter(pc.greater(counts.column("count_all"), 1))
    if twice.num_rows:
        example = twice.slice(0, 1).to_pylist()[0]
        raise InvalidValueError(
            f"MERGE: {twice.num_rows} rows of the target match more than one row of the source, such as row"
            f" {example[POS]} of {example[FILE]}; make the source's keys unique"
        )


def _numbered(source: DataFrame, alias: str | None) -> DataFrame:
    """The source with a number for each row, and each column once more under a name of ours."""
    copies = {f"{NEW}{place}": F.col(quoted_name(name)) for place, name in enumerate(source.columns)}
    if len({name.lower() for name in source.columns}) < len(source.columns):
        raise InvalidInputError(f"the source has a column twice: {', '.join(source.columns)}")
    rows = source.withColumns({**copies, SOURCE: F.monotonically_increasing_id()})
    return rows if alias is None else rows.alias(alias)


def _names(source: DataFrame) -> list[str]:
    return [name for name in source.columns if not name.startswith("__icefloe_")]


def _choice(action: Column, values: Mapping[int, Column], otherwise: Column) -> Column:
    found: Column | None = None
    for place, value in values.items():
        found = (F if found is None else found).when(action == place, value)
    return otherwise if found is None else found.otherwise(otherwise)


def _chosen(found: pa.Table) -> pa.Table:
    return found.filter(pc.not_equal(found.column(ACTION), _NOTHING)).select([FILE, POS])


def _union(frames: Sequence[DataFrame | None]) -> DataFrame | None:
    found = [each for each in frames if each is not None]
    if not found:
        return None
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), found)


@contextmanager
def _nothing() -> Iterator[None]:
    yield None
