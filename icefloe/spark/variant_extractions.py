"""What a Spark filter asks of the inside of a variant: `variant_get` itself, or the struct that Spark's optimizer makes of it.

`PushVariantIntoScan` turns a scanned variant into a struct with a field for each path and type that a query extracts, and says so in
the metadata of the fields. Types whose casts in Spark may lead outside of the bounds of a file are left out.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from icefloe import expressions as ex
from icefloe.schema import types
from icefloe.spark import catalyst
from icefloe.variant import Path, parse_path

_MARK = "__VARIANT_METADATA_KEY"
_EXTRACTIONS = ("VariantGet", "variant.VariantGet", "GetStructField")
_TYPES: dict[str, types.IcebergType] = {
    "boolean": types.BooleanType(),
    "byte": types.IntegerType(),
    "short": types.IntegerType(),
    "integer": types.IntegerType(),
    "long": types.LongType(),
    "double": types.DoubleType(),
    "string": types.StringType(),
    "binary": types.BinaryType(),
    "date": types.DateType(),
    "timestamp": types.TimestamptzType(),
    "timestamp_ntz": types.TimestampType(),
    "variant": types.VariantType(),
}


@dataclass(frozen=True, slots=True)
class Extraction:
    """A path of a variant, and the type that Spark casts to."""

    variant: catalyst.Node
    path: Path
    field_type: types.IcebergType


def extraction(node: catalyst.Node, shape: Callable[[catalyst.Node], Any]) -> Extraction | None:
    """What the node extracts from a variant; None if it is another one. `shape` gives Spark's type of a column."""
    match node.name:
        case "Cast":
            # `v:a::int` is a cast of what is extracted as a variant.
            inner = extraction(node.children[0], shape) if node.children[0].name in _EXTRACTIONS else None
            if inner is None or not isinstance(inner.field_type, types.VariantType):
                return None
            return replace(inner, field_type=_type(node.facts.get("dataType")))
        case "VariantGet" | "variant.VariantGet":
            variant, path = node.children
            if path.name != "Literal":
                raise catalyst.NotUnderstood
            return Extraction(variant, _path(path.facts.get("value")), _type(node.facts.get("targetType")))
        case "GetStructField":
            struct = shape(node.children[0])
            field = struct["fields"][node.facts["ordinal"]]
            mark = (field.get("metadata") or {}).get(_MARK)
            if mark is None:
                return None
            said = json.loads(mark) if isinstance(mark, str) else mark
            return Extraction(node.children[0], _path(said.get("path")), _type(field["type"]))
        case _:
            return None


def without_extracts(expression: ex.Expression) -> ex.Expression:
    """The predicate without its tests of variants: true for more rows."""
    match expression:
        case ex.And():
            return ex.conjunction(*map(without_extracts, expression.children))
        case ex.Or():
            return ex.disjunction(*map(without_extracts, expression.children))
        case ex.Predicate(term=ex.Extract()):
            return ex.AlwaysTrue()
        case _:
            return expression


def _path(text: object) -> Path:
    if not isinstance(text, str):
        raise catalyst.NotUnderstood
    return parse_path(text)


def _type(name: object) -> types.IcebergType:
    if isinstance(name, str):
        if name in _TYPES:
            return _TYPES[name]
        if name.startswith("decimal("):
            return types.parse_type(name)
    raise catalyst.NotUnderstood
