"""What is at a path of variants as a file has them: which columns of a shredded one are needed, and the values from these alone.

The answers are those of `variant.values_at` for the variants put together again.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import CorruptFileError, InvalidValueError
from icefloe.formats.variant.shredding import as_binary, child, encoded, pair, primitive_of, storage_of
from icefloe.schema import VARIANT_STORAGE, types
from icefloe.variant import EMPTY_METADATA, Path, encode_column, encoded_at, extracted_type, values_at

IsEmpty = Callable[[int], bool]
"""Whether the column of other values at a position has none, or nothing but variant nulls."""

_LEAST_INT, _MOST_INT = -(2**31), 2**31 - 1


@dataclass(frozen=True, slots=True)
class Extraction:
    """What is wanted of a variant column: the values at a path, of a type; without one, the variants there.

    The type `variant` is for tests of null: true where anything but null is.
    """

    field_id: int
    path: Path
    field_type: types.IcebergType | None

    @property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type of the values."""
        return VARIANT_STORAGE if self.field_type is None else extracted_type(self.field_type)


def needed_leaves(kind: pa.DataType, extraction: Extraction, is_empty: IsEmpty, location: str) -> set[int]:
    """The columns of a variant of this form in a file that an extraction needs, counted from the first of the variant's."""
    root = _Group.of(kind, 0, location)
    if root.metadata is None or (root.value is None and root.typed is None):
        raise CorruptFileError(location, f"a variant column is {kind}, not a group of metadata and value")
    is_whole = extraction.field_type is None
    needed: set[int] = {root.metadata} if is_whole else set()
    group: _Group | None = root
    steps = iter(extraction.path)
    while group is not None:
        if group.value is not None and (is_whole or not is_empty(group.value)):
            needed |= {group.value, root.metadata}
        step = next(steps, None)
        if step is None:
            needed |= group.typed_leaves(extraction.field_type)
            break
        group = group.fields.get(step)
    # A column that holds nothing still tells how many rows there are.
    return needed or {root.metadata if root.value is None else root.value}


@dataclass(frozen=True, slots=True)
class _Group:
    """A group of `value` and `typed_value` of a file: where its columns are; fields by name where it is one of objects."""

    metadata: int | None
    value: int | None
    typed: range | None
    is_primitive: bool
    fields: dict[str, "_Group"]

    @classmethod
    def of(cls, kind: pa.DataType, first: int, location: str) -> "_Group":
        """The group of a type whose first column is at a position."""
        places: dict[str, range] = {}
        fields: dict[str, _Group] = {}
        is_primitive = False
        for part in kind if pa.types.is_struct(kind) else ():
            inner = part.type.storage_type if isinstance(part.type, pa.BaseExtensionType) else part.type
            places[part.name] = range(first, first + leaf_count(inner))
            if part.name == "typed_value" and pa.types.is_struct(inner):
                position = first
                for field in inner:
                    if field.name in fields:
                        raise CorruptFileError(location, "a variant is shredded into two fields of the same name")
                    fields[field.name] = cls.of(field.type, position, location)
                    position += leaf_count(field.type)
            elif part.name == "typed_value":
                is_primitive = not pa.types.is_nested(inner)
            first = places[part.name].stop
        single = {name: place.start for name, place in places.items()}
        return cls(single.get("metadata"), single.get("value"), places.get("typed_value"), is_primitive, fields)

    def typed_leaves(self, field_type: types.IcebergType | None) -> set[int]:
        """The columns of what is typed; of objects and arrays the first one, which tells where they are, or none."""
        if self.typed is None:
            return set()
        if field_type is None:
            return set(self.typed)
        is_wanted = self.is_primitive or isinstance(field_type, types.VariantType)
        return set(self.typed[:1]) if is_wanted else set()


def leaf_count(kind: pa.DataType) -> int:
    """How many columns of a file hold values of a type."""
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return sum(leaf_count(kind.field(i).type) for i in range(kind.num_fields)) if pa.types.is_nested(kind) else 1


def extract(column: pa.Array, extraction: Extraction, location: str) -> pa.Array:
    """The values of an extraction from a variant column of a file, of which at least the needed columns were read."""
    column = storage_of(column)
    metadata = child(column, "metadata")
    work = _Work(None if metadata is None else as_binary(metadata), extraction.field_type, location)
    try:
        values = work.at(child(column, "value"), child(column, "typed_value"), extraction.path)
    except (InvalidValueError, pa.ArrowInvalid) as error:
        raise CorruptFileError(location, f"a shredded variant cannot be read: {error}") from error
    return values if extraction.field_type is not None else _variants(work.metadata, values)


@dataclass(frozen=True, slots=True)
class _Work:
    metadata: pa.BinaryArray | None
    field_type: types.IcebergType | None
    location: str

    def at(self, value: pa.Array | None, typed: pa.Array | None, path: Path) -> pa.Array:
        """What is at a path below a group; at least one of its columns is there."""
        if typed is None:
            return self._plain(value, path)
        typed = storage_of(typed)
        if self.field_type is None and not path:
            return encoded(self.metadata, value, typed, self.location)
        if not path:
            inner = self._typed(typed)
        elif pa.types.is_struct(typed.type) and (field := child(typed, path[0])) is not None:
            inner = self.at(*pair(field, self.location), path[1:])
        elif pa.types.is_struct(typed.type):
            # The field is not shredded: where there is one, it is among the others of its object.
            return self._plain(value, path)
        else:
            inner = self._nothing(len(typed))
        if value is None or value.null_count == len(value):
            return inner
        is_other = pc.and_(value.is_valid(), typed.is_null())
        if not pc.any(is_other, min_count=0).as_py():
            return inner
        return pc.if_else(is_other, self._plain(pc.if_else(is_other, as_binary(value), None), path), inner)

    def _nothing(self, rows: int) -> pa.Array:
        return pa.nulls(rows, pa.binary() if self.field_type is None else extracted_type(self.field_type))

    def _plain(self, value: pa.Array, path: Path) -> pa.Array:
        """What is at a path below values that are not shredded."""
        # Without metadata, the values were known to be null, or variant null, before.
        if self.metadata is None or value.null_count == len(value):
            return self._nothing(len(value))
        column = _variants(self.metadata, as_binary(value))
        return encoded_at(column, path) if self.field_type is None else values_at(column, path, self.field_type)

    def _typed(self, typed: pa.Array) -> pa.Array:
        """Typed values, all of one class, as those of the wanted type."""
        if isinstance(self.field_type, types.VariantType):
            return pc.if_else(typed.is_valid(), True, pa.scalar(None, pa.bool_()))
        assert self.field_type is not None, "variants were put together before"
        if pa.types.is_nested(typed.type):
            return self._nothing(len(typed))
        kind, internal = primitive_of(typed.type, self.location)
        target = extracted_type(self.field_type)
        if _is_kept(typed.type, target):
            return typed.cast(target)
        if pa.types.is_integer(typed.type) and pa.types.is_floating(target):
            return typed.cast(target, safe=False)
        if pa.types.is_integer(typed.type) and pa.types.is_int32(target):
            is_small = pc.and_(pc.greater_equal(typed, _LEAST_INT), pc.less_equal(typed, _MOST_INT))
            return pc.if_else(is_small, typed, None).cast(target)
        values = encode_column(typed if internal is None else typed.cast(internal), kind)
        return values_at(_variants(_empty(len(typed)), values), (), self.field_type)


def _is_kept(typed: pa.DataType, target: pa.DataType) -> bool:
    """Whether all values of a typed column are values of the target, as Arrow casts them."""
    kinds = pa.types
    if kinds.is_timestamp(typed) and kinds.is_timestamp(target):
        return typed.unit == target.unit and (typed.tz is None) == (target.tz is None)
    is_whole = kinds.is_integer(typed) and kinds.is_int64(target)
    is_real = kinds.is_floating(typed) and kinds.is_float64(target)
    is_text = kinds.is_string(target) and (kinds.is_large_string(typed) or kinds.is_string_view(typed))
    is_bytes = kinds.is_binary(target) and (kinds.is_large_binary(typed) or kinds.is_binary_view(typed))
    return (typed == target and not kinds.is_time(typed)) or is_whole or is_real or is_text or is_bytes


def _variants(metadata: pa.BinaryArray | None, values: pa.BinaryArray) -> pa.StructArray:
    assert metadata is not None, "the metadata of variants was read"
    mask = values.is_null() if values.null_count else None
    parts = [pc.fill_null(part, b"") if part.null_count else part for part in (metadata, values)]
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT_STORAGE), mask=mask)


def _empty(rows: int) -> pa.BinaryArray:
    return pa.repeat(pa.scalar(EMPTY_METADATA, pa.binary()), rows)
