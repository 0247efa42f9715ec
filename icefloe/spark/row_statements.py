"""`DELETE` and `UPDATE` of rows on Spark, from conditions and assignments to a commit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession, functions as F  # noqa: N812  # its usual name

from icefloe import errors, metadata as md
from icefloe.rows import DELETE, UPDATE
from icefloe.schema import IcebergType, Schema, StructType, Value, reserved
from icefloe.spark.column_names import Qualifier, column_path
from icefloe.spark.gateway import Gateway, col, lit, without_call_sites
from icefloe.spark.jvm.door import in_session
from icefloe.spark.literals import sql_literal
from icefloe.spark.row_filters import asks_python, check_deterministic, implied_filter, is_lasting
from icefloe.spark.row_level import LINEAGE, FrameChange, TargetTable, is_true, persisted
from icefloe.spark.row_positions import FILE, POS, gathered
from icefloe.spark.spark_sessions import is_case_sensitive, static_session
from icefloe.spark.store_assignment import Assigner
from icefloe.spark.types import TypeMapping, user_type
from icefloe.spark.user_side import quoted_name

OLD = "__icefloe_old_"
"""The prefix, before a column's index, of its old value, under a name that no alias hides."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column, or a field nested in one, and its new value."""

    path: tuple[str, ...]
    value: Column


@without_call_sites()
def delete_rows(target: TargetTable, condition: Column | None) -> md.Snapshot | None:
    """Delete the rows for which the condition is true, or all rows without one."""
    if condition is None:
        return target.table.delete("true", target.snapshot_properties, target.branch)
    return target.run(lambda tx: _delete(target.change(DELETE, tx), condition, target.alias))


def _delete(change: FrameChange, condition: Column, alias: Qualifier | None) -> md.Snapshot | None:
    rows = aliased(change.frame(change.scan()), alias)
    check_deterministic(rows, (condition,), "DELETE")
    read = implied_filter(rows, condition, change.schema)
    lasting = is_lasting(rows, condition)
    chosen = rows.filter(condition)
    # Without a query in the condition there is nothing to adapt a plan to.
    chosen = in_session(chosen, static_session(change.spark)) if lasting else chosen
    if not change.rule.copies:
        return change.delete(chosen, read)
    if lasting:
        return change.rewrite_without(
            chosen,
            read,
            lambda files: change.plain(aliased(change.rows_of(files), alias).filter(~is_true(condition))),
        )
    with persisted(chosen.select(FILE, POS)) as deleted:
        return change.rewrite_without(deleted, read, lambda files: change.others(files, deleted))


@without_call_sites()
def update_rows(
    target: TargetTable, assignments: Sequence[Assignment], condition: Column | None = None
) -> md.Snapshot | None:
    """Update columns in the rows for which the condition is true, or in all rows without one."""
    return target.run(lambda tx: _update(target.change(UPDATE, tx), assignments, condition, target.alias))


def _update(
    change: FrameChange, assignments: Sequence[Assignment], condition: Column | None, alias: Qualifier | None
) -> md.Snapshot | None:
    assignments = exact_assignments(assignments, change.schema, change.spark, alias)
    rows = aliased(with_old(change.frame(change.scan()), change.columns), alias)
    check_deterministic(rows, (condition,), "UPDATE")
    read = implied_filter(rows, condition, change.schema)
    chosen = rows if condition is None else rows.filter(condition)
    if change.rule.copies and (condition is None or _can_be_repeated(rows, condition, assignments)):
        # Invalid assignments raise even if there is no row to update.
        updated(rows, assignments, change)
        touched = gathered(in_session(chosen, static_session(change.spark))).chosen

        def all_rows() -> DataFrame:
            again = aliased(with_old(change.rows_of(touched), change.columns), alias)
            return updated(again, assignments, change, condition=condition)

        return change.commit(touched, all_rows, read) if touched else None
    if change.is_one_job:
        return change.replace_rows(updated(chosen, assignments, change, FILE, POS), read)
    with persisted(updated(chosen, assignments, change, FILE, POS)) as new:
        if not change.rule.copies:
            positions = gathered(in_session(new, static_session(change.spark))).chosen
            return change.commit(positions, lambda: new.drop(FILE, POS), read) if positions else None
        touched = gathered(new).chosen

        def all_of_files() -> DataFrame:
            others = change.rows_but(touched, lambda: change.others(touched, new))
            return others.unionByName(new.drop(FILE, POS))

        return change.commit(touched, all_of_files, read) if touched else None


def _can_be_repeated(rows: DataFrame, condition: Column, assignments: Sequence[Assignment]) -> bool:
    """Whether the condition chooses the same rows again, and no assignment is evaluated for the other rows."""
    return is_lasting(rows, condition) and not asks_python(rows, (assignment.value for assignment in assignments))


def updated(
    rows: DataFrame,
    assignments: Sequence[Assignment],
    change: FrameChange,
    *more: str,
    condition: Column | None = None,
) -> DataFrame:
    """The rows as they are to be where the condition is true; ids stay, and this commit has updated these rows last."""
    old = old_values(change.schema)
    rows, [new] = new_values(rows, [assignments], change.assigner(), are_stars=[False])
    columns = [
        (_where(condition, new[name], old[name]) if name in new else old[name]).alias(name) for name in change.columns
    ]
    if change.rule.has_lineage:
        number = _where(condition, lit(None).cast("bigint"), col(reserved.LAST_UPDATED_SEQUENCE_NUMBER.name))
        columns += [col(LINEAGE[0]), number.alias(reserved.LAST_UPDATED_SEQUENCE_NUMBER.name)]
    return rows.select(*columns, *more)


def _where(condition: Column | None, value: Column, otherwise: Column) -> Column:
    return value if condition is None else F.when(condition, value).otherwise(otherwise)


def with_old(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The rows with each column once more, under a name of ours."""
    return rows.withColumns({f"{OLD}{index}": col(quoted_name(name)) for index, name in enumerate(columns)})


def old_values(schema: Schema) -> dict[str, Column]:
    """Each column as it was."""
    return {field.name: col(f"{OLD}{index}") for index, field in enumerate(schema.fields)}


def new_values(
    rows: DataFrame, clauses: Sequence[Sequence[Assignment]], assigner: Assigner, are_stars: Sequence[bool]
) -> tuple[DataFrame, list[dict[str, Column]]]:
    """For each of several lists of assignments, the columns that these change, as they are to be in the rows."""
    old = old_values(assigner.schema)
    asked: list[Column] = []
    shown = []
    for clause in clauses:
        values = {assignment.path: assignment.value for assignment in clause}
        shown.append(assigner.shown(rows, values))
        asked += [*(old[path[0]] for path in values), *shown[-1].values()]
    wider, expressions = assigner.resolved(rows, asked)
    resolved, new = iter(expressions), []
    for paths, is_star in zip(shown, are_stars, strict=True):
        held = {path[0]: next(resolved) for path in paths}
        new.append(assigner.updated(held, {path: next(resolved) for path in paths}, is_star=is_star))
    return wider, new


def default_column(value: Value, field_type: IcebergType, mapping: TypeMapping) -> Column:
    """A default of a type as a column of the type that users see."""
    shown = user_type(field_type, mapping)
    if value is None:
        return lit(None).cast(shown)
    if isinstance(field_type, StructType):
        inner = dict(value)
        fields = (
            default_column(inner[field.field_id], field.field_type, mapping).alias(field.name) for field in field_type
        )
        return F.struct(*fields).cast(shown)
    return F.expr(str(sql_literal(value, field_type, shown))).cast(shown)


def exact_assignments(
    assignments: Sequence[Assignment], schema: Schema, spark: SparkSession, alias: Qualifier | None
) -> tuple[Assignment, ...]:
    """The assignments with their columns as the table writes them, and not qualified; none of them assigned twice."""
    sensitive = is_case_sensitive(spark)
    exact: list[Assignment] = []
    for assignment in assignments:
        path = column_path(assignment.path, schema, sensitive, alias)
        for other in exact:
            if path[: len(other.path)] == other.path or other.path[: len(path)] == path:
                raise errors.InvalidInputError(f"column {'.'.join(path)!r} is assigned twice")
        exact.append(replace(assignment, path=path))
    if not exact:
        raise errors.InvalidInputError("an update assigns at least one column")
    return tuple(exact)


def aliased(rows: DataFrame, alias: Qualifier | None) -> DataFrame:
    """The rows under a name that their columns may be qualified by."""
    return rows if alias is None else Gateway(rows.sparkSession).named_frame(rows, alias)
