"""`INSERT`, `DELETE`, `UPDATE` and `MERGE`: what the nodes of such a statement say, and who runs it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, functions

from icefloe.catalog.identifiers import show
from icefloe.data.shaping import write_default
from icefloe.errors import InvalidInputError, NoSuchSnapshotError, NoSuchTableError
from icefloe.expressions import EqualTo, Expression, IdReference, IsNull, Literal
from icefloe.expressions.values import conjunction
from icefloe.metadata.refs import SnapshotRefType
from icefloe.partitioning import IdentityTransform
from icefloe.schema.schema import Schema
from icefloe.schema.values import parse_text
from icefloe.spark.auditing import destination
from icefloe.spark.column_names import column_path
from icefloe.spark.row_merge import Action, Clause, Merge, merge_rows
from icefloe.spark.row_statements import Assignment, default_column, delete_rows, update_rows
from icefloe.spark.shaping import is_case_sensitive, shape_frame
from icefloe.spark.sql_conditions import predicate_of
from icefloe.spark.sql_context import SqlContext
from icefloe.spark.sql_names import Source
from icefloe.spark.sql_nodes import argument, copy, is_name, items, kind_of, option, parts, rebuilt_expressions
from icefloe.spark.sql_nodes import mapping as entries
from icefloe.spark.sql_queries import qualifier_of, resolve
from icefloe.spark.store_assignment import check_policy, store_assigned, with_names_of
from icefloe.spark.types import mapping_of, schema_from_spark, user_schema, user_type
from icefloe.spark.user_side import quoted_name
from icefloe.table import Table

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_INSERTS = ("InsertIntoStatement", "OverwriteByExpression")
_CHANGES = ("DeleteFromTable", "UpdateTable", "MergeIntoTable")
_SUBQUERIES = ("ScalarSubquery", "ListQuery", "Exists", "LateralSubquery")


def run_changes(node: Any, context: SqlContext) -> Any | None:
    """The result plan of a change of rows of a table of ours; None if it is none."""
    match kind_of(node):
        case "UnresolvedWith" if kind_of(node.child()) in (*_INSERTS, *_CHANGES) or _is_inserts(node.child()):
            return run_changes(_with_inside(node, node.child(), context), context)
        case "InsertIntoStatement":
            return _run(node.table(), context, lambda target: _insert(node, target, context)())
        case "Union" if _is_inserts(node):
            return _insert_each(items(node.children()), context)
        case "OverwriteByExpression":
            # What older releases of Spark make of INSERT INTO ... REPLACE WHERE.
            return _run(node.table(), context, lambda target: _replace_where(node, target, context))
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
    """A change that is below common table expressions, with these around each of the queries in it instead."""

    def query(plan: Any) -> Any:
        return copy(context.gateway, around, child=plan)

    match kind_of(node):
        case kind if kind in _INSERTS:
            return copy(context.gateway, node, query=query(node.query()))
        case "Union":
            children = [_with_inside(around, each, context) for each in items(node.children())]
            return copy(context.gateway, node, children=context.gateway.seq(children))
        case kind:
            changed = rebuilt_expressions(
                node, lambda each: each.withNewPlan(query(each.plan())) if kind_of(each) in _SUBQUERIES else each
            )
            if kind != "MergeIntoTable":
                return changed
            source, alias = _without_alias(node.sourceTable())
            name = alias or (parts(source)[-1] if is_name(source) else None)
            inner = query(source) if name is None else context.named_plan(query(source), (name,))
            return copy(context.gateway, changed, sourceTable=inner)


def _is_inserts(node: Any) -> bool:
    """Whether it is `FROM ... INSERT INTO ... INSERT INTO ...`."""
    return kind_of(node) == "Union" and all(kind_of(each) == "InsertIntoStatement" for each in items(node.children()))


def _insert_each(nodes: Sequence[Any], context: SqlContext) -> Any | None:
    """Several inserts from one query: all are understood before the first is run; None if none is ours."""
    targets = [target_of(_without_alias(each.table())[0], context) for each in nodes]
    if not any(targets):
        return None
    runs = [
        _sparks_insert(node, context) if target is None else _insert(node, target, context, is_checked=True)
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
    """The table, and the branch of it, that a change is about; None if it is not ours."""
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


def _insert(node: Any, target: Source, context: SqlContext, *, is_checked: bool = False) -> Callable[[], None]:
    """What runs an INSERT; all that needs no run is looked at before."""
    table = target.catalog.load_table(target.identifier)
    partition = entries(context.gateway, node.partitionSpec())
    static = _static_partition(partition, table, context)
    frame = context.frame_of(resolve(node.query(), context))
    if frame.columns != [field.name for field in table.schema().fields]:
        check_policy(context.gateway.spark)
    frame = _named(frame, table, static, by_name=node.byName(), given_names=items(node.userSpecifiedCols()))
    criteria = argument(node, "replaceCriteriaOpt")
    criteria = None if criteria is None else option(criteria)
    if criteria is not None and kind_of(criteria) != "InsertReplaceWhere":
        raise InvalidInputError("only REPLACE WHERE says which rows an INSERT takes the place of")
    evolves = bool(argument(node, "withSchemaEvolution", False))

    def assigned(schema: Schema) -> DataFrame:
        by_position = not node.byName() and not node.userSpecifiedCols().size()
        return store_assigned(frame, schema, ".".join(table.name()), by_position=by_position, evolves=evolves)

    if is_checked and not evolves:
        shape_frame(assigned(table.schema()), table.schema())

    def run() -> None:
        with table.transaction() as tx:
            if evolves:
                with tx.update_schema(case_sensitive=context.is_case_sensitive) as update:
                    update.union_by_name(schema_from_spark(frame.schema))
            given = assigned(tx.table_metadata.schema())
            to = destination(context.gateway.spark, table, target.ref)
            rows = tx.rows(to.branch, to.notes)
            if criteria is not None:
                rows.overwrite(given, _rows_where(criteria.cond(), table, context))
            elif not node.overwrite():
                rows.append(given)
            elif str(context.gateway.spark.conf.get(_OVERWRITE_MODE)).lower() == "dynamic":
                rows.dynamic_partition_overwrite(given)
            else:
                rows.overwrite(given, _static_filter(static, table))

    return run


def _static_partition(given: Mapping[str, Any], table: Table, context: SqlContext) -> dict[str, str | None]:
    """The values of a PARTITION clause by column, None being NULL; columns that have none there are in the data."""
    sources = {each.source_id for each in table.spec().fields if isinstance(each.transform, IdentityTransform)}
    by = {each.field_id: each.name for each in table.schema().fields if each.field_id in sources}
    found = {}
    for name, value in given.items():
        column = by.get(table.schema().find_id(name, context.is_case_sensitive) or 0)
        if column is None:
            raise InvalidInputError(
                f"[NON_PARTITION_COLUMN] PARTITION names {name!r}, by whose values the table is not partitioned;"
                f" it is by those of {', '.join(by.values()) or 'no column'}"
            )
        if value.isDefined():
            found[column] = value.get()
    return found


def _replace_where(node: Any, target: Source, context: SqlContext) -> None:
    table = target.catalog.load_table(target.identifier)
    frame = _named(context.frame_of(resolve(node.query(), context)), table, {}, by_name=node.isByName())
    where = _rows_where(node.deleteExpr(), table, context)
    frame = store_assigned(frame, table.schema(), ".".join(table.name()), by_position=not node.isByName())
    to = destination(context.gateway.spark, table, target.ref)
    table.overwrite(frame, where, to.notes, branch=to.branch)


def _rows_where(condition: Any, table: Table, context: SqlContext) -> str:
    """The condition of REPLACE WHERE as we read it, its columns found by Spark."""
    spark = context.gateway.spark
    columns = spark.createDataFrame([], user_schema(table.schema(), mapping_of(spark)))
    return predicate_of(context.gateway.column(condition), columns)


def _delete(node: Any, target: Source, context: SqlContext) -> None:
    table = target.catalog.load_table(target.identifier)
    condition = _condition(_resolved(node, "table", context).condition(), context)
    to = destination(context.gateway.spark, table, target.ref)
    delete_rows(
        context.gateway.spark,
        table,
        condition,
        alias=_qualifier(node.table(), target),
        metadata_columns=context.metadata_columns(),
        branch=to.branch,
        notes=to.notes,
    )


def _truncate(target: Source, context: SqlContext) -> None:
    table = target.catalog.load_table(target.identifier)
    to = destination(context.gateway.spark, table, target.ref)
    table.delete("true", to.notes, to.branch)


def _update(node: Any, target: Source, context: SqlContext) -> None:
    table, name = target.catalog.load_table(target.identifier), _qualifier(node.table(), target)
    found = _resolved(node, "table", context)
    condition = option(found.condition())
    to = destination(context.gateway.spark, table, target.ref)
    update_rows(
        context.gateway.spark,
        table,
        _assignments(found.assignments(), table, name, context),
        None if condition is None else _condition(condition, context),
        alias=name,
        metadata_columns=context.metadata_columns(),
        branch=to.branch,
        notes=to.notes,
    )


def _merge(node: Any, target: Source, context: SqlContext) -> None:
    table, name = target.catalog.load_table(target.identifier), _qualifier(node.targetTable(), target)
    found = _resolved(node, "targetTable", context)
    source = context.frame_of(found.sourceTable())
    matched, not_matched, by_source = (
        tuple(_clause(each, table, name, context) for each in items(actions))
        for actions in (found.matchedActions(), found.notMatchedActions(), found.notMatchedBySourceActions())
    )
    on = context.gateway.column(found.mergeCondition())
    evolves = bool(argument(node, "withSchemaEvolution", False))
    merge = Merge(on, matched, not_matched, by_source, name, _alias_of(found.sourceTable()), evolves)
    to = destination(context.gateway.spark, table, target.ref)
    merge_rows(
        context.gateway.spark,
        table,
        source,
        merge,
        metadata_columns=context.metadata_columns(),
        branch=to.branch,
        notes=to.notes,
    )


def _resolved(node: Any, target: str, context: SqlContext) -> Any:
    """The statement with our tables in all but its target, which is scanned by whoever runs it, with what that needs."""
    return resolve(copy(context.gateway, node, **{target: context.result()}), context)


def _alias_of(node: Any) -> tuple[str, ...] | None:
    """The name that a relation was given, all its parts."""
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
            made = tuple(_assignments(action.assignments(), table, name, context))
            return Clause(Action.UPDATE if kind == "UpdateAction" else Action.INSERT, column, made)
        case _:
            raise InvalidInputError(f"MERGE: {kind} is not understood")


def _clause_condition(expression: Any, context: SqlContext) -> Column:
    """The condition of a clause, where NULL may stand for one that is never true."""
    column = context.gateway.column(expression)
    is_null = kind_of(expression) == "Literal" and kind_of(expression.dataType()) == "NullType"
    return column.cast("boolean") if is_null else column


def _assignments(found: Any, table: Table, name: tuple[str, ...], context: SqlContext) -> list[Assignment]:
    made = []
    for each in items(found):
        path = tuple(items(each.key().nameParts()))
        made.append(Assignment(path, _value(each.value(), path, table, name, context)))
    return made


def _value(expression: Any, path: tuple[str, ...], table: Table, name: tuple[str, ...], context: SqlContext) -> Column:
    """What is assigned; the word DEFAULT is what writers put where they are given nothing."""
    is_default = kind_of(expression) == "UnresolvedAttribute" and [
        each.upper() for each in items(expression.nameParts())
    ] == ["DEFAULT"]
    if not is_default:
        return context.gateway.column(expression)
    field = table.schema().find_field(".".join(column_path(path, table.schema(), context.is_case_sensitive, name)))
    return default_column(write_default(field), field.field_type, mapping_of(context.gateway.spark))


def _condition(expression: Any, context: SqlContext) -> Column | None:
    if kind_of(expression) == "Literal" and str(expression.value()) == "True":
        return None
    return context.gateway.column(expression)


def _named(
    frame: DataFrame,
    table: Table,
    static: Mapping[str, str | None],
    *,
    by_name: bool = False,
    given_names: Sequence[str] = (),
) -> DataFrame:
    """The frame with the table's column names, by position unless the statement says otherwise."""
    schema, sensitive = table.schema(), is_case_sensitive(frame.sparkSession)
    if by_name:
        for name in frame.columns:
            schema.find_id(name, sensitive)
    else:
        wanted = [_column_named(name, schema, sensitive) for name in given_names]
        if twice := [name for name in wanted if name in static]:
            raise InvalidInputError(
                f"[STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST] {twice[0]!r} has a value in PARTITION, and is in the"
                " list of columns; leave it out of one of them"
            )
        wanted = wanted or [field.name for field in schema.fields if field.name not in static]
        if len(frame.columns) != len(wanted):
            raise InvalidInputError(
                f"INSERT INTO {'.'.join(table.name())}: the data has {len(frame.columns)} columns"
                f" ({', '.join(frame.columns)}), and {len(wanted)} are wanted: {', '.join(wanted)}"
            )
        frame = frame.toDF(*wanted)
        frame = _renamed(frame, schema) if given_names else frame
    for name, value in static.items():
        shown = user_type(schema.find_type(name), mapping_of(frame.sparkSession))
        frame = frame.withColumn(name, functions.lit(value).cast(shown))
    return frame


def _column_named(name: str, schema: Schema, case_sensitive: bool) -> str:
    return column_path((name,), schema, case_sensitive)[0]


def _renamed(frame: DataFrame, schema: Schema) -> DataFrame:
    """The frame for a list of columns: fields are then found by name, as Spark does it, but those of its structs by position."""
    changed = {}
    for field in frame.schema.fields:
        kind = with_names_of(field.dataType, schema.find_type(field.name))
        if kind != field.dataType:
            changed[field.name] = frame[quoted_name(field.name)].cast(kind)
    return frame.withColumns(changed) if changed else frame


def _static_filter(static: Mapping[str, str | None], table: Table) -> Expression:
    """What the rows match that an overwrite of these partitions takes away; all rows if none is given."""
    found: list[Expression] = []
    for name, value in static.items():
        field = table.schema().find_field(name)
        column = IdReference(field.field_id)
        if value is None:
            found.append(IsNull(column))
        else:
            found.append(EqualTo(column, Literal(parse_text(value, field.field_type), field.field_type)))
    return conjunction(*found)
