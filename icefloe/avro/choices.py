"""What may be taken from the rows of an Avro file: fields by id, as columns, lists, pairs or one column for each key."""

from dataclasses import dataclass

Key = tuple[str, int]
"""Names an output column: its role, and a field id where the role has one column per field (0 otherwise)."""


@dataclass(frozen=True, slots=True)
class Take:
    """The field as one column."""

    key: Key


@dataclass(frozen=True, slots=True)
class TakeList:
    """A list of primitives as one list column."""

    key: Key


@dataclass(frozen=True, slots=True)
class TakeRecords:
    """A list of records as a list column of chosen fields: id, name for files without ids, and column."""

    key: Key
    fields: tuple[tuple[int, str, Key], ...]


@dataclass(frozen=True, slots=True)
class TakePairs:
    """A map from int as a list column of keys and values."""

    key: Key


@dataclass(frozen=True, slots=True)
class TakeSpread:
    """A map from int as one column for each wanted key, named (role, key)."""

    role: str
    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TakeEach:
    """Every field of a record as a column, named (role, field id); fields that are records, each of theirs too."""

    role: str
    only: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class TakeFields:
    """Chosen fields of a record: id, name for files without ids, and what to take."""

    fields: tuple[tuple[int, str, "Choice"], ...]


def parts_of_variant(role: str, field_id: int) -> TakeFields:
    """The two columns of a variant: under the numbers of `variant_parts`, as they have no ids of their own."""
    metadata, value = variant_parts(field_id)
    return TakeFields(((metadata, "metadata", Take((role, metadata))), (value, "value", Take((role, value)))))


def variant_parts(field_id: int) -> tuple[int, int]:
    """The numbers that stand for the metadata and the value of a variant with this field id."""
    return -2 * field_id - 1, -2 * field_id - 2


Choice = Take | TakeList | TakeRecords | TakePairs | TakeSpread | TakeEach | TakeFields
