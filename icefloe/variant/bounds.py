"""The bounds of a variant column: an object with a value for each path, in the encoding of variants (spec: Bounds for Variant)."""

from collections.abc import Mapping

from icefloe.errors import InvalidValueError
from icefloe.variant.reading import OBJECT, basic_type, read_dictionary, read_fields, read_primitive
from icefloe.variant.values import VariantKind, VariantPrimitive
from icefloe.variant.writing import encode_dictionary, encode_object, encode_primitive


def encode_variant_bounds(bounds: Mapping[str, VariantPrimitive]) -> bytes:
    """The bytes of a bound: metadata, and an object with the bound of each normalized path."""
    metadata, ids = encode_dictionary(bounds)
    return metadata + encode_object({path: encode_primitive(bound) for path, bound in bounds.items()}, ids)


def variant_bound(data: bytes, path: str) -> VariantPrimitive | None:
    """The bound of a normalized path; None if there is none, or if the bytes are no bounds."""
    try:
        dictionary = read_dictionary(data)
        start = dictionary.size
        if basic_type(data, start, len(data)) != OBJECT:
            return None
        for name, first, last in read_fields(data, start, len(data), dictionary):
            if name == path:
                bound = read_primitive(data, first, last)
                return None if bound.kind is VariantKind.NULL else bound
    except InvalidValueError:
        # A bound that cannot be read is no bound.
        return None
    return None


def split_variant(data: bytes) -> tuple[bytes, bytes] | None:
    """Metadata and value of a variant whose bytes stand one behind the other, as in bounds; None if they are no variant."""
    try:
        size = read_dictionary(data).size
    except InvalidValueError:
        return None
    return data[:size], data[size:]


def variant_bounds_of(data: bytes) -> dict[str, VariantPrimitive]:
    """All bounds, by normalized path; an error if the bytes are no bounds."""
    dictionary = read_dictionary(data)
    if basic_type(data, dictionary.size, len(data)) != OBJECT:
        raise InvalidValueError("the bounds of a variant are not an object of paths")
    fields = read_fields(data, dictionary.size, len(data), dictionary)
    return {name: read_primitive(data, first, last) for name, first, last in fields}
