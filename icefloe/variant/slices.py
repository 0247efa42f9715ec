"""Where the parts of many variant values lie: fields of objects, elements of arrays, primitives, for whole columns at once.

Rows that are legal but unusual, such as objects whose fields share a value, and rows that mean nothing are only found here;
`regular` puts the first in the usual form and refuses the others, one by one, by the rules of `reading`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidValueError
from icefloe.schema import VARIANT_STORAGE
from icefloe.variant.assembling import Bytes, Integers, Mask, binary_offsets
from icefloe.variant.reading import Dictionary, read_dictionary, walk
from icefloe.variant.values import Variant, VariantKind
from icefloe.variant.writing import encode

_PRIMITIVE, _SHORT_STRING, _OBJECT, _ARRAY = range(4)
_NAMED = 0b1_0000
_WIDE_ARRAY = 0b100
_MISSING = -1


class OddRowsError(Exception):
    """Some rows are not in the usual form; `rows` are their numbers."""

    def __init__(self, rows: Integers) -> None:
        self.rows = rows


@dataclass(frozen=True, slots=True)
class Slices:
    """Parts of one buffer, each a variant value: `rows` says to which row each belongs, a negative start that it is missing."""

    data: Bytes
    starts: Integers
    ends: Integers
    rows: Integers

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def is_there(self) -> Mask:
        """Which of them are not missing."""
        return self.starts >= 0

    def first_bytes(self) -> Integers:
        """The byte that each begins with; that of a missing one is none."""
        first = np.full(len(self), _MISSING, np.int64)
        is_there = self.is_there
        first[is_there] = self.data[self.starts[is_there]]
        return first

    def basic_types(self) -> Integers:
        """Primitive, short string, object or array, by their numbers; negative where missing."""
        first = self.first_bytes()
        return np.where(first < 0, _MISSING, first & 0b11)

    @property
    def is_object(self) -> Mask:
        """Which of them are objects."""
        mask: Mask = self.basic_types() == _OBJECT
        return mask

    @property
    def is_array(self) -> Mask:
        """Which of them are arrays."""
        mask: Mask = self.basic_types() == _ARRAY
        return mask

    def is_kind(self, *kinds: VariantKind) -> Mask:
        """Which of them are primitives of one of these kinds; short strings are not."""
        return np.isin(self.first_bytes(), [kind << 2 for kind in kinds])

    @property
    def is_short_string(self) -> Mask:
        """Which of them are short strings."""
        mask: Mask = self.basic_types() == _SHORT_STRING
        return mask

    def only(self, mask: Mask) -> "Slices":
        """These, with all others missing."""
        return Slices(self.data, np.where(mask, self.starts, _MISSING), self.ends, self.rows)

    def body(self, mask: Mask, skipped: int, width: int) -> Bytes:
        """So many bytes of each of these, after the first ones; as a table of one row for each."""
        starts, ends = self.starts[mask] + skipped, self.ends[mask]
        self.refuse(starts + width > ends, mask)
        body: Bytes = self.data[starts[:, None] + np.arange(width)]
        return body

    def refuse(self, is_odd: Mask, among: Mask | Integers | None = None) -> None:
        """An error that names the rows of the odd ones."""
        if is_odd.any():
            rows = self.rows if among is None else self.rows[among]
            raise OddRowsError(np.unique(rows[is_odd]))

    def as_binary(self) -> pa.BinaryArray:
        """The parts as an array, null where missing."""
        is_there = self.is_there
        starts, ends = self.starts[is_there], self.ends[is_there]
        order = np.argsort(starts, kind="stable")
        # The parts and what lies between them, in turns, are an array on the same buffer; every other one is taken.
        borders = np.empty(2 * len(order), np.int32)
        borders[0::2], borders[1::2] = starts[order], ends[order]
        if not len(order):
            return pa.nulls(len(self), pa.binary())
        both = pa.BinaryArray.from_buffers(
            pa.binary(), len(borders) - 1, [None, pa.py_buffer(borders), pa.py_buffer(self.data)]
        )
        places = np.empty(len(self), np.int64)
        present = np.flatnonzero(is_there)
        places[present[order]] = np.arange(0, 2 * len(order), 2)
        return both.take(pa.array(places, mask=~is_there))


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of objects, one after the other: to which of the slices each belongs, and its number in `Names`."""

    owners: Integers
    names: Integers
    ids: Integers
    slices: Slices


@dataclass(frozen=True, slots=True)
class Names:
    """The dictionaries of a column: the dictionary of each row, and one number for each name of them all."""

    codes: Integers
    numbers: dict[str, int]
    by_dictionary: Sequence[Integers]

    @classmethod
    def of(cls, metadata: pa.Array) -> "Names":
        """Those of a column of metadata."""
        encoded = metadata.dictionary_encode()
        codes = pc.fill_null(encoded.indices, _MISSING).to_numpy(zero_copy_only=False).astype(np.int64)
        return cls.from_dictionaries([_read(names) for names in encoded.dictionary.to_pylist()], codes)

    @classmethod
    def of_column(cls, column: pa.StructArray) -> "Names":
        """Those of a column of plain variants; what is below nulls does not count."""
        metadata = column.field("metadata")
        return cls.of(pc.if_else(column.is_valid(), metadata, None) if column.null_count else metadata)

    @classmethod
    def from_dictionaries(cls, dictionaries: Sequence[Dictionary], codes: Integers) -> "Names":
        """Those of dictionaries, when it is known which of them each row has."""
        numbers: dict[str, int] = {}
        tables = [
            np.array([numbers.setdefault(name, len(numbers)) for name in dictionary.names], np.int64)
            for dictionary in dictionaries
        ]
        return cls(codes, numbers, tables)

    def look_up(self, rows: Integers, ids: Integers) -> Integers:
        """The numbers of names by their ids in the dictionaries of these rows; negative where there is no such id."""
        sizes = np.array([len(table) for table in self.by_dictionary], np.int64)
        firsts = np.concatenate([[0], np.cumsum(sizes)])[:-1]
        codes = self.codes[rows]
        is_known = ids < sizes[codes]
        flat = np.concatenate([*self.by_dictionary, [_MISSING]])
        return np.where(is_known, flat[np.where(is_known, firsts[codes] + ids, len(flat) - 1)], _MISSING)


def whole(column: pa.StructArray) -> Slices:
    """The values of a column of plain variants; a null is missing."""
    return of_values(column.field("value"), column.is_valid().to_numpy(zero_copy_only=False))


def of_values(value: pa.BinaryArray, is_there: Mask) -> Slices:
    """Encoded values, of which only these count."""
    raw = value.buffers()[2]
    data = np.frombuffer(raw, np.uint8) if raw is not None and len(raw) else np.zeros(1, np.uint8)
    offsets = binary_offsets(value)
    slices = Slices(data, np.where(is_there, offsets[:-1], _MISSING), offsets[1:], np.arange(len(value)))
    slices.refuse(slices.is_there & (slices.starts >= slices.ends))
    return slices


def fields_of(slices: Slices, names: Names) -> Fields:
    """The fields of those slices that are objects."""
    owners = np.flatnonzero(slices.is_object)
    header = slices.data[slices.starts[owners]].astype(np.int64) >> 2
    offset_widths, id_widths = (header & 0b11) + 1, (header >> 2 & 0b11) + 1
    counts, position = _counts(slices, owners, (header & _NAMED) > 0)
    first = position + counts * id_widths + (counts + 1) * offset_widths
    slices.refuse(first > slices.ends[owners], owners)
    places, steps = _ragged(counts)
    ids = _integers(slices.data, position[places] + steps * id_widths[places], id_widths[places])
    table = position + counts * id_widths
    offsets = _integers(slices.data, table[places] + steps * offset_widths[places], offset_widths[places])
    totals = _integers(slices.data, table + counts * offset_widths, offset_widths)
    slices.refuse(first + totals > slices.ends[owners], owners)
    ends, is_odd = _ends(offsets, totals, places, counts)
    numbers = names.look_up(slices.rows[owners[places]], ids)
    is_odd |= (numbers < 0) | (ends <= offsets) | _repeats(places, numbers)
    slices.refuse(is_odd, owners[places])
    inner = Slices(slices.data, first[places] + offsets, first[places] + ends, slices.rows[owners[places]])
    return Fields(owners[places], numbers, ids, inner)


def elements_of(slices: Slices) -> tuple[Slices, Integers]:
    """The elements of those slices that are arrays, one after the other, and how many each slice has."""
    owners = np.flatnonzero(slices.is_array)
    header = slices.data[slices.starts[owners]].astype(np.int64) >> 2
    widths = (header & 0b11) + 1
    counts, position = _counts(slices, owners, (header & _WIDE_ARRAY) > 0)
    first = position + (counts + 1) * widths
    slices.refuse(first > slices.ends[owners], owners)
    places, steps = _ragged(counts)
    starts = _integers(slices.data, position[places] + steps * widths[places], widths[places])
    ends = _integers(slices.data, position[places] + (steps + 1) * widths[places], widths[places])
    totals = _integers(slices.data, position + counts * widths, widths)
    slices.refuse(first + totals > slices.ends[owners], owners)
    slices.refuse((ends <= starts) | (ends > totals[places]), owners[places])
    inner = Slices(slices.data, first[places] + starts, first[places] + ends, slices.rows[owners[places]])
    lengths = np.zeros(len(slices), np.int64)
    lengths[owners] = counts
    return inner, lengths


def of_regular(column: pa.StructArray, work: Callable[[pa.StructArray], pa.Array]) -> pa.Array:
    """What `work` makes of a column of plain variants, after rows that it finds odd were written anew."""
    done = np.zeros(len(column), np.bool_)
    while True:
        try:
            return work(column)
        except OddRowsError as odd:
            if done[odd.rows].any():
                raise AssertionError("a variant that was just written is not in the usual form") from None
            done[odd.rows] = True
            column = regular(column, odd.rows)


def regular(column: pa.StructArray, rows: Integers) -> pa.StructArray:
    """The column with these rows written anew in the usual form; an error if one of them means nothing."""
    chosen = column.take(pa.array(rows))
    again = [encode(walk(Variant(row["metadata"], row["value"]), lambda leaf: leaf)) for row in chosen.to_pylist()]
    mask = np.zeros(len(column), np.bool_)
    mask[rows] = True
    parts = [
        pc.replace_with_mask(column.field(name), pa.array(mask), pa.array([getattr(each, name) for each in again]))
        for name in ("metadata", "value")
    ]
    nulls = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT_STORAGE), mask=nulls)


def _read(metadata: bytes | None) -> Dictionary:
    if metadata is None:
        raise InvalidValueError("a variant has no metadata")
    return read_dictionary(metadata)


def _counts(slices: Slices, owners: Integers, is_large: Mask) -> tuple[Integers, Integers]:
    """How many parts each container has, and where its table begins."""
    widths = np.where(is_large, 4, 1)
    position = slices.starts[owners] + 1 + widths
    slices.refuse(position >= slices.ends[owners], owners)
    return _integers(slices.data, slices.starts[owners] + 1, widths), position


def _integers(data: Bytes, positions: Integers, widths: Integers) -> Integers:
    """Numbers of one to four bytes; what would lie beyond the end is read as anything, and refused by the caller."""
    last = len(data) - 1
    numbers = data[np.minimum(positions, last)].astype(np.int64)
    for step in range(1, int(widths.max(initial=1))):
        more = data[np.minimum(positions + step, last)].astype(np.int64) << 8 * step
        numbers += np.where(step < widths, more, 0)
    return numbers


def _ragged(counts: Integers) -> tuple[Integers, Integers]:
    """For each part of each container: the number of its container, and its place in it."""
    places = np.repeat(np.arange(len(counts)), counts)
    firsts = np.cumsum(counts) - counts
    return places, np.arange(len(places)) - firsts[places]


def _ends(offsets: Integers, totals: Integers, places: Integers, counts: Integers) -> tuple[Integers, Mask]:
    """Where each field ends: where the next one in storage begins; and which share a place with another."""
    following = np.empty_like(offsets)
    is_last = np.zeros(len(offsets), np.bool_)
    is_last[(np.cumsum(counts) - 1)[counts > 0]] = True
    following[:-1] = offsets[1:]
    following[is_last] = totals[counts > 0]
    if (following > offsets).all():
        return following, np.zeros(len(offsets), np.bool_)
    order = np.lexsort((offsets, places))
    in_order = offsets[order]
    after = np.empty_like(offsets)
    after[:-1] = in_order[1:]
    after[is_last] = totals[counts > 0]
    ends = np.empty_like(offsets)
    ends[order] = after
    return ends, ends <= offsets


def _repeats(places: Integers, numbers: Integers) -> npt.NDArray[np.bool_]:
    """Which fields are followed by one of the same name in their object."""
    order = np.lexsort((numbers, places))
    is_same = np.zeros(len(numbers), np.bool_)
    is_same[order[1:]] = (numbers[order[1:]] == numbers[order[:-1]]) & (places[order[1:]] == places[order[:-1]])
    return is_same
