"""Which shredded form a column of variants gets, by the first rows of its file.

At each place the commonest type is chosen, and other values stay as they are, so that one odd value in a thousand costs only
itself. All integers are one type, and with decimals among them decimals. Null says nothing of a type. A field is shredded
if a tenth of the rows have it, or of the elements that it is in.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from icefloe.formats.variant.splitting import ShreddedForm
from icefloe.variant import DECIMALS, INTEGERS, PLAIN, Variant, VariantKind as Kind, VariantPrimitive, walk

MAX_FIELDS = 300
"""How many typed columns a variant column has at most; the commonest fields come first."""
MAX_DEPTH = 50
"""How deep they are nested."""
_LEAST_SHARE = 10
"""A field is shredded if one in so many values has it."""
_MOST_TRACKED = 1000
_MAX_DIGITS = 38

_NUMBER, _OBJECT, _ARRAY = "number", "object", "array"
_ARROW_TYPES: dict[Kind, pa.DataType] = {
    **{kind: arrow_type for arrow_type, (kind, _) in PLAIN.items()},
    Kind.TRUE: pa.bool_(),
    Kind.STRING: pa.string(),
    Kind.BINARY: pa.binary(),
}


@dataclass(slots=True)
class _Place:
    """What was seen at one place in the variants."""

    kinds: Counter[str | Kind] = field(default_factory=Counter)
    fields: dict[str, "_Place"] = field(default_factory=dict)
    elements: "_Place | None" = None
    has_decimals: bool = False
    whole_digits: int = 0
    scale: int = 0

    @property
    def seen(self) -> int:
        """How many values but null were there."""
        return self.kinds.total()


def infer_form(variants: Iterable[Variant]) -> ShreddedForm:
    """The form for a column that begins with these variants."""
    root = _Place()
    for variant in variants:
        _look(root, walk(variant, lambda leaf: leaf), 0)
    return _Choice().form(root, root.seen, 0)


def _look(place: _Place, value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        return
    match value:
        case dict():
            place.kinds[_OBJECT] += 1
            for name, inner in value.items():
                if name in place.fields or len(place.fields) < _MOST_TRACKED:
                    _look(place.fields.setdefault(name, _Place()), inner, depth + 1)
        case list():
            place.kinds[_ARRAY] += 1
            place.elements = place.elements or _Place()
            for inner in value:
                _look(place.elements, inner, depth + 1)
        case VariantPrimitive(kind=kind):
            _look_at_primitive(place, kind, value.value)


def _look_at_primitive(place: _Place, kind: Kind, value: Any) -> None:
    if kind is Kind.NULL:
        return
    if kind not in INTEGERS and kind not in DECIMALS:
        place.kinds[Kind.TRUE if kind is Kind.FALSE else kind] += 1
        return
    place.kinds[_NUMBER] += 1
    _, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int), "variants have finite decimals"
    place.has_decimals |= kind in DECIMALS
    place.scale = max(place.scale, -exponent)
    place.whole_digits = max(place.whole_digits, len(digits) + exponent)


class _Choice:
    """The choice of forms for all places of one column, with what is left of the most fields."""

    def __init__(self) -> None:
        self._left = MAX_FIELDS

    def form(self, place: _Place, rows: int, depth: int) -> ShreddedForm:
        if not place.seen or depth > MAX_DEPTH:
            return ShreddedForm()
        # The order of names decides between equally common types, so that equal rows make equal files.
        commonest = max(sorted(place.kinds, key=str), key=lambda kind: place.kinds[kind])
        if commonest == _OBJECT:
            return self._objects(place, rows, depth)
        if commonest == _ARRAY:
            return self._arrays(place, depth)
        if commonest == _NUMBER:
            return _number(place)
        assert isinstance(commonest, Kind)
        return ShreddedForm(primitive=_ARROW_TYPES[commonest])

    def _objects(self, place: _Place, rows: int, depth: int) -> ShreddedForm:
        common = [(name, inner) for name, inner in place.fields.items() if inner.seen * _LEAST_SHARE >= rows]
        common.sort(key=lambda field: (-field[1].seen, field[0].encode()))
        forms: dict[str, ShreddedForm] = {}
        for name, inner in common:
            if self._left <= 0:
                break
            self._left -= 1
            form = self.form(inner, rows, depth + 1)
            if not form.is_empty:
                forms[name] = form
        if not forms:
            return ShreddedForm()
        return ShreddedForm(fields={name: forms[name] for name in sorted(forms, key=str.encode)})

    def _arrays(self, place: _Place, depth: int) -> ShreddedForm:
        assert place.elements is not None, "an array was seen"
        element = self.form(place.elements, place.elements.seen, depth + 1)
        return ShreddedForm() if element.is_empty else ShreddedForm(element=element)


def _number(place: _Place) -> ShreddedForm:
    if not place.has_decimals:
        return ShreddedForm(primitive=pa.int64())
    digits = max(1, max(place.whole_digits, 0) + place.scale)
    if digits > _MAX_DIGITS:
        return ShreddedForm()
    # Room for more digits costs nothing within a width, and lets later numbers in.
    return ShreddedForm(primitive=pa.decimal128(next(width for width in (9, 18, 38) if digits <= width), place.scale))
