"""The types that Spark SQL and Iceberg share, as values, and random ones of them up to three levels deep."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from tests.peers.sql.histories.names import new_name, quoted
from tests.peers.sql.histories.parts import Part, Ref, columns, seq


@dataclass(frozen=True, slots=True)
class Plain:
    """A type without parameters, by its name in SQL."""

    name: str


@dataclass(frozen=True, slots=True)
class Decimal:
    """A decimal."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Field:
    """A column or a field of a struct; the key stays its own whatever its name becomes."""

    key: str
    name: str
    type: "Type"
    required: bool = False


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """A list of elements."""

    element: "Type"


@dataclass(frozen=True, slots=True)
class Map:
    """A map."""

    key: "Type"
    value: "Type"


Type: TypeAlias = Plain | Decimal | Struct | Array | Map

BOOLEAN, INT, BIGINT, FLOAT, DOUBLE, DATE, TIMESTAMP, NTZ, STRING, BINARY, VARIANT = map(
    Plain,
    (
        "BOOLEAN",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_NTZ",
        "STRING",
        "BINARY",
        "VARIANT",
    ),
)
TINYINT, SMALLINT = Plain("TINYINT"), Plain("SMALLINT")
PLAIN = (BOOLEAN, INT, BIGINT, FLOAT, DOUBLE, DATE, TIMESTAMP, NTZ, STRING, BINARY)
NUMBERS = (INT, BIGINT, FLOAT, DOUBLE)
TIMES = (DATE, TIMESTAMP, NTZ)


class Keys:
    """Numbers for the keys of fields."""

    def __init__(self) -> None:
        self._last = 0

    def new(self) -> str:
        """A key that no field has."""
        self._last += 1
        return f"f{self._last}"


@dataclass(frozen=True, slots=True)
class Shapes:
    """What types may be made of."""

    variants: bool
    twins: bool
    floats_inside: bool = True
    required_inside: bool = True
    odd_names: float = 0.15
    deepest: int = 3


def random_primitive(chance: random.Random, *, floats: bool = True) -> Type:
    """A type without parts: numbers, texts and times a little more often than the rest."""
    if chance.random() < 0.15:
        precision = chance.choice((9, 18, 19, 38, *(chance.randint(1, 38) for _ in range(6))))
        return Decimal(precision, chance.choice((0, precision, chance.randint(0, precision), min(2, precision))))
    chosen = chance.choice((*PLAIN, INT, BIGINT, STRING, TIMESTAMP))
    return INT if chosen in (FLOAT, DOUBLE) and not floats else chosen


def random_type(chance: random.Random, keys: Keys, shapes: Shapes, depth: int = 0) -> Type:
    """A type, nested less often the deeper it is."""
    if shapes.variants and chance.random() < 0.12:
        return VARIANT
    if depth >= shapes.deepest or chance.random() < (0.55, 0.55, 0.7)[depth]:
        return random_primitive(chance, floats=depth == 0 or shapes.floats_inside)
    match chance.randrange(4):
        case 0:
            return Array(random_type(chance, keys, shapes, depth + 1))
        case 1:
            key = random_type(chance, keys, shapes, 3)
            key = STRING if key == VARIANT or chance.random() < 0.5 else key
            return Map(key, random_type(chance, keys, shapes, depth + 1))
        case _:
            return Struct(random_fields(chance, keys, shapes, chance.randint(1, 3), depth + 1, []))


def random_fields(
    chance: random.Random, keys: Keys, shapes: Shapes, count: int, depth: int, taken: list[str]
) -> tuple[Field, ...]:
    """Some fields with names of their own."""
    found: list[Field] = []
    for _ in range(count):
        name = new_name(chance, taken + [field.name for field in found], odd=shapes.odd_names, twins=shapes.twins)
        kind = random_type(chance, keys, shapes, depth)
        required = chance.random() < 0.12 and (depth == 0 or shapes.required_inside)
        found.append(Field(keys.new(), name, kind, required))
    return tuple(found)


def type_text(kind: Type) -> str:
    """A type as SQL writes it."""
    match kind:
        case Plain(name):
            return name
        case Decimal(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case Array(element):
            return f"ARRAY<{type_text(element)}>"
        case Map(key, value):
            return f"MAP<{type_text(key)},{type_text(value)}>"
        case Struct(fields):
            inner = ", ".join(
                f"{quoted(field.name)}: {type_text(field.type)}{' NOT NULL' * field.required}" for field in fields
            )
            return f"STRUCT<{inner}>"


def type_part(kind: Type) -> Part:
    """The same, of which fields may go."""
    match kind:
        case Array(element):
            return seq("ARRAY<", type_part(element), ">")
        case Map(key, value):
            return seq("MAP<", type_part(key), ",", type_part(value), ">")
        case Struct(fields):
            inner = [
                (field.key, seq(quoted(field.name), ": ", type_part(field.type), " NOT NULL" * field.required))
                for field in fields
            ]
            return seq("STRUCT<", columns(inner), ">")
        case _:
            return type_text(kind)


def has(kind: Type, wanted: Type) -> bool:
    """Whether a type is, or holds, another."""
    match kind:
        case Array(element):
            return has(element, wanted)
        case Map(key, value):
            return has(key, wanted) or has(value, wanted)
        case Struct(fields):
            return any(has(field.type, wanted) for field in fields)
        case _:
            return kind == wanted


@dataclass(frozen=True, slots=True)
class Path:
    """A column or a field in structs, as an expression can name it: the fields from the top."""

    fields: tuple[Field, ...]

    @property
    def last(self) -> Field:
        """The field that it leads to."""
        return self.fields[-1]

    def text(self) -> str:
        """It in SQL."""
        return ".".join(quoted(field.name) for field in self.fields)


def paths(fields: tuple[Field, ...], above: tuple[Field, ...] = ()) -> Iterator[Path]:
    """All columns and fields that are not in lists or maps, outer ones first."""
    for field in fields:
        yield Path((*above, field))
        if isinstance(field.type, Struct):
            yield from paths(field.type.fields, (*above, field))


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a schema, in lists and maps too: the steps to it, its name for `ALTER TABLE`, and what is there."""

    steps: tuple[str, ...]
    names: tuple[tuple[str, str], ...]
    """Of each step the key of the field, or nothing, and its name in SQL."""
    type: Type
    field: Field | None

    def text(self) -> Part:
        """Its name in SQL, which needs each field on its way."""
        parts: list[Part] = []
        for i, (key, name) in enumerate(self.names):
            written = "." * (i > 0) + name
            parts.append(Ref(key, written) if key else written)
        return seq(*parts)


def spots(kind: Type, steps: tuple[str, ...] = (), names: tuple[tuple[str, str], ...] = ()) -> Iterator[Spot]:
    """All places below a type, outer ones first; the keys of maps are none, as they cannot change."""
    inner: list[tuple[str, tuple[str, str], Type, Field | None]] = []
    match kind:
        case Struct(fields):
            inner = [(field.key, (field.key, quoted(field.name)), field.type, field) for field in fields]
        case Array(element):
            inner = [("element", ("", "element"), element, None)]
        case Map(_, value):
            inner = [("value", ("", "value"), value, None)]
        case _:
            pass
    for step, name, found, field in inner:
        yield Spot((*steps, step), (*names, name), found, field)
        yield from spots(found, (*steps, step), (*names, name))


def changed(kind: Type, steps: tuple[str, ...], change: Callable[[Type], Type]) -> Type:
    """A type with a change at one place."""
    if not steps:
        return change(kind)
    match kind:
        case Array(element):
            return Array(changed(element, steps[1:], change))
        case Map(key, value):
            return Map(key, changed(value, steps[1:], change))
        case Struct(fields):
            return Struct(
                tuple(
                    replace(field, type=changed(field.type, steps[1:], change)) if field.key == steps[0] else field
                    for field in fields
                )
            )
        case _:
            raise ValueError(f"{kind} has nothing inside: {steps}")
