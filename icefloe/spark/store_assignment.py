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
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as spark_types

from icefloe.data.shaping import write_default
from icefloe.errors import InvalidInputError, InvalidValueError
from icefloe.schema import types
from icefloe.schema.schema import Schema
from icefloe.spark.casting import stands_for
from icefloe.spark.gateway import Gateway, active, is_at_least
from icefloe.spark.shaping import bare_type, is_case_sensitive, match_names, shaped_value
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
    """Fail under the policy that Spark refuses for all tables but those of its oldest kind."""
    if str(spark.conf.get(_POLICY)).lower() == "legacy":
        raise InvalidInputError(
            f"{_POLICY}=LEGACY is not for Iceberg tables, in Spark either; set it to ANSI or STRICT"
        )


def check_left_out(spark: Any, schema: Schema, given: Iterable[str], table: str) -> None:
    """Fail if a row is given no value for a column that has no default, and the session says that NULL is none."""
    if str(spark.conf.get(_LEFT_OUT_IS_NULL)).lower() == "true":
        return
    known = set(given)
    missing = [each.name for each in schema.fields if each.name not in known and write_default(each) is None]
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
    structs are found by their places instead of their names if `by_position`.
    """
    spark = frame.sparkSession
    gateway = Gateway(spark)
    fields = {field.name: field for field in schema.fields}
    places = match_names(frame.columns, list(fields), "", is_case_sensitive(spark))
    check_left_out(spark, schema, places, table)
    taker = _Taker(mapping_of(spark), by_position)
    wanted = [
        spark_types.StructField(name, taker.type(fields[name].field_type, frame.schema.fields[place].dataType))
        for name, place in sorted(places.items(), key=lambda item: item[1])
    ]
    if all(bare_type(one.dataType) == bare_type(each.dataType) for one, each in zip(wanted, frame.schema, strict=True)):
        return frame
    check_policy(spark)
    catalyst = gateway.jvm.org.apache.spark.sql.catalyst
    expected = catalyst.types.DataTypeUtils.toAttributes(gateway.type(spark_types.StructType(wanted)))
    plan, conf = frame._jdf.queryExecution().analyzed(), spark._jsparkSession.sessionState().conf()
    filling = _filling(gateway, evolves=evolves)
    with _told(table):
        made = catalyst.analysis.TableOutputResolver.resolveOutputColumns(
            table, expected, plan, not by_position, conf, filling
        )
    return gateway.frame(gateway.jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, made))


def with_names_of(given: Any, kind: types.IcebergType) -> Any:
    """A Spark type whose structs, but not those in lists and maps, have the names of a table's, if they are as wide."""
    if not isinstance(given, spark_types.StructType) or not isinstance(kind, types.StructType):
        return given
    if len(given.fields) != len(kind.fields):
        return given
    pairs = zip(given.fields, kind.fields, strict=True)
    return spark_types.StructType(
        [
            spark_types.StructField(own.name, with_names_of(each.dataType, own.field_type), each.nullable)
            for each, own in pairs
        ]
    )


def _filling(gateway: Gateway, *, evolves: bool) -> Any:
    """Whether fields that are missing in structs are filled, as this release of Spark wants to be told."""
    analysis = gateway.jvm.org.apache.spark.sql.catalyst.analysis
    if evolves and _is_on(gateway.spark, _FILLS_INSERTS):
        return getattr(getattr(analysis, "TableOutputResolver$DefaultValueFillMode$"), "MODULE$").RECURSE()
    return getattr(analysis.TableOutputResolver, "resolveOutputColumns$default$6")()


@dataclass(frozen=True)
class _Taker:
    """Which Spark type is to be given for a column, whether null or not: its own, or what is given if that stands for it."""

    mapping: TypeMapping
    by_position: bool

    def type(self, kind: types.IcebergType, given: Any = None) -> Any:
        match kind:
            case types.StructType():
                return spark_types.StructType(self._fields(kind, given))
            case types.ListType():
                inner = given.elementType if isinstance(given, spark_types.ArrayType) else None
                return spark_types.ArrayType(self.type(kind.element_type, inner))
            case types.MapType():
                is_map = isinstance(given, spark_types.MapType)
                keys, values = (given.keyType, given.valueType) if is_map else (None, None)
                return spark_types.MapType(self.type(kind.key_type, keys), self.type(kind.value_type, values))
            case _:
                is_taken = given is not None and stands_for(given, kind)
                return given if is_taken else user_type(kind, self.mapping)

    def _fields(self, kind: types.StructType, given: Any) -> list[Any]:
        inner = given.fields if isinstance(given, spark_types.StructType) else []
        placed = dict(enumerate(each.dataType for each in inner))
        named = {each.name.lower(): each.dataType for each in inner} | {each.name: each.dataType for each in inner}
        found = []
        for place, field in enumerate(kind.fields):
            by_name = named.get(field.name, named.get(field.name.lower()))
            own = self.type(field.field_type, placed.get(place) if self.by_position else by_name)
            found.append(spark_types.StructField(field.name, own))
        return found


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
        named = {f"{_VALUE}{place}": column for place, column in enumerate(columns)}
        plan = rows.select(*(column.alias(name) for name, column in named.items()))._jdf.queryExecution().analyzed()
        base = rows._jdf.queryExecution().analyzed()
        if any(each in _NOT_OF_ONE_ROW for each in _node_names_above(base, plan)):
            raise InvalidInputError(
                f"table {self.table}: a value to assign is that of one row; no aggregate, window or generator, such as explode,"
                " gives that"
            )
        if plan.nodeName() == "Project" and plan.child().equals(base):
            found = plan.projectList()
            return rows, [found.apply(place).child() for place in range(len(named))]
        wider = rows.withColumns(named)
        found = wider._jdf.queryExecution().analyzed().output()
        first = found.size() - len(named)
        return wider, [found.apply(first + place) for place in range(len(named))]

    def shown(self, rows: DataFrame, values: Mapping[Path, Column]) -> dict[Path, Column]:
        """The values, each as Spark shows the type of its column if it stands for one that Spark lacks."""
        kinds = {path: self._fields(path)[-1][1].field_type for path in values}
        if not any(
            isinstance(kind, types.UUIDType | types.TimestampNanoType | types.TimestamptzNanoType)
            for kind in kinds.values()
        ):
            return dict(values)
        named = [column.alias(f"{_VALUE}{place}") for place, column in enumerate(values.values())]
        found = dict(values)
        for path, field in zip(values, rows.select(*named).schema.fields, strict=True):
            if stands_for(field.dataType, kinds[path]):
                found[path] = shaped_value(rows, values[path], field.dataType, kinds[path], ".".join(path))
        return found

    def updated(
        self, old: Mapping[str, Any], values: Mapping[Path, Any], *, is_star: bool = False
    ) -> dict[str, Column]:
        """What columns are to be that are assigned, or have fields that are; `old` has what each is, as an attribute."""
        names = list(dict.fromkeys(path[0] for path in values))
        held = {name: old[name].withName(name).withDataType(old[name].dataType().asNullable()) for name in names}
        made = [self._assignment(self._key(path, held[path[0]]), value) for path, value in values.items()]
        more = (is_star, self._fills) if self._knows_stars else ()
        return self._aligned("alignUpdateAssignments", held, made, *more)

    def inserted(self, values: Mapping[str, Any]) -> dict[str, Column]:
        """What columns of a new row are that values are given for."""
        taker = _Taker(mapping_of(self.gateway.spark), by_position=False)
        fields = [(each.name, taker.type(each.field_type)) for each in self.schema.fields if each.name in values]
        kind = spark_types.StructType([spark_types.StructField(*each) for each in fields])
        attributes = self.gateway.jvm.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(
            self.gateway.type(kind)
        )
        held = {name: attributes.apply(place) for place, (name, _) in enumerate(fields)}
        made = [self._assignment(held[name], value) for name, value in values.items()]
        return self._aligned("alignInsertAssignments", held, made, *((self._fills,) if self._knows_stars else ()))

    @property
    def _knows_stars(self) -> bool:
        return is_at_least(self.gateway.spark, _KNOWS_STARS)

    @property
    def _fills(self) -> bool:
        """Whether fields of structs that the source lacks are filled."""
        return self.evolves and _is_on(self.gateway.spark, _FILLS_MERGES)

    def _aligned(self, rule: str, held: Mapping[str, Any], made: Sequence[Any], *more: bool) -> dict[str, Column]:
        gateway = self.gateway
        check_policy(gateway.spark)
        rules = gateway.jvm.org.apache.spark.sql.catalyst.analysis.AssignmentUtils
        with active(gateway.spark), _told(self.table):
            found = getattr(rules, rule)(gateway.seq(held.values()), gateway.seq(made), *more)
        return {name: gateway.column(found.apply(place).value()) for place, name in enumerate(held)}

    def _assignment(self, key: Any, value: Any) -> Any:
        return self.gateway.jvm.org.apache.spark.sql.catalyst.plans.logical.Assignment(key, value)

    def _key(self, path: Path, attribute: Any) -> Any:
        found = attribute
        for place, field in self._fields(path)[1:]:
            inner = self.gateway.jvm.org.apache.spark.sql.catalyst.expressions.GetStructField
            found = inner(found, place, self.gateway.jvm.scala.Some(field.name))
        return found

    def _fields(self, path: Path) -> list[tuple[int, types.NestedField]]:
        """The fields of a path, each with its place."""
        found = []
        kind: types.IcebergType = self.schema.as_struct
        for name in path:
            assert isinstance(kind, types.StructType), "paths of assignments are checked"
            found += [(place, each) for place, each in enumerate(kind.fields) if each.name == name]
            kind = found[-1][1].field_type
        return found


@contextmanager
def _told(table: str) -> Iterator[None]:
    """What Spark's rules refuse, as an error of ours."""
    try:
        yield
    except AnalysisException as problem:
        text = str(problem).partition(_STACK)[0]
        found = _REFUSED.fullmatch(text.strip())
        raise InvalidValueError(f"table {table}: {found[1] if found else text}") from problem


def _is_on(spark: Any, key: str) -> bool:
    return str(spark.conf.get(key, "false")).lower() == "true"
