"""What the statistics of a file are, and how much of them a table wants for each column.

Spec: Field-level Metrics and Statistics. The properties are `write.metadata.metrics.*`, read as the Java library reads them:
columns beyond the first hundred get none unless asked for, and sort columns always get bounds.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from icefloe import errors, properties as props
from icefloe.partitioning import UNSORTED, SortOrder
from icefloe.schema import DEFAULT_BOUND_WIDTH, Schema, reserved, types


@dataclass(frozen=True, slots=True)
class Metrics:
    """Statistics of one file, by field id; bounds are in their binary form. A missing id means unknown."""

    record_count: int
    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_value_counts: Mapping[int, int] = field(default_factory=dict)
    nan_value_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)
    tight_bounds: Mapping[int, int] = field(default_factory=dict)
    """1 where both bounds are values of the file, 0 where one of them was cut or rounded."""
    avg_value_sizes: Mapping[int, int] = field(default_factory=dict)
    """Bytes of a value that is not null, of types whose values differ in size."""


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """How much is stored of a column: counts or nothing, and bounds cut to `width` (None: whole) or none."""

    counts: bool
    bounds: bool
    width: int | None = None


NO_METRICS = MetricsMode(False, False)
COUNTS = MetricsMode(True, False)
FULL = MetricsMode(True, True)
DEFAULT_MODE = MetricsMode(True, True, DEFAULT_BOUND_WIDTH)

_TRUNCATE = re.compile(r"truncate\(\s*(\d+)\s*\)")


def parse_mode(text: str, key: str) -> MetricsMode:
    """The mode that a property names: none, counts, truncate(N) or full."""
    lower = text.strip().lower()
    if plain := {"none": NO_METRICS, "counts": COUNTS, "full": FULL}.get(lower):
        return plain
    if (match := _TRUNCATE.fullmatch(lower)) and int(match[1]) > 0:
        return MetricsMode(True, True, int(match[1]))
    raise errors.InvalidPropertyError(f"property {key!r} is {text!r}; it must be none, counts, truncate(N) or full")


def metrics_modes(
    schema: Schema, properties: Mapping[str, str], sort_order: SortOrder = UNSORTED
) -> dict[int, MetricsMode]:
    """The mode of every primitive and variant column, by field id."""
    kinds = types.PrimitiveType | types.VariantType
    eligible = [column.field_id for column in _breadth_first(schema.fields) if isinstance(column.field_type, kinds)]
    if props.METRICS_DEFAULT_MODE.key in properties:
        default = parse_mode(props.METRICS_DEFAULT_MODE.of(properties), props.METRICS_DEFAULT_MODE.key)
        modes = dict.fromkeys(eligible, default)
    else:
        limit = props.METRICS_MAX_INFERRED_COLUMNS.of(properties)
        default = DEFAULT_MODE if len(schema.fields_by_id) <= limit else NO_METRICS
        modes = dict.fromkeys(eligible, default) | dict.fromkeys(eligible[:limit], DEFAULT_MODE)
    for key_field in sort_order.fields:
        source = key_field.source_id
        if key_field.transform.preserves_order and source in modes and not modes[source].bounds:
            modes[source] = DEFAULT_MODE
    for key, text in properties.items():
        if key.startswith(props.METRICS_COLUMN_PREFIX):
            mode = parse_mode(text, key)
            field_id = schema.find_id(key.removeprefix(props.METRICS_COLUMN_PREFIX))
            # A column may have been dropped since the property was set.
            if field_id in modes:
                modes[field_id] = mode
    return modes


POSITION_DELETE_MODES: dict[int, MetricsMode] = {
    reserved.DELETE_FILE_PATH.field_id: FULL,
    reserved.DELETE_FILE_POS.field_id: FULL,
}
"""Position delete files keep whole bounds: equal bounds of the path say that all deletes are for one file."""


def leaves(schema: Schema) -> list[tuple[types.NestedField, tuple[int, ...]]]:
    """Every primitive or variant field outside of lists and maps, with the positions that lead to it from the row."""
    return list(_leaves(schema.fields, ()))


def _leaves(
    fields: tuple[types.NestedField, ...], path: tuple[int, ...]
) -> Iterator[tuple[types.NestedField, tuple[int, ...]]]:
    for position, column in enumerate(fields):
        match column.field_type:
            case types.StructType():
                yield from _leaves(column.field_type.fields, (*path, position))
            case types.ListType() | types.MapType():
                continue
            case _:
                yield column, (*path, position)


def _breadth_first(fields: tuple[types.NestedField, ...]) -> Iterator[types.NestedField]:
    """The fields of a struct, then those nested in each: the order in which Java counts to its limit."""
    yield from fields
    for column in fields:
        if isinstance(column.field_type, types.NestedType):
            yield from _breadth_first(column.field_type.fields)
