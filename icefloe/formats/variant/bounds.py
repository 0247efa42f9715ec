"""Bounds of the fields of a variant column: an object keyed by normalized paths, behind its dictionary (spec: Bounds for Variant)."""

import math
from collections.abc import Mapping
from typing import Any

from icefloe.errors import InvalidValueError
from icefloe.formats.variant.paths import normalized_path, parse_path
from icefloe.formats.variant.reading import read_dictionary, walk
from icefloe.formats.variant.values import Variant, VariantKind, VariantPrimitive
from icefloe.formats.variant.writing import encode, to_primitive


def encode_variant_bounds(bounds: Mapping[str, Any]) -> bytes:
    """Lower or upper bounds by path, as one binary bound; paths may be written in any form, values must be primitive."""
    normalized: dict[str, VariantPrimitive] = {}
    for path, value in bounds.items():
        key = normalized_path(parse_path(path))
        if key in normalized:
            raise InvalidValueError(f"the path {key} has two bounds; one is wanted")
        normalized[key] = _check_bound(key, to_primitive(value))
    variant = encode(normalized)
    return variant.metadata + variant.value


def decode_variant_bounds(data: bytes) -> dict[str, VariantPrimitive]:
    """The bounds by normalized path, each with its exact type."""
    size = read_dictionary(data).size
    found = walk(Variant(data[:size], data[size:]), lambda primitive: primitive)
    if not isinstance(found, dict):
        raise InvalidValueError("the bounds of a variant are not an object keyed by paths")
    for path, value in found.items():
        if normalized_path(parse_path(path)) != path:
            raise InvalidValueError(f"the key {path!r} of variant bounds is not a normalized path like $['a']['b']")
        if not isinstance(value, VariantPrimitive):
            raise InvalidValueError(f"the bound of {path} in a variant is an object or array; bounds are primitive")
        _check_bound(path, value)
    return found


def _check_bound(path: str, bound: VariantPrimitive) -> VariantPrimitive:
    is_float = bound.kind in (VariantKind.DOUBLE, VariantKind.FLOAT)
    if bound.kind is VariantKind.NULL or (is_float and isinstance(bound.value, float) and math.isnan(bound.value)):
        raise InvalidValueError(f"the bound of {path} in a variant is {bound.value}; nulls and NaN are never bounds")
    return bound
