"""`INSERT`, `DELETE`, `UPDATE` and `MERGE`: what the nodes of such a statement say, and who runs it."""

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, functions

from icefloe.catalog.identifiers import show
from icefloe.data.shaping import write_default
from icefloe.errors import InvalidInputError, NoSuchSnapshotError, NoSuchTableError
from icefloe.expressions import EqualTo, Expression, IdReference, Literal
from icefloe.expressions.values import conjunction
from icefloe.metadata.refs import SnapshotRefType
from icefloe.schema.values import parse_text
from icefloe.spark.auditing import destination
from icefloe.spark.row_merge import Action, Clause, Merge, merge_rows
from icefloe.spark.row_statements import Assignment, default_column, delete_rows, update_rows
from icefloe.spark.sql_conditions import predicate_text
from icefloe.spark.sql_context import SqlContext
from icefloe.spark.sql_names import Source
from icefloe.spark.sql_nodes import argument, copy, items, kind_of, option, parts
from icefloe.spark.sql_nodes import mapping as entries
from icefloe.spark.sql_queries import resolve
from icefloe.spark.store_assignment import check_policy, store_assigned, with_names_of
from icefloe.spark.types import mapping_of, schema_from_spark, user_type
from icefloe.spark.user_side import quoted_name
from icefloe.table import Table

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def run_changes(node: Any, context: SqlContext) -> Any | None:
    """The result plan of a change of rows of a table of ours; None if it is none."""
    match kind_of(node):
        case "UnresolvedWith" if kind_of(node.child()) in ("InsertIntoStatement", "OverwriteByExpression"):
            inner = node.child()
            query = copy(context.gateway, node, child=inner.query())
            return run_changes(copy(context.gateway, inner, query=query), context)
        case "InsertIntoStatement":
            return _run(node.table(), context, lambda target: _insert(node, target, context))
        case "OverwriteByExpression":
            # What older releases of Spark make of INSERT INTO ... REPLACE WHERE.
            return _run(node.table(), context, lambda target: _replace_where(node, target, context))
        case "DeleteFromTable":
            return _run(node.table(), context, lambda target: _delete(node, target, context))
        case "UpdateTable":
            return _run(node.table(), context, lambda target: _update(node, target, context))
        case "MergeIntoTable":
            return _run(node.targetTable(), context, lambda target: _merge(node, target, context))
        case _:
            return None


def _run(relation: Any, context: SqlContext, change: Callable[[Source], None]) -> Any | None:
    target = target_of(_without_alias(relation)[0], context)
    if target is None:
        return None
    change(target)
    return context.result()


def _without_alias(node: Any) -> tuple[Any, str | None]:
    if kind_of(node) == "SubqueryAlias":
        return node.child(), node.identifier().name()
    return node, None


def _alias_of(node: Any) -> str:
    relation, alias = _without_alias(node)
    return alias or parts(relation)[-1]


def target_of(node: Any, context: SqlContext) -> Source | None:
    """The table, and the branch of it, that a change is about; None if it is not ours."""
    if kind_of(node) != "UnresolvedRelation":
        return None
    source = context.names.source(parts(node), default=context.default)
    if source is None:
        if parts(node)[0] in context.names.catalogs:
            raise NoSuchTableError(f"no table {'.'.join(parts(node)[1:])} in catalog {parts(node)[0]!r}")
        return None
    if source.metadata_table is not None or source.snapshot_id is not None or source.as_of is not None:
        raise InvalidInputError(f"{'.'.join(parts(node))} cannot be changed; name the table, or a branch of it")
    check_branch(source)
    return source


def check_branch(source: Source) -> None:
    """Fail if what is to be changed is a branch that is not there, or a tag."""
    if source.ref is None:
        return
    found = source.catalog.load_table(source.identifier).refs().get(source.ref)
    if found is None:
        raise NoSuchSnapshotError(
            f"table {show(source.identifier)} has no branch {source.ref!r}; ALTER TABLE ... CREATE BRANCH makes one"
        )
    if found.ref_type is not SnapshotRefType.BRANCH:
        raise InvalidInputError(f"{source.ref!r} of table {show(source.identifier)} is a tag, which cannot be changed")


def _insert(node: Any, target: Source, context: SqlContext) -> None:
    table = target.catalog.load_table(target.identifier)
    static = {name: option(value) for name, value in entries(context.gateway, node.partitionSpec()).items()}
    frame = context.frame_of(resolve(node.query(), context))
    if frame.columns != [field.name for field in table.schema().fields]:
        check_policy(context.gateway.spark)
    frame = _named(frame, table, static, by_name=node.byName(), given_names=items(node.userSpecifiedCols()))
    criteria = argument(node, "replaceCriteriaOpt")
    criteria = None if criteria is None else option(criteria)
    if criteria is not None and kind_of(criteria) != "InsertReplaceWhere":
        raise InvalidInputError("only REPLACE WHERE says which rows an INSERT takes the place of")
    with table.transaction() as tx:
        evolves = bool(argument(node, "withSchemaEvolution", False))
        if evolves:
            with tx.update_schema() as update:
                update.union_by_name(schema_from_spark(frame.schema))
        frame = store_assigned(
            frame,
            tx.table_metadata.schema(),
            ".".join(table.name()),
            by_position=not node.byName() and not node.userSpecifiedCols().size(),
            evolves=evolves,
        )
        to = destination(context.gateway.spark, table, target.ref)
        rows = tx.rows(to.branch, to.notes)
        if criteria is not None:
            rows.overwrite(frame, predicate_text(criteria.cond().sql(), context.gateway.spark))
        elif not node.overwrite():
            rows.append(frame)
        elif str(context.gateway.spark.conf.get(_OVERWRITE_MODE)).lower() == "dynamic":
            rows.dynamic_partition_overwrite(frame)
        else:
            rows.overwrite(frame, _static_filter(static, table))


def _replace_where(node: Any, target: Source, context: SqlContext) -> None:
    table = target.catalog.load_table(target.identifier)
    frame = _named(context.frame_of(resolve(node.query(), context)), table, {}, by_name=node.isByName())
    where = predicate_text(node.deleteExpr().sql(), context.gateway.spark)
    frame = store_assigned(frame, table.schema(), ".".join(table.name()), by_position=not node.isByName())
    to = destination(context.gateway.spark, table, target.ref)
    table.overwrite(frame, where, to.notes, branch=to.branch)


def _delete(node: Any, target: Source, context: SqlContext) -> None:
    spark, table = context.gateway.spark, target.catalog.load_table(target.identifier)
    condition = _condition(_resolved(node, "table", context).condition(), context)
    to = destination(spark, table, target.ref)
    delete_rows(spark, table, condition, alias=_alias_of(node.table()), branch=to.branch, notes=to.notes)


def _update(node: Any, target: Source, context: SqlContext) -> None:
    table, alias = target.catalog.load_table(target.identifier), _alias_of(node.table())
    found = _resolved(node, "table", context)
    condition = option(found.condition())
    to = destination(context.gateway.spark, table, target.ref)
    update_rows(
        context.gateway.spark,
        table,
        _assignments(found.assignments(), table, alias, context),
        None if condition is None else _condition(condition, context),
        alias=alias,
        branch=to.branch,
        notes=to.notes,
    )


def _merge(node: Any, target: Source, context: SqlContext) -> None:
    table, alias = target.catalog.load_table(target.identifier), _alias_of(node.targetTable())
    found = _resolved(node, "targetTable", context)
    source, name = context.frame_of(found.sourceTable()), _without_alias(found.sourceTable())[1]
    matched, not_matched, by_source = (
        tuple(_clause(each, table, alias, context) for each in items(actions))
        for actions in (found.matchedActions(), found.notMatchedActions(), found.notMatchedBySourceActions())
    )
    on = context.gateway.column(found.mergeCondition())
    evolves = bool(argument(node, "withSchemaEvolution", False))
    merge = Merge(on, matched, not_matched, by_source, alias, name, evolves)
    to = destination(context.gateway.spark, table, target.ref)
    merge_rows(context.gateway.spark, table, source, merge, branch=to.branch, notes=to.notes)


def _resolved(node: Any, target: str, context: SqlContext) -> Any:
    """The statement with our tables in all but its target, which is scanned by whoever runs it, with what that needs."""
    return resolve(copy(context.gateway, node, **{target: context.result()}), context)


def _clause(action: Any, table: Table, alias: str, context: SqlContext) -> Clause:
    kind = kind_of(action)
    condition = option(action.condition())
    column = None if condition is None else context.gateway.column(condition)
    match kind:
        case "DeleteAction":
            return Clause(Action.DELETE, column)
        case "UpdateStarAction":
            return Clause(Action.UPDATE, column)
        case "InsertStarAction":
            return Clause(Action.INSERT, column)
        case "UpdateAction" | "InsertAction":
            made = tuple(_assignments(action.assignments(), table, alias, context))
            return Clause(Action.UPDATE if kind == "UpdateAction" else Action.INSERT, column, made)
        case _:
            raise InvalidInputError(f"MERGE: {kind} is not understood")


def _assignments(found: Any, table: Table, alias: str, context: SqlContext) -> list[Assignment]:
    made = []
    for each in items(found):
        path = tuple(items(each.key().nameParts()))
        if len(path) > 1 and path[0].lower() == alias.lower() and not _is_column(path[0], table):
            path = path[1:]
        made.append(Assignment(path, _value(each.value(), path, table, context)))
    return made


def _is_column(name: str, table: Table) -> bool:
    return any(each.name.lower() == name.lower() for each in table.schema().fields)


def _value(expression: Any, path: tuple[str, ...], table: Table, context: SqlContext) -> Column:
    """What is assigned; the word DEFAULT is what writers put where they are given nothing."""
    is_default = kind_of(expression) == "UnresolvedAttribute" and [
        each.upper() for each in items(expression.nameParts())
    ] == ["DEFAULT"]
    if not is_default:
        return context.gateway.column(expression)
    field = table.schema().find_field(".".join(path), case_sensitive=False)
    return default_column(write_default(field), field.field_type, mapping_of(context.gateway.spark))


def _condition(expression: Any, context: SqlContext) -> Column | None:
    if kind_of(expression) == "Literal" and str(expression.value()) == "True":
        return None
    return context.gateway.column(expression)


def _named(
    frame: DataFrame,
    table: Table,
    static: dict[str, str | None],
    *,
    by_name: bool = False,
    given_names: Sequence[str] = (),
) -> DataFrame:
    """The frame with the table's column names, by position unless the statement says otherwise."""
    for name in (*static, *given_names):
        table.schema().find_field(name, case_sensitive=False)
    given = {name: value for name, value in static.items() if value is not None}
    if not by_name:
        lower = {name.lower() for name in given}
        wanted = list(given_names) or [field.name for field in table.schema().fields if field.name.lower() not in lower]
        if len(frame.columns) != len(wanted):
            raise InvalidInputError(
                f"INSERT INTO {'.'.join(table.name())}: the data has {len(frame.columns)} columns"
                f" ({', '.join(frame.columns)}), and {len(wanted)} are wanted: {', '.join(wanted)}"
            )
        frame = frame.toDF(*wanted)
        frame = _renamed(frame, table) if given_names else frame
    for name, value in given.items():
        field = table.schema().find_field(name, case_sensitive=False)
        shown = user_type(field.field_type, mapping_of(frame.sparkSession))
        frame = frame.withColumn(field.name, functions.lit(value).cast(shown))
    return frame


def _renamed(frame: DataFrame, table: Table) -> DataFrame:
    """The frame for a list of columns: fields are then found by name, as Spark does it, but those of its structs by position."""
    changed = {}
    for field in frame.schema.fields:
        kind = with_names_of(field.dataType, table.schema().find_type(field.name, case_sensitive=False))
        if kind != field.dataType:
            changed[field.name] = frame[quoted_name(field.name)].cast(kind)
    return frame.withColumns(changed) if changed else frame


def _static_filter(static: dict[str, str | None], table: Table) -> Expression:
    """What the rows match that an overwrite of these partitions takes away; all rows if none is given."""
    found = []
    for name, value in static.items():
        if value is not None:
            field = table.schema().find_field(name, case_sensitive=False)
            literal = Literal(parse_text(value, field.field_type), field.field_type)
            found.append(EqualTo(IdReference(field.field_id), literal))
    return conjunction(*found)
