"""The types of the format as frozen values (spec: Schemas and Data Types).

Primitive and nested types carry PyIceberg's names. `str(type)` is the spec's name for the type; `parse_type` reads it.
`variant` is neither primitive nor nested, so a rule about primitives does not cover it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from icefloe.errors import InvalidTypeError
from icefloe.versions import Feature

DEFAULT_CRS = "OGC:CRS84"
DEFAULT_EDGE_ALGORITHM = "spherical"
EDGE_ALGORITHMS = ("spherical", "vincenty", "thomas", "andoyer", "karney")
MAX_DECIMAL_PRECISION = 38

Value: TypeAlias = Any
"""A value of an Iceberg type in the one form of `icefloe/schema/values.py`; None is null."""

JSON: TypeAlias = dict[str, Any]
"""A JSON object, parsed."""


@dataclass(frozen=True, slots=True)
class IcebergType:
    """Any type: primitive, nested or variant."""

    feature: ClassVar[Feature | None] = None
    """What a format version must allow for tables to hold the type; None: every version does."""


@dataclass(frozen=True, slots=True)
class PrimitiveType(IcebergType):
    """A type with no fields of its own."""

    name: ClassVar[str]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class UnknownType(PrimitiveType):
    """A column that is null in every row; not stored in data files."""

    name = "unknown"
    feature = Feature.UNKNOWN_TYPE


@dataclass(frozen=True, slots=True)
class BooleanType(PrimitiveType):
    """True or false."""

    name = "boolean"


@dataclass(frozen=True, slots=True)
class IntegerType(PrimitiveType):
    """A signed 32-bit integer."""

    name = "int"


@dataclass(frozen=True, slots=True)
class LongType(PrimitiveType):
    """A signed 64-bit integer."""

    name = "long"


@dataclass(frozen=True, slots=True)
class FloatType(PrimitiveType):
    """IEEE 754 binary32."""

    name = "float"


@dataclass(frozen=True, slots=True)
class DoubleType(PrimitiveType):
    """IEEE 754 binary64."""

    name = "double"


@dataclass(frozen=True, slots=True)
class DecimalType(PrimitiveType):
    """A fixed-point number of up to 38 digits, `scale` of them after the point."""

    precision: int
    scale: int
    name = "decimal"

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= MAX_DECIMAL_PRECISION:
            raise InvalidTypeError(f"decimal precision {self.precision} is not between 1 and {MAX_DECIMAL_PRECISION}")
        if not 0 <= self.scale <= self.precision:
            raise InvalidTypeError(f"decimal scale {self.scale} is not between 0 and the precision, {self.precision}")

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class DateType(PrimitiveType):
    """A calendar day; as a value, days from 1970-01-01."""

    name = "date"


@dataclass(frozen=True, slots=True)
class TimeType(PrimitiveType):
    """A time of day without zone; as a value, microseconds from midnight."""

    name = "time"


@dataclass(frozen=True, slots=True)
class TimestampType(PrimitiveType):
    """Microseconds from 1970-01-01T00:00:00, without zone."""

    name = "timestamp"


@dataclass(frozen=True, slots=True)
class TimestamptzType(PrimitiveType):
    """Microseconds from 1970-01-01T00:00:00 UTC."""

    name = "timestamptz"


@dataclass(frozen=True, slots=True)
class TimestampNanoType(PrimitiveType):
    """Nanoseconds from 1970-01-01T00:00:00, without zone."""

    name = "timestamp_ns"
    feature = Feature.NANOSECOND_TIMESTAMPS


@dataclass(frozen=True, slots=True)
class TimestamptzNanoType(PrimitiveType):
    """Nanoseconds from 1970-01-01T00:00:00 UTC."""

    name = "timestamptz_ns"
    feature = Feature.NANOSECOND_TIMESTAMPS


@dataclass(frozen=True, slots=True)
class StringType(PrimitiveType):
    """UTF-8 text of any length."""

    name = "string"


@dataclass(frozen=True, slots=True)
class UUIDType(PrimitiveType):
    """A universally unique identifier of 16 bytes."""

    name = "uuid"


@dataclass(frozen=True, slots=True)
class FixedType(PrimitiveType):
    """A byte string of exactly `length` bytes."""

    length: int
    name = "fixed"

    def __post_init__(self) -> None:
        if self.length < 1:
            raise InvalidTypeError(f"fixed length {self.length} is not positive")

    def __len__(self) -> int:
        return self.length

    def __str__(self) -> str:
        return f"fixed[{self.length}]"


@dataclass(frozen=True, slots=True)
class BinaryType(PrimitiveType):
    """A byte string of any length."""

    name = "binary"


@dataclass(frozen=True, slots=True)
class GeometryType(PrimitiveType):
    """A geospatial feature with planar edges; its values are ISO WKB."""

    crs: str = DEFAULT_CRS
    name = "geometry"
    feature = Feature.GEO_TYPES

    def __post_init__(self) -> None:
        _check_crs(self.crs)

    def __str__(self) -> str:
        return f"geometry({self.crs})"


@dataclass(frozen=True, slots=True)
class GeographyType(PrimitiveType):
    """A geospatial feature with edges on an ellipsoid or sphere; its values are ISO WKB."""

    crs: str = DEFAULT_CRS
    algorithm: str = DEFAULT_EDGE_ALGORITHM
    name = "geography"
    feature = Feature.GEO_TYPES

    def __post_init__(self) -> None:
        _check_crs(self.crs)
        if self.algorithm not in EDGE_ALGORITHMS:
            raise InvalidTypeError(f"edge algorithm {self.algorithm!r} is not one of {', '.join(EDGE_ALGORITHMS)}")

    def __str__(self) -> str:
        return f"geography({self.crs}, {self.algorithm})"


def _check_crs(crs: str) -> None:
    if not crs or crs != crs.strip() or any(c in crs for c in ",()"):
        raise InvalidTypeError(f"coordinate reference system {crs!r} is empty, padded or has a comma or parenthesis")


@dataclass(frozen=True, slots=True)
class VariantType(IcebergType):
    """Semi-structured data: a value that carries its own type."""

    feature = Feature.VARIANT

    def __str__(self) -> str:
        return "variant"


@dataclass(frozen=True, slots=True)
class NestedField:
    """A named field of a struct; `initial_default` and `write_default` are values in the form of `schema.values`."""

    field_id: int
    name: str
    field_type: IcebergType
    required: bool = False
    doc: str | None = None
    initial_default: Value = None
    write_default: Value = None

    @property
    def optional(self) -> bool:
        """Whether the field may be null."""
        return not self.required

    def __str__(self) -> str:
        doc = f" ({self.doc})" if self.doc else ""
        return f"{self.field_id}: {self.name}: {'required' if self.required else 'optional'} {self.field_type}{doc}"


@dataclass(frozen=True, slots=True)
class NestedType(IcebergType):
    """A struct, list or map."""

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """The fields one level down: a list's `element`, a map's `key` and `value`."""
        raise AssertionError("every nested type has fields")


@dataclass(frozen=True, slots=True, init=False)
class StructType(NestedType):
    """A tuple of named fields."""

    _fields: tuple[NestedField, ...]

    def __init__(self, *fields: NestedField) -> None:
        object.__setattr__(self, "_fields", tuple(fields))

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """The fields in order."""
        return self._fields

    def __iter__(self) -> Iterator[NestedField]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __str__(self) -> str:
        return f"struct<{', '.join(map(str, self._fields))}>"

    def __repr__(self) -> str:
        return f"StructType({', '.join(map(repr, self._fields))})"


@dataclass(frozen=True, slots=True)
class ListType(NestedType):
    """Values of one type, in order."""

    element_id: int
    element_type: IcebergType
    element_required: bool = True

    @property
    def element_field(self) -> NestedField:
        """The element as a field."""
        return NestedField(self.element_id, "element", self.element_type, self.element_required)

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """The element alone."""
        return (self.element_field,)

    def __str__(self) -> str:
        return f"list<{self.element_type}>"


@dataclass(frozen=True, slots=True)
class MapType(NestedType):
    """Pairs of key and value; keys are always required."""

    key_id: int
    key_type: IcebergType
    value_id: int
    value_type: IcebergType
    value_required: bool = True

    @property
    def key_field(self) -> NestedField:
        """The key as a field."""
        return NestedField(self.key_id, "key", self.key_type, True)

    @property
    def value_field(self) -> NestedField:
        """The value as a field."""
        return NestedField(self.value_id, "value", self.value_type, self.value_required)

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """Key, then value."""
        return (self.key_field, self.value_field)

    def __str__(self) -> str:
        return f"map<{self.key_type}, {self.value_type}>"


PLAIN_TYPES: dict[str, PrimitiveType | VariantType] = {
    str(type_): type_
    for type_ in (
        UnknownType(),
        BooleanType(),
        IntegerType(),
        LongType(),
        FloatType(),
        DoubleType(),
        DateType(),
        TimeType(),
        TimestampType(),
        TimestamptzType(),
        TimestampNanoType(),
        TimestamptzNanoType(),
        StringType(),
        UUIDType(),
        BinaryType(),
        VariantType(),
    )
}
"""Every type without parameters, by its name."""

_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*\)")
_FIXED = re.compile(r"fixed\[\s*([0-9]{1,9})\s*\]")
_GEOMETRY = re.compile(r"geometry\s*(?:\(\s*([^),]*?)\s*\))?", re.IGNORECASE)
_GEOGRAPHY = re.compile(r"geography\s*(?:\(\s*([^,)]*?)\s*(?:,\s*(\w*)\s*)?\))?", re.IGNORECASE)


def parse_type(text: str) -> PrimitiveType | VariantType:
    """The type of that name, as written in schema JSON: `long`, `decimal(9,2)`, `fixed[16]`, `geometry(EPSG:4326)`."""
    lower = text.strip().lower()
    if plain := PLAIN_TYPES.get(lower):
        return plain
    if match := _DECIMAL.fullmatch(lower):
        return DecimalType(int(match[1]), int(match[2]))
    if match := _FIXED.fullmatch(lower):
        return FixedType(int(match[1]))
    if match := _GEOMETRY.fullmatch(text.strip()):
        return GeometryType(match[1] or DEFAULT_CRS)
    if match := _GEOGRAPHY.fullmatch(text.strip()):
        return GeographyType(match[1] or DEFAULT_CRS, (match[2] or DEFAULT_EDGE_ALGORITHM).lower())
    raise InvalidTypeError(
        f"unknown type {text!r}; types are {', '.join(PLAIN_TYPES)}, decimal(P,S), fixed[L], geometry(CRS), geography(CRS, algorithm)"
    )


def walk_fields(fields: Iterable[NestedField]) -> Iterator[NestedField]:
    """The fields and all that are nested in them, parents first."""
    for field in fields:
        yield field
        if isinstance(field.field_type, NestedType):
            yield from walk_fields(field.field_type.fields)
