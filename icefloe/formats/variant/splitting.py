"""How plain variant columns become shredded ones: what fits the shredded form in `typed_value`, the rest in `value`.

Parquet-format: VariantShredding. All integers go into a column of 64 bits, and a decimal into one of a larger scale, so that a
variant read back means the same but may have other bytes.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidValueError
from icefloe.variant import (
    Integers,
    Mask,
    Names,
    Slices,
    elements_of,
    encode_lists,
    fields_of,
    of_regular,
    typed_values,
    whole,
)


@dataclass(frozen=True, slots=True)
class ShreddedForm:
    """What is in the typed column of a value: primitives of an Arrow type, elements of arrays, fields of objects; or nothing."""

    primitive: pa.DataType | None = None
    element: "ShreddedForm | None" = None
    fields: dict[str, "ShreddedForm"] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is no typed column."""
        return self.primitive is None and self.element is None and self.fields is None

    @property
    def arrow_type(self) -> pa.DataType:
        """The group of `value` and `typed_value`."""
        parts = [pa.field("value", pa.binary())]
        if not self.is_empty:
            parts.append(pa.field("typed_value", self.typed_type))
        return pa.struct(parts)

    @property
    def typed_type(self) -> pa.DataType:
        """The type of `typed_value`."""
        if self.fields is not None:
            return pa.struct([pa.field(name, inner.arrow_type, False) for name, inner in self.fields.items()])
        if self.element is not None:
            return pa.list_(pa.field("element", self.element.arrow_type, False))
        assert self.primitive is not None, "an empty form has no typed column"
        return self.primitive

    @property
    def column_type(self) -> pa.DataType:
        """The type of a variant column of this form."""
        return pa.struct([pa.field("metadata", pa.binary(), False), *self.arrow_type])


def shred(column: pa.StructArray, form: ShreddedForm) -> pa.StructArray:
    """A column of plain variants, `struct<metadata, value>`, in the shredded form; an error if one of them means nothing."""
    if not len(column):
        return pa.array([], form.column_type)
    return of_regular(column, lambda rows: _shred(rows, form))


def _shred(column: pa.StructArray, form: ShreddedForm) -> pa.StructArray:
    try:
        parts = _split(whole(column), Names.of_column(column), form)
    except pa.ArrowInvalid as error:
        raise InvalidValueError(f"a variant cannot be shredded: {error}") from error
    mask = column.is_null() if column.null_count else None
    metadata = column.field("metadata")
    if metadata.null_count:
        metadata = pc.fill_null(metadata, b"")
    return pa.StructArray.from_arrays([metadata, *parts], fields=list(form.column_type), mask=mask)


def _split(slices: Slices, names: Names, form: ShreddedForm) -> list[pa.Array]:
    """`value`, and `typed_value` if there is one."""
    if form.is_empty:
        return [slices.as_binary()]
    if form.fields is not None:
        return _split_objects(slices, names, form.fields, form.typed_type)
    if form.element is not None:
        return _split_arrays(slices, names, form.element, form.typed_type)
    assert form.primitive is not None, "the other forms were handled"
    is_fit, typed = typed_values(slices, form.primitive)
    return [slices.only(slices.is_there & ~is_fit).as_binary(), typed]


def _split_arrays(slices: Slices, names: Names, element: ShreddedForm, kind: pa.DataType) -> list[pa.Array]:
    is_array = slices.is_array
    inner, lengths = elements_of(slices)
    group = _group(_split(inner, names, element), element)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    typed = pa.ListArray.from_arrays(pa.array(offsets), group, type=kind, mask=pa.array(~is_array))
    return [slices.only(~is_array).as_binary(), typed]


def _split_objects(
    slices: Slices, names: Names, shredded: dict[str, ShreddedForm], kind: pa.DataType
) -> list[pa.Array]:
    is_object = slices.is_object
    fields = fields_of(slices, names)
    is_left = np.ones(len(fields.owners), np.bool_)
    groups = []
    for name, form in shredded.items():
        starts, ends = np.full(len(slices), -1, np.int64), np.zeros(len(slices), np.int64)
        if name in names.numbers:
            is_named = fields.names == names.numbers[name]
            starts[fields.owners[is_named]] = fields.slices.starts[is_named]
            ends[fields.owners[is_named]] = fields.slices.ends[is_named]
            is_left &= ~is_named
        groups.append(_group(_split(Slices(slices.data, starts, ends, slices.rows), names, form), form))
    left = Slices(slices.data, fields.slices.starts[is_left], fields.slices.ends[is_left], fields.slices.rows[is_left])
    rest = _rests(left, fields.owners[is_left], fields.ids[is_left], len(slices))
    value = pc.coalesce(rest, slices.only(~is_object).as_binary())
    if not groups:
        raise AssertionError("a form of objects has fields")
    return [value, pa.StructArray.from_arrays(groups, fields=list(kind), mask=pa.array(~is_object))]


def _rests(left: Slices, owners: Integers, ids: Integers, rows: int) -> pa.BinaryArray:
    """The objects of the fields that are not shredded; null where none is left."""
    counts = np.bincount(owners, minlength=rows).astype(np.int64)
    is_there: Mask = counts > 0
    if not is_there.any():
        return pa.nulls(rows, pa.binary())
    return encode_lists(left.as_binary(), counts, is_there, ids)


def _group(parts: list[pa.Array], form: ShreddedForm) -> pa.StructArray:
    return pa.StructArray.from_arrays(parts, fields=list(form.arrow_type))
