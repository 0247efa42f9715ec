"""`INSERT`, `DELETE`, `UPDATE` and `MERGE`: reads the nodes of such a statement and runs it."""

from collections.abc import Callable

from py4j.java_gateway import JavaObject
from pyspark.sql import Column

from icefloe import errors, metadata as md
from icefloe.catalog import show
from icefloe.data import write_default
from icefloe.rows import DELETE
from icefloe.spark.auditing import destination
from icefloe.spark.column_names import column_path
from icefloe.spark.row_level import TargetTable
from icefloe.spark.row_merge import Action, Clause, Merge, merge_rows
from icefloe.spark.row_statements import Assignment, default_column, delete_rows, update_rows
from icefloe.spark.sql import nodes
from icefloe.spark.sql.context import SqlContext, Statement, about
from icefloe.spark.sql.inserts import insert, replace_where
from icefloe.spark.sql.names import Parts, Source
from icefloe.spark.sql.nodes import class_of, items, option, parts
from icefloe.spark.sql.queries import qualifier_of, resolve
from icefloe.spark.types import mapping_of
from icefloe.table import Table

_SUBQUERIES = ("ScalarSubquery", "ListQuery", "Exists", "LateralSubquery")


def _with(node: JavaObject, context: SqlContext) -> JavaObject | None:
    """A change below common table expressions."""
    child = node.child()
    change = _CHANGES.get(class_of(child))
    if change is None or (class_of(child) == "Union" and not _is_inserts(child)):
        return None
    return change(_with_inside(node, child, context), context)


def _with_inside(around: JavaObject, node: JavaObject, context: SqlContext) -> JavaObject:
    """A change below common table expressions, which are moved around each of its queries."""

    def query(plan: JavaObject) -> JavaObject:
        return nodes.copy(context.gateway, around, child=plan)

    match class_of(node):
        case "InsertIntoStatement" | "OverwriteByExpression":
            return nodes.copy(context.gateway, node, query=query(node.query()))
        case "Union":
            children = [_with_inside(around, child, context) for child in items(node.children())]
            return nodes.copy(context.gateway, node, children=context.gateway.seq(children))
    changed = nodes.rebuilt_expressions(
        node,
        lambda inner: inner.withNewPlan(query(inner.plan())) if class_of(inner) in _SUBQUERIES else inner,
    )
    if class_of(node) != "MergeIntoTable":
        return changed
    source, alias = _without_alias(node.sourceTable())
    name = alias or (parts(source)[-1] if nodes.is_name(source) else None)
    plan = query(source) if name is None else context.gateway.named_plan(query(source), (name,))
    return nodes.copy(context.gateway, changed, sourceTable=plan)


def _is_inserts(node: JavaObject) -> bool:
    return all(class_of(child) == "InsertIntoStatement" for child in items(node.children()))


def _insert_several(node: JavaObject, context: SqlContext) -> JavaObject | None:
    """`FROM ... INSERT INTO ... INSERT INTO ...`: all are checked before the first one runs; None if none is ours."""
    if not _is_inserts(node):
        return None
    inserts = items(node.children())
    targets = [target_of(insertion, context) for insertion in inserts]
    if not any(targets):
        return None
    runs = [
        _sparks_insert(child, context) if target is None else insert(child, target, context, is_checked=True)
        for child, target in zip(inserts, targets, strict=True)
    ]
    for run in runs:
        run()
    return context.result()


def _sparks_insert(node: JavaObject, context: SqlContext) -> Callable[[], None]:
    plan, analyzer = resolve(node, context), context.state.analyzer()
    analyzer.checkAnalysis(analyzer.execute(plan))

    def run() -> None:
        # Spark runs a command when its frame is made.
        context.frame_of(plan)

    return run


def _without_alias(node: JavaObject) -> tuple[JavaObject, str | None]:
    if class_of(node) == "SubqueryAlias":
        return node.child(), node.identifier().name()
    return node, None


def _qualifier(node: JavaObject, target: Source) -> Parts:
    """What the columns of the target may be qualified by."""
    relation, alias = _without_alias(node)
    return qualifier_of(target, parts(relation)) if alias is None else (alias,)


def target_of(node: JavaObject, context: SqlContext) -> Source | None:
    """The table whose rows a statement changes, and its branch; None if it changes none of ours."""
    match class_of(node):
        case "InsertIntoStatement" | "OverwriteByExpression" | "DeleteFromTable" | "UpdateTable":
            relation, _ = _without_alias(node.table())
        case "MergeIntoTable":
            relation, _ = _without_alias(node.targetTable())
        case "TruncateTable":
            relation = node.child()
        case _:
            return None
    if class_of(relation) not in ("UnresolvedRelation", "UnresolvedTable"):
        return None
    name = parts(relation)
    source = context.source(name)
    if source is None:
        if name[0] in context.names.catalogs:
            raise errors.NoSuchTableError(f"no table {'.'.join(name[1:])} in catalog {name[0]!r}")
        return None
    if source.metadata_table is not None or source.snapshot_id is not None or source.as_of is not None:
        raise errors.InvalidInputError(f"{'.'.join(name)} cannot be changed; name the table, or a branch of it")
    check_branch(source)
    return source


def check_branch(source: Source) -> None:
    """Raise if the target is a tag, or a branch that does not exist."""
    if source.ref is None:
        return
    ref = source.load_table().refs().get(source.ref)
    if ref is None:
        raise errors.NoSuchSnapshotError(
            f"table {show(source.identifier)} has no branch {source.ref!r}; ALTER TABLE ... CREATE BRANCH makes one"
        )
    if ref.ref_type is not md.SnapshotRefType.BRANCH:
        raise errors.InvalidInputError(
            f"{source.ref!r} of table {show(source.identifier)} is a tag, which cannot be changed"
        )


_about_rows = about(target_of)
"""A statement that changes the rows of its target."""


@_about_rows
def _delete(node: JavaObject, target: Source, context: SqlContext) -> None:
    table = target.load_table()
    expression = _resolved(node, "table", context).condition()
    # Spark has no filters by NULL, but looks for rows to keep in other words where files are rewritten.
    condition = _condition(expression, context, takes_null=DELETE.copies(table.metadata))
    delete_rows(_target(target, table, _qualifier(node.table(), target), context), condition)


@_about_rows
def _update(node: JavaObject, target: Source, context: SqlContext) -> None:
    table, name = target.load_table(), _qualifier(node.table(), target)
    statement = _resolved(node, "table", context)
    expression = option(statement.condition())
    condition = None if expression is None else _condition(expression, context)
    assignments = _assignments(statement.assignments(), table, name, context)
    update_rows(_target(target, table, name, context), assignments, condition)


@_about_rows
def _truncate(_: JavaObject, target: Source, context: SqlContext) -> None:
    table = target.load_table()
    to = destination(context.spark, table, target.ref)
    table.delete("true", to.snapshot_properties, to.branch)


@_about_rows
def _merge(node: JavaObject, target: Source, context: SqlContext) -> None:
    table, name = target.load_table(), _qualifier(node.targetTable(), target)
    statement = _resolved(node, "targetTable", context)
    source = context.frame_of(statement.sourceTable())
    matched, not_matched, by_source = (
        tuple(_clause(action, table, name, context) for action in items(actions))
        for actions in (
            statement.matchedActions(),
            statement.notMatchedActions(),
            statement.notMatchedBySourceActions(),
        )
    )
    on = context.gateway.column(statement.mergeCondition())
    evolves = bool(nodes.argument(node, "withSchemaEvolution", False))
    merge = Merge(on, matched, not_matched, by_source, name, nodes.alias_of(statement.sourceTable()), evolves)
    merge_rows(_target(target, table, name, context), source, merge)


def _target(source: Source, table: Table, name: Parts, context: SqlContext) -> TargetTable:
    """The table as the target of a change; its columns may be qualified by the name."""
    to = destination(context.spark, table, source.ref)
    return TargetTable(context.spark, table, to.branch, to.snapshot_properties, name, context.metadata_columns())


def _resolved(node: JavaObject, target: str, context: SqlContext) -> JavaObject:
    """The statement with our tables resolved, except its target, which is scanned when the statement runs."""
    return resolve(nodes.copy(context.gateway, node, **{target: context.result()}), context)


_ACTIONS = {
    "DeleteAction": Action.DELETE,
    "UpdateAction": Action.UPDATE,
    "UpdateStarAction": Action.UPDATE,
    "InsertAction": Action.INSERT,
    "InsertStarAction": Action.INSERT,
}


def _clause(node: JavaObject, table: Table, name: Parts, context: SqlContext) -> Clause:
    action, condition = _ACTIONS.get(class_of(node)), option(node.condition())
    if action is None:
        raise errors.InvalidInputError(f"MERGE: {class_of(node)} is not understood")
    column = None if condition is None else _clause_condition(condition, context)
    if class_of(node) not in ("UpdateAction", "InsertAction"):
        return Clause(action, column)
    return Clause(action, column, tuple(_assignments(node.assignments(), table, name, context)))


def _clause_condition(expression: JavaObject, context: SqlContext) -> Column:
    """The condition of a clause; NULL is a condition that is never true."""
    column = context.gateway.column(expression)
    is_null = class_of(expression) == "Literal" and class_of(expression.dataType()) == "NullType"
    return column.cast("boolean") if is_null else column


def _assignments(sequence: JavaObject, table: Table, name: Parts, context: SqlContext) -> list[Assignment]:
    paths = [(tuple(items(node.key().nameParts())), node.value()) for node in items(sequence)]
    return [Assignment(path, _value(value, path, table, name, context)) for path, value in paths]


def _value(expression: JavaObject, path: Parts, table: Table, name: Parts, context: SqlContext) -> Column:
    """The assigned value; the word DEFAULT is the column's write default."""
    names = items(expression.nameParts()) if class_of(expression) == "UnresolvedAttribute" else []
    if [part.upper() for part in names] != ["DEFAULT"]:
        return context.gateway.column(expression)
    field = table.schema().find_field(".".join(column_path(path, table.schema(), context.is_case_sensitive, name)))
    return default_column(write_default(field), field.field_type, mapping_of(context.spark))


def _condition(expression: JavaObject, context: SqlContext, *, takes_null: bool = False) -> Column | None:
    """The condition of a statement; None if it is true for all rows."""
    if class_of(expression) == "Literal" and str(expression.value()) == "True":
        return None
    return _clause_condition(expression, context) if takes_null else context.gateway.column(expression)


_CHANGES: dict[str, Statement] = {
    "InsertIntoStatement": _about_rows(lambda node, target, context: insert(node, target, context)()),
    "Union": _insert_several,
    # What older releases of Spark make of INSERT INTO ... REPLACE WHERE.
    "OverwriteByExpression": _about_rows(replace_where),
    "DeleteFromTable": _delete,
    "UpdateTable": _update,
    "MergeIntoTable": _merge,
}
STATEMENTS: dict[str, Statement] = {**_CHANGES, "UnresolvedWith": _with, "TruncateTable": _truncate}
