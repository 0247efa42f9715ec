"""What a column gets for a value of another type where SQL stores it: by Spark's own rules of store assignment.

`spark.sql.storeAssignmentPolicy` chooses among them: ANSI, the default, refuses some types and fails on values that do not fit;
STRICT takes narrower types alone; LEGACY is one that Spark refuses for tables like these.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, types as spark_types

from icefloe.data import write_default
from icefloe.errors import InvalidInputError, InvalidValueError
from icefloe.schema import Schema, types
from icefloe.spark.gateway import Gateway, active, is_at_least
from icefloe.spark.shaping import bare_type, match_names, shaped_value, stands_for
from icefloe.spark.spark_sessions import is_case_sensitive
from icefloe.spark.types import TypeMapping, mapping_of, user_type

Path: TypeAlias = tuple[str, ...]
"""The name of a column, and of the fields below it."""

_POLICY = "spark.sql.storeAssignmentPolicy"
_LEFT_OUT_IS_NULL = "spark.sql.defaultColumn.useNullsForMissingDefaultValues"
_FILLS_INSERTS = "spark.sql.insertNestedTypeCoercion.enabled"
_FILLS_MERGES = "spark.sql.mergeNestedTypeCoercion.enabled"
_KNOWS_STARS = (4, 1)
"""From this Spark on, its rules for assignments ask whether they come of a `*`, and whether missing fields are filled."""
_VALUE = "__icefloe_value_"
_NOT_OF_ONE_ROW = ("Aggregate", "Window", "Generate")
"""What Spark makes of functions whose value depends on other rows, or that give several."""
_STACK = "\n\nJVM stacktrace"
_REFUSED = re.compile(r"\[\S+\] Cannot write incompatible data for the table .*?: (.*?)\s*SQLSTATE: \w+", re.DOTALL)
"""What Spark says of data that it does not take, about the table and the column."""


def check_policy(spark: Any) -> None:
    """Raise under the policy that Spark only allows for its oldest kind of tables."""
    if str(spark.conf.get(_POLICY)).lower() == "legacy":
        raise InvalidInputError(
            f"{_POLICY}=LEGACY is not for Iceberg tables, in Spark either; set it to ANSI or STRICT"
        )


def check_left_out(spark: Any, schema: Schema, given: Iterable[str], table: str) -> None:
    """Raise if a column without a default has no value, and the session does not use NULL as a default."""
    if str(spark.conf.get(_LEFT_OUT_IS_NULL)).lower() == "true":
        return
    known = set(given)
    missing = [field.name for field in schema.fields if field.name not in known and write_default(field) is None]
    if missing:
        raise InvalidValueError(
            f"table {table}: column {missing[0]!r} is given no value and has no default, and {_LEFT_OUT_IS_NULL} is false"
        )


# -- INSERT


def store_assigned(
    frame: DataFrame, schema: Schema, table: str, *, by_position: bool = False, evolves: bool = False
) -> DataFrame:
    """The frame, whose columns have names of the table's, with the casts that Spark's INSERT makes.

    Columns may be missing, but no field of a struct, unless the table `evolves` and a setting of Spark says so. Fields of
    structs match by position instead of by name if `by_position`.
    """
    spark = frame.sparkSession
    gateway = Gateway(spark)
    fields = {field.name: field for field in schema.fields}
    places = match_names(frame.columns, list(fields), "", is_case_sensitive(spark))
    check_left_out(spark, schema, places, table)
    taker = _Taker(mapping_of(spark), by_position)
    wanted = [
        spark_types.StructField(name, taker.type(fields[name].field_type, frame.schema.fields[index].dataType))
        for name, index in sorted(places.items(), key=lambda item: item[1])
    ]
    if all(
        bare_type(one.dataType) == bare_type(field.dataType) for one, field in zip(wanted, frame.schema, strict=True)
    ):
        return frame
    check_policy(spark)
    catalyst = gateway.jvm.org.apache.spark.sql.catalyst
    expected = catalyst.types.DataTypeUtils.toAttributes(gateway.type(spark_types.StructType(wanted)))
    plan, conf = frame._jdf.queryExecution().analyzed(), spark._jsparkSession.sessionState().conf()
    filling = _filling(gateway, evolves=evolves)
    with _refusals_as_ours(table):
        resolved = catalyst.analysis.TableOutputResolver.resolveOutputColumns(
            table, expected, plan, not by_position, conf, filling
        )
    return gateway.frame(gateway.jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, resolved))


def with_names_of(given: Any, field_type: types.IcebergType) -> Any:
    """A Spark type whose structs, but not those in lists and maps, have the names of a table's, if they are as wide."""
    if not isinstance(given, spark_types.StructType) or not isinstance(field_type, types.StructType):
        return given
    if len(given.fields) != len(field_type.fields):
        return given
    pairs = zip(given.fields, field_type.fields, strict=True)
    return spark_types.StructType(
        [
            spark_types.StructField(own.name, with_names_of(field.dataType, own.field_type), field.nullable)
            for field, own in pairs
        ]
    )


def _filling(gateway: Gateway, *, evolves: bool) -> Any:
    """Whether fields that are missing in structs are filled, in the form that this release of Spark takes."""
    analysis = gateway.jvm.org.apache.spark.sql.catalyst.analysis
    if evolves and _is_on(gateway.spark, _FILLS_INSERTS):
        return getattr(getattr(analysis, "TableOutputResolver$DefaultValueFillMode$"), "MODULE$").RECURSE()
    return getattr(analysis.TableOutputResolver, "resolveOutputColumns$default$6")()


@dataclass(frozen=True)
class _Taker:
    """Which Spark type is to be given for a column, whether null or not: its own, or what is given if that stands for it."""

    mapping: TypeMapping
    by_position: bool

    def type(self, field_type: types.IcebergType, given: Any = None) -> Any:
        match field_type:
            case types.StructType():
                return spark_types.StructType(self._fields(field_type, given))
            case types.ListType():
                inner = given.elementType if isinstance(given, spark_types.ArrayType) else None
                return spark_types.ArrayType(self.type(field_type.element_type, inner))
            case types.MapType():
                is_map = isinstance(given, spark_types.MapType)
                keys, values = (given.keyType, given.valueType) if is_map else (None, None)
                return spark_types.MapType(
                    self.type(field_type.key_type, keys), self.type(field_type.value_type, values)
                )
            case _:
                is_taken = given is not None and stands_for(given, field_type)
                return given if is_taken else user_type(field_type, self.mapping)

    def _fields(self, struct: types.StructType, given: Any) -> list[Any]:
        inner = given.fields if isinstance(given, spark_types.StructType) else []
        placed = dict(enumerate(field.dataType for field in inner))
        named = {field.name.lower(): field.dataType for field in inner} | {
            field.name: field.dataType for field in inner
        }
        fields = []
        for index, field in enumerate(struct.fields):
            by_name = named.get(field.name, named.get(field.name.lower()))
            own = self.type(field.field_type, placed.get(index) if self.by_position else by_name)
            fields.append(spark_types.StructField(field.name, own))
        return fields


# -- UPDATE and MERGE


def _node_names_above(base: Any, plan: Any) -> Iterator[str]:
    """The kinds of the nodes that a query over rows put on top of the plan of those."""
    while not plan.equals(base):
        yield plan.nodeName()
        if plan.nodeName() == "WithCTE":
            plan = plan.plan()
        elif plan.children().size() == 1:
            plan = plan.children().apply(0)
        else:
            return


@dataclass(frozen=True)
class Assigner:
    """Assigns values to columns of a table, over the rows of a frame.

    Values are resolved before they are assigned. What is made of them has the type of the column, so that no choice between
    a new value and an old one casts either.
    """

    gateway: Gateway
    schema: Schema
    table: str
    evolves: bool = False

    def resolved(self, rows: DataFrame, columns: Sequence[Column]) -> tuple[DataFrame, list[Any]]:
        """The expressions of columns as Spark finds them over the rows, and the rows, which subqueries may widen."""
        named = {f"{_VALUE}{index}": column for index, column in enumerate(columns)}
        plan = rows.select(*(column.alias(name) for name, column in named.items()))._jdf.queryExecution().analyzed()
        base = rows._jdf.queryExecution().analyzed()
        if any(name in _NOT_OF_ONE_ROW for name in _node_names_above(base, plan)):
            raise InvalidInputError(
                f"table {self.table}: a value to assign is that of one row; no aggregate, window or generator, such as explode,"
                " gives that"
            )
        if plan.nodeName() == "Project" and plan.child().equals(base):
            expressions = plan.projectList()
            return rows, [expressions.apply(index).child() for index in range(len(named))]
        wider = rows.withColumns(named)
        expressions = wider._jdf.queryExecution().analyzed().output()
        first = expressions.size() - len(named)
        return wider, [expressions.apply(first + index) for index in range(len(named))]

    def shown(self, rows: DataFrame, values: Mapping[Path, Column]) -> dict[Path, Column]:
        """The values, each as Spark shows the type of its column if it stands for one that Spark lacks."""
        kinds = {path: self._fields(path)[-1][1].field_type for path in values}
        if not any(
            isinstance(field_type, types.UUIDType | types.TimestampNanoType | types.TimestamptzNanoType)
            for field_type in kinds.values()
        ):
            return dict(values)
        named = [column.alias(f"{_VALUE}{index}") for index, column in enumerate(values.values())]
        shown = dict(values)
        for path, field in zip(values, rows.select(*named).schema.fields, strict=True):
            if stands_for(field.dataType, kinds[path]):
                shown[path] = shaped_value(rows, values[path], field.dataType, kinds[path], ".".join(path))
        return shown

    def updated(
        self, old: Mapping[str, Any], values: Mapping[Path, Any], *, is_star: bool = False
    ) -> dict[str, Column]:
        """What columns are to be that are assigned, or have fields that are; `old` has what each is, as an attribute."""
        names = list(dict.fromkeys(path[0] for path in values))
        held = {name: old[name].withName(name).withDataType(old[name].dataType().asNullable()) for name in names}
        assignments = [self._assignment(self._key(path, held[path[0]]), value) for path, value in values.items()]
        more = (is_star, self._fills) if self._knows_stars else ()
        return self._aligned("alignUpdateAssignments", held, assignments, *more)

    def inserted(self, values: Mapping[str, Any]) -> dict[str, Column]:
        """The columns of a new row that have values."""
        taker = _Taker(mapping_of(self.gateway.spark), by_position=False)
        fields = [(field.name, taker.type(field.field_type)) for field in self.schema.fields if field.name in values]
        struct = spark_types.StructType([spark_types.StructField(*field) for field in fields])
        attributes = self.gateway.jvm.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(
            self.gateway.type(struct)
        )
        held = {name: attributes.apply(index) for index, (name, _) in enumerate(fields)}
        assignments = [self._assignment(held[name], value) for name, value in values.items()]
        return self._aligned(
            "alignInsertAssignments", held, assignments, *((self._fills,) if self._knows_stars else ())
        )

    @property
    def _knows_stars(self) -> bool:
        return is_at_least(self.gateway.spark, _KNOWS_STARS)

    @property
    def _fills(self) -> bool:
        """Whether fields of structs that the source lacks are filled."""
        return self.evolves and _is_on(self.gateway.spark, _FILLS_MERGES)

    def _aligned(
        self, rule: str, held: Mapping[str, Any], assignments: Sequence[Any], *more: bool
    ) -> dict[str, Column]:
        gateway = self.gateway
        check_policy(gateway.spark)
        rules = gateway.jvm.org.apache.spark.sql.catalyst.analysis.AssignmentUtils
        with active(gateway.spark), _refusals_as_ours(self.table):
            aligned = getattr(rules, rule)(gateway.seq(held.values()), gateway.seq(assignments), *more)
        return {name: gateway.column(aligned.apply(index).value()) for index, name in enumerate(held)}

    def _assignment(self, key: Any, value: Any) -> Any:
        return self.gateway.jvm.org.apache.spark.sql.catalyst.plans.logical.Assignment(key, value)

    def _key(self, path: Path, attribute: Any) -> Any:
        key = attribute
        for index, field in self._fields(path)[1:]:
            inner = self.gateway.jvm.org.apache.spark.sql.catalyst.expressions.GetStructField
            key = inner(key, index, self.gateway.jvm.scala.Some(field.name))
        return key

    def _fields(self, path: Path) -> list[tuple[int, types.NestedField]]:
        """The fields of a path, each with its index."""
        fields = []
        field_type: types.IcebergType = self.schema.as_struct
        for name in path:
            assert isinstance(field_type, types.StructType), "paths of assignments are checked"
            fields += [(index, field) for index, field in enumerate(field_type.fields) if field.name == name]
            field_type = fields[-1][1].field_type
        return fields


@contextmanager
def _refusals_as_ours(table: str) -> Iterator[None]:
    """Raise what Spark's rules refuse as an error of ours."""
    try:
        yield
    except AnalysisException as problem:
        text = str(problem).partition(_STACK)[0]
        match = _REFUSED.fullmatch(text.strip())
        raise InvalidValueError(f"table {table}: {match[1] if match else text}") from problem


def _is_on(spark: Any, key: str) -> bool:
    return str(spark.conf.get(key, "false")).lower() == "true"
