"""What an Avro schema says about the bytes of a row, as a tree with named types written out wherever they are used."""

from dataclasses import dataclass

from icefloe.schema import types


@dataclass(frozen=True, slots=True)
class AvroNode:
    """Any node of an Avro schema."""


@dataclass(frozen=True, slots=True)
class AvroPrimitive(AvroNode):
    """`kind` is one of Avro's primitive names; `meaning` is the Iceberg type that its logical type stands for.

    Numbers times `scale` are in the unit of the meaning. `zone_unknown` is set for a timestamp whose writer did not say whether
    it is adjusted to UTC.
    """

    kind: str
    meaning: types.IcebergType | None = None
    scale: int = 1
    zone_unknown: bool = False


@dataclass(frozen=True, slots=True)
class AvroFixed(AvroNode):
    """Bytes of one length."""

    size: int
    meaning: types.IcebergType


@dataclass(frozen=True, slots=True)
class AvroEnum(AvroNode):
    """One of some names, stored as a number."""

    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AvroField:
    """A field of a record; `field_id` is None in files that carry no ids, `column` the name before Avro's rules changed it."""

    name: str
    field_id: int | None
    node: AvroNode
    column: str = ""
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class AvroRecord(AvroNode):
    """Fields, one after the other."""

    fields: tuple[AvroField, ...]
    is_variant: bool = False


@dataclass(frozen=True, slots=True)
class AvroArray(AvroNode):
    """Items in counted blocks; those of a map are records of a key and a value."""

    items: AvroNode
    element_id: int | None = None
    is_map: bool = False


@dataclass(frozen=True, slots=True)
class AvroMap(AvroNode):
    """Pairs of a string and a value, in counted blocks."""

    values: AvroNode
    key_id: int | None = None
    value_id: int | None = None


@dataclass(frozen=True, slots=True)
class AvroUnion(AvroNode):
    """One of several, after its number."""

    branches: tuple[AvroNode, ...]


@dataclass(frozen=True, slots=True)
class AvroRecursion(AvroNode):
    """A record inside itself, which no program can follow; `up` is how many records further out it is defined."""

    up: int


NULL = AvroPrimitive("null")

PLAIN_TYPES: dict[str, types.IcebergType] = {
    "null": types.UnknownType(),
    "boolean": types.BooleanType(),
    "int": types.IntegerType(),
    "long": types.LongType(),
    "float": types.FloatType(),
    "double": types.DoubleType(),
    "bytes": types.BinaryType(),
    "string": types.StringType(),
}
"""What primitives hold, unless a logical type says otherwise."""


def without_null(node: AvroNode) -> AvroNode:
    """The one branch of a union that is not null; the node itself if it is no such union."""
    if isinstance(node, AvroUnion):
        rest = [branch for branch in node.branches if branch != NULL]
        if len(rest) == 1:
            return rest[0]
    return node


def option_of(node: AvroNode) -> AvroNode | None:
    """What a union of a type and null holds, if the node is one."""
    is_option = isinstance(node, AvroUnion) and len(node.branches) == 2 and node.branches.count(NULL) == 1
    return without_null(node) if is_option else None


def plain_meaning(node: AvroNode) -> types.IcebergType | None:
    """The Iceberg type of a leaf as it is stored, with null taken out of unions; None where it has none."""
    match without_null(node):
        case AvroPrimitive(kind, meaning, scale):
            is_stored = meaning is not None and scale == 1 and kind != "string"
            return meaning if is_stored else PLAIN_TYPES.get(kind)
        case AvroFixed(size, meaning):
            return meaning if size else types.BinaryType()
        case _:
            return None


def is_bytes(node: AvroNode) -> bool:
    """Whether values are bytes of some length, and no numbers."""
    return isinstance(node, AvroFixed) or (isinstance(node, AvroPrimitive) and node.kind in ("bytes", "string"))


def smallest_size(node: AvroNode) -> int:
    """The fewest bytes that a value of the type takes; 0 only for types that never take any."""
    match node:
        case AvroPrimitive("null"):
            return 0
        case AvroPrimitive("float"):
            return 4
        case AvroPrimitive("double"):
            return 8
        case AvroFixed(size):
            return size
        case AvroRecord(fields):
            return sum(smallest_size(child.node) for child in fields)
        case _:
            return 1


def below(node: AvroNode) -> tuple[AvroNode, ...]:
    """The nodes right below a node."""
    match node:
        case AvroArray(items):
            return (items,)
        case AvroMap(values):
            return (values,)
        case AvroUnion(branches):
            return branches
        case AvroRecord(fields):
            return tuple(field.node for field in fields)
        case _:
            return ()


def holds_empty_items(node: AvroNode) -> bool:
    """Whether some list has items that take no bytes, which could be counted forever."""
    is_empty = isinstance(node, AvroArray) and smallest_size(node.items) == 0
    return is_empty or any(map(holds_empty_items, below(node)))


def holds_itself(node: AvroNode) -> bool:
    """Whether some record is inside itself."""
    return isinstance(node, AvroRecursion) or any(map(holds_itself, below(node)))
