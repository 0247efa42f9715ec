"""`INSERT`, `DELETE`, `UPDATE` and `MERGE`: reads the nodes of such a statement and runs it."""

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import Column

from icefloe.catalog import show
from icefloe.data import write_default
from icefloe.errors import InvalidInputError, NoSuchSnapshotError, NoSuchTableError
from icefloe.metadata import SnapshotRefType
from icefloe.rows import DELETE
from icefloe.spark.auditing import destination
from icefloe.spark.column_names import column_path
from icefloe.spark.row_level import TargetTable
from icefloe.spark.row_merge import Action, Clause, Merge, merge_rows
from icefloe.spark.row_statements import Assignment, default_column, delete_rows, update_rows
from icefloe.spark.sql.context import SqlContext
from icefloe.spark.sql.inserts import insert, replace_where
from icefloe.spark.sql.names import Source
from icefloe.spark.sql.nodes import argument, copy, is_name, items, kind_of, option, parts, rebuilt_expressions
from icefloe.spark.sql.queries import qualifier_of, resolve
from icefloe.spark.types import mapping_of
from icefloe.table import Table

_INSERTS = ("InsertIntoStatement", "OverwriteByExpression")
_CHANGES = ("DeleteFromTable", "UpdateTable", "MergeIntoTable")
_SUBQUERIES = ("ScalarSubquery", "ListQuery", "Exists", "LateralSubquery")


def run_changes(node: Any, context: SqlContext) -> Any | None:
    """The result plan of a statement that changes rows of our tables; None for any other statement."""
    match kind_of(node):
        case "UnresolvedWith" if kind_of(node.child()) in (*_INSERTS, *_CHANGES) or _is_inserts(node.child()):
            return run_changes(_with_inside(node, node.child(), context), context)
        case "InsertIntoStatement":
            return _run(node.table(), context, lambda target: insert(node, target, context)())
        case "Union" if _is_inserts(node):
            return _insert_each(items(node.children()), context)
        case "OverwriteByExpression":
            # What older releases of Spark make of INSERT INTO ... REPLACE WHERE.
            return _run(node.table(), context, lambda target: replace_where(node, target, context))
        case "DeleteFromTable":
            return _run(node.table(), context, lambda target: _delete(node, target, context))
        case "UpdateTable":
            return _run(node.table(), context, lambda target: _update(node, target, context))
        case "MergeIntoTable":
            return _run(node.targetTable(), context, lambda target: _merge(node, target, context))
        case "TruncateTable":
            return _run(node.child(), context, lambda target: _truncate(target, context))
        case _:
            return None


def _with_inside(around: Any, node: Any, context: SqlContext) -> Any:
    """A change below common table expressions, which are moved around each of its queries."""

    def query(plan: Any) -> Any:
        return copy(context.gateway, around, child=plan)

    match kind_of(node):
        case kind if kind in _INSERTS:
            return copy(context.gateway, node, query=query(node.query()))
        case "Union":
            children = [_with_inside(around, child, context) for child in items(node.children())]
            return copy(context.gateway, node, children=context.gateway.seq(children))
        case kind:
            changed = rebuilt_expressions(
                node,
                lambda inner: inner.withNewPlan(query(inner.plan())) if kind_of(inner) in _SUBQUERIES else inner,
            )
            if kind != "MergeIntoTable":
                return changed
            source, alias = _without_alias(node.sourceTable())
            name = alias or (parts(source)[-1] if is_name(source) else None)
            inner = query(source) if name is None else context.named_plan(query(source), (name,))
            return copy(context.gateway, changed, sourceTable=inner)


def _is_inserts(node: Any) -> bool:
    """Whether it is `FROM ... INSERT INTO ... INSERT INTO ...`."""
    return kind_of(node) == "Union" and all(kind_of(child) == "InsertIntoStatement" for child in items(node.children()))


def _insert_each(nodes: Sequence[Any], context: SqlContext) -> Any | None:
    """Several inserts from one query: all are checked before the first one runs; None if none is ours."""
    targets = [target_of(_without_alias(insertion.table())[0], context) for insertion in nodes]
    if not any(targets):
        return None
    runs = [
        _sparks_insert(node, context) if target is None else insert(node, target, context, is_checked=True)
        for node, target in zip(nodes, targets, strict=True)
    ]
    for run in runs:
        run()
    return context.result()


def _sparks_insert(node: Any, context: SqlContext) -> Callable[[], None]:
    plan = resolve(node, context)
    analyzer = context.gateway.spark._jsparkSession.sessionState().analyzer()
    analyzer.checkAnalysis(analyzer.execute(plan))

    def run() -> None:
        # Spark runs a command when its frame is made.
        context.frame_of(plan)

    return run


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


def _qualifier(node: Any, target: Source) -> tuple[str, ...]:
    """What the columns of the target may be qualified by."""
    relation, alias = _without_alias(node)
    return qualifier_of(target, parts(relation)) if alias is None else (alias,)


def target_of(node: Any, context: SqlContext) -> Source | None:
    """The table that a statement changes, and its branch; None if it is not ours."""
    if kind_of(node) not in ("UnresolvedRelation", "UnresolvedTable"):
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
    """Raise if the target is a tag, or a branch that does not exist."""
    if source.ref is None:
        return
    ref = source.catalog.load_table(source.identifier).refs().get(source.ref)
    if ref is None:
        raise NoSuchSnapshotError(
            f"table {show(source.identifier)} has no branch {source.ref!r}; ALTER TABLE ... CREATE BRANCH makes one"
        )
    if ref.ref_type is not SnapshotRefType.BRANCH:
        raise InvalidInputError(f"{source.ref!r} of table {show(source.identifier)} is a tag, which cannot be changed")


def _delete(node: Any, target: Source, context: SqlContext) -> None:
    table = target.catalog.load_table(target.identifier)
    expression = _resolved(node, "table", context).condition()
    # Spark has no filters by NULL, but looks for rows to keep in other words where files are written anew.
    condition = _condition(expression, context, takes_null=DELETE.copies(table.metadata))
    delete_rows(_target(target, table, _qualifier(node.table(), target), context), condition)


def _truncate(target: Source, context: SqlContext) -> None:
    table = target.catalog.load_table(target.identifier)
    to = destination(context.gateway.spark, table, target.ref)
    table.delete("true", to.snapshot_properties, to.branch)


def _update(node: Any, target: Source, context: SqlContext) -> None:
    table, name = target.catalog.load_table(target.identifier), _qualifier(node.table(), target)
    statement = _resolved(node, "table", context)
    condition = option(statement.condition())
    update_rows(
        _target(target, table, name, context),
        _assignments(statement.assignments(), table, name, context),
        None if condition is None else _condition(condition, context),
    )


def _merge(node: Any, target: Source, context: SqlContext) -> None:
    table, name = target.catalog.load_table(target.identifier), _qualifier(node.targetTable(), target)
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
    evolves = bool(argument(node, "withSchemaEvolution", False))
    merge = Merge(on, matched, not_matched, by_source, name, _alias_of(statement.sourceTable()), evolves)
    merge_rows(_target(target, table, name, context), source, merge)


def _target(source: Source, table: Table, name: tuple[str, ...], context: SqlContext) -> TargetTable:
    """The table as the target of a change; its columns may be qualified by the name."""
    spark = context.gateway.spark
    to = destination(spark, table, source.ref)
    return TargetTable(spark, table, to.branch, to.snapshot_properties, name, context.metadata_columns())


def _resolved(node: Any, target: str, context: SqlContext) -> Any:
    """The statement with our tables resolved, except its target, which is scanned when the statement runs."""
    return resolve(copy(context.gateway, node, **{target: context.result()}), context)


def _alias_of(node: Any) -> tuple[str, ...] | None:
    """All parts of a relation's alias."""
    if kind_of(node) != "SubqueryAlias":
        return None
    return (*items(node.identifier().qualifier()), node.identifier().name())


def _clause(action: Any, table: Table, name: tuple[str, ...], context: SqlContext) -> Clause:
    kind = kind_of(action)
    condition = option(action.condition())
    column = None if condition is None else _clause_condition(condition, context)
    match kind:
        case "DeleteAction":
            return Clause(Action.DELETE, column)
        case "UpdateStarAction":
            return Clause(Action.UPDATE, column)
        case "InsertStarAction":
            return Clause(Action.INSERT, column)
        case "UpdateAction" | "InsertAction":
            assignments = tuple(_assignments(action.assignments(), table, name, context))
            return Clause(Action.UPDATE if kind == "UpdateAction" else Action.INSERT, column, assignments)
        case _:
            raise InvalidInputError(f"MERGE: {kind} is not understood")


def _clause_condition(expression: Any, context: SqlContext) -> Column:
    """The condition of a clause; NULL is a condition that is never true."""
    column = context.gateway.column(expression)
    is_null = kind_of(expression) == "Literal" and kind_of(expression.dataType()) == "NullType"
    return column.cast("boolean") if is_null else column


def _assignments(nodes: Any, table: Table, name: tuple[str, ...], context: SqlContext) -> list[Assignment]:
    assignments = []
    for node in items(nodes):
        path = tuple(items(node.key().nameParts()))
        assignments.append(Assignment(path, _value(node.value(), path, table, name, context)))
    return assignments


def _value(expression: Any, path: tuple[str, ...], table: Table, name: tuple[str, ...], context: SqlContext) -> Column:
    """The assigned value; the word DEFAULT is the column's write default."""
    is_default = kind_of(expression) == "UnresolvedAttribute" and [
        part.upper() for part in items(expression.nameParts())
    ] == ["DEFAULT"]
    if not is_default:
        return context.gateway.column(expression)
    field = table.schema().find_field(".".join(column_path(path, table.schema(), context.is_case_sensitive, name)))
    return default_column(write_default(field), field.field_type, mapping_of(context.gateway.spark))


def _condition(expression: Any, context: SqlContext, *, takes_null: bool = False) -> Column | None:
    """The condition of a statement; None if it is true for all rows."""
    if kind_of(expression) == "Literal" and str(expression.value()) == "True":
        return None
    return _clause_condition(expression, context) if takes_null else context.gateway.column(expression)
