"""What the word DEFAULT stands for in the query of an INSERT."""

import re
from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as spark_types

from icefloe.data import write_default
from icefloe.schema import IcebergType, NestedField, StructType
from icefloe.spark.literals import sql_literal, text_literal
from icefloe.spark.sql.context import SqlContext
from icefloe.spark.sql.nodes import copy
from icefloe.spark.types import CURRENT_DEFAULT, TypeMapping, mapping_of, user_type

_WORD = re.compile(r"\bdefault\b", re.IGNORECASE)


def mentions_default(context: SqlContext) -> bool:
    """Whether the word may be in the statement."""
    return _WORD.search(context.mentions) is not None


def with_defaults(node: Any, query: Any, fields: Sequence[NestedField], context: SqlContext) -> Any:
    """The query of an INSERT for these columns, with the word DEFAULT replaced by each column's default, by Spark's own rule.

    The rule is one for INSERT alone. So it is given the statement, about a relation that has the columns in question.
    """
    gateway = context.gateway
    catalyst = gateway.jvm.org.apache.spark.sql.catalyst
    mapping = mapping_of(gateway.spark)
    columns = spark_types.StructType([_column(field, mapping) for field in fields])
    attributes = catalyst.types.DataTypeUtils.toAttributes(gateway.type(columns))
    table = catalyst.plans.logical.LocalRelation(attributes, gateway.seq(()), False, gateway.none())
    nothing = gateway.jvm.PythonUtils.toScalaMap(gateway.jvm.java.util.HashMap())
    insertion = copy(
        gateway, node, table=table, query=query, partitionSpec=nothing, userSpecifiedCols=gateway.seq(()), byName=False
    )
    return gateway.spark._jsparkSession.sessionState().analyzer().execute(insertion).query()


def _column(field: NestedField, mapping: TypeMapping) -> Any:
    default = write_default(field)
    text = None if default is None else _text(default, field.field_type, mapping)
    metadata = {} if text is None else {CURRENT_DEFAULT: text}
    return spark_types.StructField(field.name, user_type(field.field_type, mapping), field.optional, metadata)


def _text(value: Any, field_type: IcebergType, mapping: TypeMapping) -> str:
    """A value as a SQL literal."""
    if value is None:
        return "NULL"
    if isinstance(field_type, StructType):
        inner = dict(value)
        fields = (
            f"{text_literal(field.name)}, {_text(inner[field.field_id], field.field_type, mapping)}"
            for field in field_type
        )
        return f"named_struct({', '.join(fields)})"
    return str(sql_literal(value, field_type, user_type(field_type, mapping)))
