"""When two variants mean the same: names and values count, not dictionaries, widths, scales or the order of storage."""

import math
from typing import Any

from icefloe.formats.variant.reading import walk
from icefloe.formats.variant.values import EXACT_NUMBERS, Variant, VariantKind, VariantPrimitive


def same_meaning(left: Variant, right: Variant) -> bool:
    """Whether the variants are equal by meaning: all integers and decimals are one class, every other type its own.

    NaN equals NaN, and the two zeros of floating point are equal.
    """
    stack: list[tuple[Any, Any]] = [(walk(left, _identity), walk(right, _identity))]
    while stack:
        a, b = stack.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, dict):
            if a.keys() != b.keys():
                return False
            stack += ((a[name], b[name]) for name in a)
        elif isinstance(a, list):
            if len(a) != len(b):
                return False
            stack += zip(a, b, strict=True)
        elif not _same_primitive(a, b):
            return False
    return True


def _identity(primitive: VariantPrimitive) -> VariantPrimitive:
    return primitive


def _same_primitive(a: VariantPrimitive, b: VariantPrimitive) -> bool:
    if a.kind in EXACT_NUMBERS and b.kind in EXACT_NUMBERS:
        return bool(a.value == b.value)
    if a.kind is not b.kind:
        return False
    if a.kind in (VariantKind.DOUBLE, VariantKind.FLOAT) and math.isnan(a.value):
        return math.isnan(b.value)
    return bool(a.value == b.value)
