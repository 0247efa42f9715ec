"""How SQL stores a value in a column of another type: by Spark's own rules of store assignment.

`spark.sql.storeAssignmentPolicy` chooses among them: ANSI, the default, refuses some types and fails on values that do not fit;
STRICT takes narrower types alone; LEGACY is one that Spark refuses for tables like these.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from py4j.java_gateway import JavaObject
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, types as spark_types

from icefloe.data import write_default
from icefloe.errors import InvalidInputError, InvalidValueError
from icefloe.schema import Schema, types
from icefloe.spark.gateway import Gateway, active, analyzed, is_at_least, items
from icefloe.spark.shaping import bare_type, match_names, shaped_value, stands_for
from icefloe.spark.spark_sessions import is_case_sensitive, is_on
from icefloe.spark.types import TypeMapping, mapping_of, user_type

Path: TypeAlias = tuple[str, ...]
"""The name of a column, and of the fields below it."""

_POLICY = "spark.sql.storeAssignmentPolicy"
_LEFT_OUT_IS_NULL = "spark.sql.defaultColumn.useNullsForMissingDefaultValues"
_FILLS_INSERTS = "spark.sql.insertNestedTypeCoercion.enabled"
_FILLS_MERGES = "spark.sql.mergeNestedTypeCoercion.enabled"
_KNOWS_STARS = (4, 1)
"""From this Spark on, its rules for assignments take whether they come from a `*`, and whether missing fields are filled."""
_VALUE = "__icefloe_value_"
_NOT_OF_ONE_ROW = ("Aggregate", "Window", "Generate")
"""Plan nodes of functions whose value depends on other rows, or that return several."""
_STACK = "\n\nJVM stacktrace"
_REFUSED = re.compile(r"\[\S+\] Cannot write incompatible data for the table .*?: (.*?)\s*SQLSTATE: \w+", re.DOTALL)
"""Spark's error about data that it refuses, with what it says about the table and the column."""


def check_policy(spark: SparkSession) -> None:
    """Raise under the policy that Spark allows only for v1 data sources."""
    if str(spark.conf.get(_POLICY)).lower() == "legacy":
        raise InvalidInputError(
            f"{_POLICY}=LEGACY is not for Iceberg tables, in Spark either; set it to ANSI or STRICT"
        )


def check_left_out(spark: SparkSession, schema: Schema, assigned: Iterable[str], table: str) -> None:
    """Raise if a column without a default has no value, and the session does not use NULL as a default."""
    if is_on(spark, _LEFT_OUT_IS_NULL):
        return
    names = set(assigned)
    missing = [field.name for field in schema.fields if field.name not in names and write_default(field) is None]
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
    indexes = match_names(frame.columns, list(fields), "", is_case_sensitive(spark))
    check_left_out(spark, schema, indexes, table)
    accepted = _AcceptedTypes(mapping_of(spark), by_position)
    columns = [
        spark_types.StructField(name, accepted.type(fields[name].field_type, frame.schema.fields[index].dataType))
        for name, index in sorted(indexes.items(), key=lambda item: item[1])
    ]
    pairs = zip(columns, frame.schema, strict=True)
    if all(bare_type(column.dataType) == bare_type(field.dataType) for column, field in pairs):
        return frame
    check_policy(spark)
    conf, filling = spark._jsparkSession.sessionState().conf(), _filling(gateway, evolves=evolves)
    resolver = gateway.jvm.org.apache.spark.sql.catalyst.analysis.TableOutputResolver
    with _refusals_as_ours(table):
        expected = _attributes(gateway, columns)
        resolved = resolver.resolveOutputColumns(table, expected, analyzed(frame), not by_position, conf, filling)
    return gateway.frame_of(resolved)


def _attributes(gateway: Gateway, columns: Sequence[spark_types.StructField]) -> JavaObject:
    struct = gateway.type(spark_types.StructType(list(columns)))
    return gateway.jvm.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(struct)


def with_names_of(data_type: spark_types.DataType, field_type: types.IcebergType) -> spark_types.DataType:
    """A Spark type whose structs, but not those in lists and maps, have the names of a table's, if they are as wide."""
    if not isinstance(data_type, spark_types.StructType) or not isinstance(field_type, types.StructType):
        return data_type
    if len(data_type.fields) != len(field_type.fields):
        return data_type
    pairs = zip(data_type.fields, field_type.fields, strict=True)
    return spark_types.StructType(
        [
            spark_types.StructField(own.name, with_names_of(field.dataType, own.field_type), field.nullable)
            for field, own in pairs
        ]
    )


def _filling(gateway: Gateway, *, evolves: bool) -> JavaObject:
    """Whether fields that are missing in structs are filled, in the form that this release of Spark takes."""
    analysis = gateway.jvm.org.apache.spark.sql.catalyst.analysis
    if evolves and is_on(gateway.spark, _FILLS_INSERTS, "false"):
        return getattr(getattr(analysis, "TableOutputResolver$DefaultValueFillMode$"), "MODULE$").RECURSE()
    return getattr(analysis.TableOutputResolver, "resolveOutputColumns$default$6")()


@dataclass(frozen=True)
class _AcceptedTypes:
    """Which Spark type a column takes, whether null or not: its own, or that of the data if that stands for it."""

    mapping: TypeMapping
    by_position: bool

    def type(
        self, field_type: types.IcebergType, data_type: spark_types.DataType | None = None
    ) -> spark_types.DataType:
        match field_type:
            case types.StructType():
                return spark_types.StructType(self._fields(field_type, data_type))
            case types.ListType():
                element = data_type.elementType if isinstance(data_type, spark_types.ArrayType) else None
                return spark_types.ArrayType(self.type(field_type.element_type, element))
            case types.MapType():
                keys = data_type.keyType if isinstance(data_type, spark_types.MapType) else None
                values = data_type.valueType if isinstance(data_type, spark_types.MapType) else None
                return spark_types.MapType(
                    self.type(field_type.key_type, keys), self.type(field_type.value_type, values)
                )
            case _:
                stands = data_type is not None and stands_for(data_type, field_type)
                return data_type if stands else user_type(field_type, self.mapping)

    def _fields(
        self, struct: types.StructType, data_type: spark_types.DataType | None
    ) -> list[spark_types.StructField]:
        inner = data_type.fields if isinstance(data_type, spark_types.StructType) else []
        by_name = {field.name.lower(): field.dataType for field in inner}
        by_name |= {field.name: field.dataType for field in inner}
        fields = []
        for index, field in enumerate(struct.fields):
            if self.by_position:
                of_data = inner[index].dataType if index < len(inner) else None
            else:
                of_data = by_name.get(field.name, by_name.get(field.name.lower()))
            fields.append(spark_types.StructField(field.name, self.type(field.field_type, of_data)))
        return fields


# -- UPDATE and MERGE


def _node_names_above(base: JavaObject, plan: JavaObject) -> Iterator[str]:
    """The names of the nodes that a query over rows adds on top of their plan."""
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

    def resolved(self, rows: DataFrame, columns: Sequence[Column]) -> tuple[DataFrame, list[JavaObject]]:
        """The expressions of columns as Spark resolves them over the rows, and the rows, which subqueries may widen."""
        named = {f"{_VALUE}{index}": column for index, column in enumerate(columns)}
        plan = analyzed(rows.select(*(column.alias(name) for name, column in named.items())))
        base = analyzed(rows)
        if any(name in _NOT_OF_ONE_ROW for name in _node_names_above(base, plan)):
            raise InvalidInputError(
                f"table {self.table}: a value to assign is that of one row; no aggregate, window or generator, such as explode,"
                " gives that"
            )
        if plan.nodeName() == "Project" and plan.child().equals(base):
            return rows, [expression.child() for expression in items(plan.projectList())]
        wider = rows.withColumns(named)
        output = analyzed(wider).output()
        return wider, items(output.takeRight(len(named)))

    def shown(self, rows: DataFrame, values: Mapping[Path, Column]) -> dict[Path, Column]:
        """The values, each as Spark shows the type of its column if it stands for one that Spark lacks."""
        field_types = {path: self._fields(path)[-1][1].field_type for path in values}
        lacking = types.UUIDType | types.TimestampNanoType | types.TimestamptzNanoType
        if not any(isinstance(field_type, lacking) for field_type in field_types.values()):
            return dict(values)
        named = [column.alias(f"{_VALUE}{index}") for index, column in enumerate(values.values())]
        shown = dict(values)
        for path, field in zip(values, rows.select(*named).schema.fields, strict=True):
            if stands_for(field.dataType, field_types[path]):
                shown[path] = shaped_value(rows, values[path], field.dataType, field_types[path], ".".join(path))
        return shown

    def updated(
        self, old: Mapping[str, JavaObject], values: Mapping[Path, JavaObject], *, is_star: bool = False
    ) -> dict[str, Column]:
        """The new values of columns that are assigned, or have fields that are; `old` has their attributes."""
        names = list(dict.fromkeys(path[0] for path in values))
        attributes = {name: old[name].withName(name).withDataType(old[name].dataType().asNullable()) for name in names}
        keyed = [(self._key(path, attributes[path[0]]), value) for path, value in values.items()]
        return self._aligned("alignUpdateAssignments", attributes, keyed, is_star)

    def inserted(self, values: Mapping[str, JavaObject]) -> dict[str, Column]:
        """The columns of a new row that have values."""
        accepted = _AcceptedTypes(mapping_of(self.gateway.spark), by_position=False)
        columns = [
            spark_types.StructField(field.name, accepted.type(field.field_type))
            for field in self.schema.fields
            if field.name in values
        ]
        names = [column.name for column in columns]
        attributes = dict(zip(names, items(_attributes(self.gateway, columns)), strict=True))
        return self._aligned(
            "alignInsertAssignments", attributes, [(attributes[name], value) for name, value in values.items()]
        )

    def _aligned(
        self,
        rule: str,
        attributes: Mapping[str, JavaObject],
        values: Iterable[tuple[JavaObject, JavaObject]],
        *is_star: bool,
    ) -> dict[str, Column]:
        gateway = self.gateway
        check_policy(gateway.spark)
        catalyst = gateway.jvm.org.apache.spark.sql.catalyst
        assignments = [catalyst.plans.logical.Assignment(key, value) for key, value in values]
        # Whether fields of structs that the source lacks are filled.
        fills = self.evolves and is_on(gateway.spark, _FILLS_MERGES, "false")
        options = (*is_star, fills) if is_at_least(gateway.spark, _KNOWS_STARS) else ()
        align = getattr(catalyst.analysis.AssignmentUtils, rule)
        with active(gateway.spark), _refusals_as_ours(self.table):
            aligned = align(gateway.seq(attributes.values()), gateway.seq(assignments), *options)
        return {
            name: gateway.column(assignment.value())
            for name, assignment in zip(attributes, items(aligned), strict=True)
        }

    def _key(self, path: Path, attribute: JavaObject) -> JavaObject:
        key = attribute
        for index, field in self._fields(path)[1:]:
            name = self.gateway.jvm.scala.Some(field.name)
            key = self.gateway.expressions.GetStructField(key, index, name)
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
    """Turn a refusal by Spark's rules into an error of ours."""
    try:
        yield
    except AnalysisException as problem:
        text = str(problem).partition(_STACK)[0]
        match = _REFUSED.fullmatch(text.strip())
        raise InvalidValueError(f"table {table}: {match[1] if match else text}") from problem
