"""Which values SQL may put into a column of another type: the casts that Spark makes where it stores values."""

from pyspark.sql import DataFrame

from icefloe.schema.schema import Schema
from icefloe.schema.types import NestedType
from icefloe.spark.gateway import Gateway
from icefloe.spark.shaping import is_case_sensitive
from icefloe.spark.types import mapping_of, user_type
from icefloe.spark.user_side import quoted_name

_ANSI = {"spark.sql.storeAssignmentPolicy": "ansi", "spark.sql.ansi.enabled": "true"}


def store_assigned(frame: DataFrame, schema: Schema) -> DataFrame:
    """The frame with the casts that Spark's INSERT makes under its ANSI policy, which fail where a value does not fit."""
    spark = frame.sparkSession
    if any(str(spark.conf.get(key)).lower() != wanted for key, wanted in _ANSI.items()):
        return frame
    gateway, mapping = Gateway(spark), mapping_of(spark)
    rules = gateway.jvm.org.apache.spark.sql.catalyst.expressions.Cast
    key = str if is_case_sensitive(spark) else str.lower
    columns = {key(field.name): field for field in schema.fields}
    casts = {}
    for field in frame.schema.fields:
        wanted = columns.get(key(field.name))
        if wanted is None or isinstance(wanted.field_type, NestedType):
            continue
        shown = user_type(wanted.field_type, mapping)
        if field.dataType == shown:
            continue
        given, asked = (gateway.type(each) for each in (field.dataType, shown))
        if not rules.canUpCast(given, asked) and rules.canANSIStoreAssign(given, asked):
            casts[field.name] = frame[quoted_name(field.name)].cast(shown)
    return frame.withColumns(casts) if casts else frame
