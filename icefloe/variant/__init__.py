"""Variants: their values, encoded and decoded one by one and in columns; what is at a path of them."""

from icefloe.variant.assembling import Integers, Mask, encode_column, encode_lists, encode_objects
from icefloe.variant.bounds import encode_variant_bounds, split_variant, variant_bound, variant_bounds_of
from icefloe.variant.extracting import (
    EXTRACTED,
    bound_at,
    encoded_at,
    extracted_type,
    is_exact,
    same_class,
    value_at,
    values_at,
)
from icefloe.variant.paths import Path, normalized, parse_path
from icefloe.variant.reading import OBJECT, Dictionary, basic_type, decode, read_dictionary, read_fields, walk
from icefloe.variant.slices import Names, OddRowsError, Slices, elements_of, fields_of, of_regular, of_values, whole
from icefloe.variant.typed import DECIMALS, INTEGERS, PLAIN, typed_values
from icefloe.variant.values import EMPTY_METADATA, VARIANT_NULL, Variant, VariantKind, VariantPrimitive
from icefloe.variant.writing import encode, encode_object
