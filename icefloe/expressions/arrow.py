"""Whether rows in Arrow match a bound predicate: as an Arrow expression to push into a reader, or as a mask.

Both give true or false for every row, never null, just as `evaluate` does, so they may be negated. Columns are resolved by
name, nested ones along their structs. A mask accepts columns of any Arrow type that casts to that of the column; an
expression needs the types of `schema.arrow`, and cannot contain buckets or spatial tests.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidExpressionError
from icefloe.expressions import values as ex
from icefloe.expressions.binding import bound_term, geo_type
from icefloe.expressions.terms import BoundExtract, BoundReference, BoundTerm, Literal
from icefloe.expressions.walks import fold
from icefloe.partitioning import transform_array
from icefloe.schema import VARIANT_STORAGE, Value, intersects, type_to_arrow, types
from icefloe.variant import values_at

Rows: TypeAlias = pa.Table | pa.RecordBatch
Column: TypeAlias = pa.Array | pa.ChunkedArray
Operand: TypeAlias = pa.Array | pa.ChunkedArray | pc.Expression

_UUID_STORAGE = pa.binary(16)
_NO_VARIANTS = pa.array([], VARIANT_STORAGE)
_COMPARISONS: dict[type[ex.LiteralPredicate], Callable[[Operand, pa.Scalar], Operand]] = {
    ex.EqualTo: pc.equal,
    ex.NotEqualTo: pc.not_equal,
    ex.LessThan: pc.less,
    ex.LessThanOrEqual: pc.less_equal,
    ex.GreaterThan: pc.greater,
    ex.GreaterThanOrEqual: pc.greater_equal,
}


def to_arrow(expression: ex.Expression) -> pc.Expression:
    """The bound predicate as a `pyarrow.compute.Expression`."""

    def test(predicate: ex.Predicate) -> pc.Expression:
        return _test(predicate, _field(bound_term(predicate)))

    return fold(expression, pc.scalar, test, pc.and_kleene, pc.or_kleene, pc.invert)


def mask(expression: ex.Expression, rows: Rows, extracted: Mapping[BoundExtract, Column] | None = None) -> Column:
    """For each row of a table or record batch, whether it matches the bound predicate; without nulls.

    `extracted` has values inside of variants that are known already.
    """
    known = extracted or {}

    def constant(value: bool) -> pa.Array:
        return pa.repeat(pa.scalar(value), rows.num_rows)

    def test(predicate: ex.Predicate) -> Column:
        term = bound_term(predicate)
        values = known.get(term) if isinstance(term, BoundExtract) else None
        column = _column(term, rows) if values is None else values
        return _test_values(predicate, column) if isinstance(column, pa.DictionaryArray) else _test(predicate, column)

    return fold(expression, constant, test, pc.and_kleene, pc.or_kleene, pc.invert)


def storage_type(field_type: types.IcebergType) -> pa.DataType:
    """The Arrow type for comparisons: that of the column, or 16 bytes for a uuid."""
    return _UUID_STORAGE if isinstance(field_type, types.UUIDType) else type_to_arrow(field_type)


def to_scalar(constant: Literal) -> pa.Scalar:
    """The constant as an Arrow scalar of the storage type."""
    return pa.scalar(_stored(constant), storage_type(constant.field_type))


def to_value_set(constants: tuple[Literal, ...]) -> pa.Array:
    """The constants, all of one type, as an Arrow array of the storage type."""
    field_type = constants[0].field_type
    values = [_stored(constant) for constant in constants]
    if isinstance(field_type, types.FloatType | types.DoubleType) and 0.0 in values:
        values += [0.0, -0.0]  # Arrow's hash distinguishes them.
    return pa.array(values, storage_type(field_type))


def _stored(constant: Literal) -> Value:
    return constant.value.bytes if isinstance(constant.field_type, types.UUIDType) else constant.value


def _test(predicate: ex.Predicate, operand: Operand) -> Operand:
    """The test of an Arrow array, or of an expression for one: the same functions take both."""
    match predicate:
        case ex.IsNull():
            return pc.is_null(operand)
        case ex.NotNull():
            return pc.is_valid(operand)
        case ex.IsNaN():
            return pc.and_kleene(pc.is_nan(operand), pc.is_valid(operand))
        case ex.NotNaN():
            return pc.or_kleene(pc.invert(pc.is_nan(operand)), pc.is_null(operand))
        case ex.In():
            return pc.is_in(operand, value_set=to_value_set(predicate.literals))
        case ex.NotIn():
            return pc.invert(pc.is_in(operand, value_set=to_value_set(predicate.literals)))
        case ex.StartsWith():
            return pc.and_kleene(pc.starts_with(operand, predicate.literal.value), pc.is_valid(operand))
        case ex.NotStartsWith():
            different = pc.invert(pc.starts_with(operand, predicate.literal.value))
            return pc.or_kleene(different, pc.is_null(operand))
        case ex.SpatialPredicate():
            return _spatial_test(predicate, operand)
        case ex.NotEqualTo():
            return pc.or_kleene(pc.not_equal(operand, to_scalar(predicate.literal)), pc.is_null(operand))
        case ex.LiteralPredicate():
            compared = _COMPARISONS[type(predicate)](operand, to_scalar(predicate.literal))
            return pc.and_kleene(compared, pc.is_valid(operand))
        case _:
            raise AssertionError(f"no rule evaluates {predicate!r}")


def _test_values(predicate: ex.Predicate, column: pa.DictionaryArray) -> pa.Array:
    """The test of values in a dictionary, each of them once."""
    values, indices = column.dictionary, column.indices
    if column.null_count:
        indices = pc.fill_null(indices.cast(pa.int64()), len(values))
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    # Arrow takes bytes in half of the time of bits.
    return _test(predicate, values).cast(pa.uint8()).take(indices).cast(pa.bool_())


def _spatial_test(predicate: ex.SpatialPredicate, operand: Operand) -> pa.Array:
    if isinstance(operand, pc.Expression):
        raise InvalidExpressionError(f"{predicate} has no form as an Arrow expression; use a mask")
    meets = intersects(operand, predicate.box, geo_type(predicate))
    return pa.array(meets if isinstance(predicate, ex.Intersects) else ~meets)


def _field(term: BoundTerm) -> pc.Expression:
    if not isinstance(term, BoundReference):
        raise InvalidExpressionError(f"{term} has no form as an Arrow expression; use a mask")
    field = pc.field(term.names) if len(term.names) > 1 else pc.field(term.names[0])
    return field.cast(_UUID_STORAGE) if isinstance(term.field_type, types.UUIDType) else field


def _column(term: BoundTerm, rows: Rows) -> Column:
    reference = term.reference
    if reference.names[0] not in rows.schema.names:
        raise InvalidExpressionError(f"the rows have no column {reference.names[0]!r}; they have {rows.schema.names}")
    column = rows.column(reference.names[0])
    if len(reference.names) > 1:
        try:
            column = pc.struct_field(column, list(reference.names[1:]))
        except (pa.ArrowInvalid, KeyError):
            raise InvalidExpressionError(f"the rows have no column {reference.name!r}") from None
    if isinstance(term, BoundExtract):
        return _extracted(term, column)
    if not isinstance(term, BoundReference):
        return transform_array(term.transform, column, reference.field_type)
    if isinstance(term.field_type, types.NestedType | types.VariantType):
        return column
    target = storage_type(term.field_type)
    is_encoded = isinstance(column, pa.DictionaryArray) and column.type.value_type == target
    return column if is_encoded or column.type == target else pc.cast(column, target)


def _extracted(term: BoundExtract, column: Column) -> Column:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    values = [values_at(_plain_variants(chunk), term.path, term.field_type) for chunk in chunks or [_NO_VARIANTS]]
    return pa.chunked_array(values) if isinstance(column, pa.ChunkedArray) else values[0]


def _plain_variants(array: pa.Array) -> pa.StructArray:
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    return array if array.type.equals(VARIANT_STORAGE) else array.cast(VARIANT_STORAGE)
