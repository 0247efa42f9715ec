"""How Spark tests which shapes meet a box, and how the box of such a test reaches the planning of files.

Spark has no spatial predicate of its own, so rows are tested by Python on the executors, in Arrow. What Python tests is not
pushed down to files; so a comparison stands beside it that is true for all shapes, is pushed down, and holds the box: the
shape is unlike bytes that no shape has. Predicates of Apache Sedona are recognised by their names, with the envelope of the
side that is constant.
"""

import re
import struct
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from py4j.java_gateway import JavaClass, JavaObject
from pyspark.sql import Column, functions as F, types as spark_types  # noqa: N812  # its usual name

from icefloe.schema import GeoBox, intersects, types
from icefloe.spark.catalyst import Node, NotUnderstood

_MARK = b"icefloe.st_intersects\0"
"""With which no WKB begins."""
_SIDES = struct.Struct("<4d")
_CONVERSIONS = re.compile(r"st(geom|geog)?(asbinary|setsrid|fromwkb)", re.IGNORECASE)
"""Functions of Spark that show a column of files as users see it, and as bytes again; none of them moves a shape."""
_STATIC_CALL = "objects.StaticInvoke"

_SEDONA = "sedona_sql.expressions."
_SEDONA_MEETINGS = frozenset(
    f"ST_{name}"
    for name in (
        "Intersects",
        "Contains",
        "Within",
        "Covers",
        "CoveredBy",
        "Crosses",
        "Touches",
        "Overlaps",
        "Equals",
        "OrderingEquals",
    )
)
"""Predicates that are true only where both sides meet."""
_SEDONA_READERS = ("ST_GeomFromWKB", "ST_GeomFromEWKB", "ST_GeogFromWKB", "ST_SetSRID")


def intersects_column(column: Column, box: GeoBox, field_type: types.GeometryType | types.GeographyType) -> Column:
    """Whether the shapes in a column of WKB meet the box; null for null."""
    return _row_test(box, field_type)(column)


def marked(column: Column, box: GeoBox) -> Column:
    """A test of a column of WKB that is true for every shape, and tells planning that those that meet the box are wanted."""
    return column != F.lit(bytearray(_MARK + _SIDES.pack(box.xmin, box.ymin, box.xmax, box.ymax)))


def as_wkb(column: Column, data_type: spark_types.DataType) -> Column:
    """A column of shapes, in Spark's type for them or in bytes, as WKB."""
    return column if data_type.typeName() == "binary" else F.call_function("st_asbinary", column)


def _row_test(box: GeoBox, field_type: types.GeometryType | types.GeographyType) -> Callable[[Column], Column]:
    def test(values: pa.Array) -> pa.Array:
        missing = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
        return pa.array(intersects(values, box, field_type), mask=missing)

    if hasattr(F, "arrow_udf"):
        test.__annotations__ = {"values": pa.Array, "return": pa.Array}
        of_arrow: Callable[[Column], Column] = F.arrow_udf(test, spark_types.BooleanType())
        return of_arrow
    import pandas as pd

    def series(values: pd.Series) -> pd.Series:
        return pd.Series(np.asarray(test(pa.array(values, pa.binary())).to_pandas()))

    of_pandas: Callable[[Column], Column] = F.pandas_udf(series, spark_types.BooleanType())
    return of_pandas


# -- in the filters of a query


def box_of(node: Node, field_of: Callable[[Node], types.NestedField]) -> tuple[types.NestedField, GeoBox] | None:
    """The column, and the box that its shapes must meet wherever the node is true; None if it says nothing of the kind."""
    if node.name == "Not" and node.children[0].name == "EqualTo":
        column, constant = node.children[0].children
        if constant.name == "Literal" and constant.facts.get("dataType") == "binary":
            data = bytes(constant.real().value())
            if data.startswith(_MARK) and len(data) == len(_MARK) + _SIDES.size:
                return field_of(_source(column)), GeoBox(*_SIDES.unpack(data[len(_MARK) :]))
    if _sedona_name(node) not in _SEDONA_MEETINGS:
        return None
    column, box = _sedona(node)
    field = field_of(column)
    if not isinstance(field.field_type, types.GeometryType):
        # Sedona's edges are straight in the plane, and those in the boxes of a geography are not.
        raise NotUnderstood
    return field, box


def _source(node: Node) -> Node:
    """The column beneath conversions of Spark's."""
    while node.name.endswith(_STATIC_CALL) and _CONVERSIONS.fullmatch(str(node.facts.get("functionName"))):
        node = node.children[0]
    return node


def _sedona_name(node: Node) -> str | None:
    _, prefix, name = node.name.rpartition(_SEDONA)
    return name if prefix else None


def _sedona(node: Node) -> tuple[Node, GeoBox]:
    one, other = node.children
    for column, constant in ((one, other), (other, one)):
        expression = constant.real()
        if not expression.foldable():
            continue
        while _sedona_name(column) in _SEDONA_READERS:
            column = column.children[0]
        return _source(column), _envelope(expression)
    raise NotUnderstood


def _envelope(expression: JavaObject) -> GeoBox:
    """The box around a constant of Sedona's, by its own classes."""
    value = expression.eval(None)
    if value is None:
        raise NotUnderstood
    serializer = JavaClass("org.apache.sedona.common.geometrySerde.GeometrySerializer", expression._gateway_client)
    envelope = serializer.deserialize(value).getEnvelopeInternal()
    if envelope.isNull():
        raise NotUnderstood
    return GeoBox(envelope.getMinX(), envelope.getMinY(), envelope.getMaxX(), envelope.getMaxY())
