"""Which column a name in a statement means: qualified by its table or not, in the session's view of case.

Spark looks for a column behind the longest part of the table's name first, and takes the name as it is only if that finds
nothing: with an alias `s` and columns `a` and `s`, `s.a` is the column `a`, and `s.s.a` a field of the column `s`.
"""

from collections.abc import Sequence

from icefloe.errors import IcefloeError, InvalidInputError, InvalidSchemaError, NoSuchColumnError
from icefloe.schema import Schema, types

Qualifier = Sequence[str]
"""What columns of a table may be qualified by: its alias, or the parts of its name, catalog first."""


def column_path(
    path: Sequence[str], schema: Schema, case_sensitive: bool, qualifier: Qualifier | None = None
) -> tuple[str, ...]:
    """The names of a column and of the fields in it, as the table has them, without what qualifies them."""
    around = tuple(qualifier or ())
    for length in range(len(around), 0, -1):
        is_qualified = _are_same(path[:length], around[-length:], case_sensitive)
        if is_qualified and len(path) > length and _named(path[length], schema.fields, case_sensitive):
            return _exact(path[length:], schema, case_sensitive)
    return _exact(path, schema, case_sensitive)


def bare_path(path: Sequence[str], qualifier: Qualifier | None) -> tuple[str, ...]:
    """The names of a column that the table may not have yet, without what qualifies them."""
    around = tuple(qualifier or ())
    for length in range(len(around), 0, -1):
        if len(path) > length and _are_same(path[:length], around[-length:], False):
            return tuple(path[length:])
    return tuple(path)


def check_no_twins(schema: Schema, case_sensitive: bool) -> None:
    """Raise if two columns, or two fields of a struct, differ only by case in a case-insensitive session."""
    if not case_sensitive:
        _check_no_twins(schema.fields, ())


def _check_no_twins(fields: Sequence[types.NestedField], around: tuple[str, ...]) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        if (other := seen.get(field.name.lower())) is not None:
            raise _already_there((*around, field.name), (*around, other))
        seen[field.name.lower()] = field.name
        if isinstance(field.field_type, types.NestedType):
            _check_no_twins(field.field_type.fields, (*around, field.name))


def _already_there(path: Sequence[str], other: Sequence[str]) -> InvalidSchemaError:
    return InvalidSchemaError(
        f"[COLUMN_ALREADY_EXISTS] {'.'.join(path)!r} and {'.'.join(other)!r} are the same name while"
        " spark.sql.caseSensitive is false; give one of them another name"
    )


def _exact(path: Sequence[str], schema: Schema, case_sensitive: bool) -> tuple[str, ...]:
    names: list[str] = []
    field_type: types.IcebergType = schema.as_struct
    for part in path:
        if not isinstance(field_type, types.StructType):
            raise _no_struct(names, path, field_type)
        fields = field_type.fields
        match = _named(part, fields, case_sensitive)
        if not match:
            raise NoSuchColumnError(
                f"no column {'.'.join(path)!r}; there are {', '.join(field.name for field in fields)}"
            )
        if len(match) > 1:
            condition = "AMBIGUOUS_REFERENCE" if not names else "AMBIGUOUS_REFERENCE_TO_FIELDS"
            raise NoSuchColumnError(
                f"[{condition}] {'.'.join(path)!r} may be any of {', '.join(field.name for field in match)};"
                " set spark.sql.caseSensitive to true to tell them apart"
            )
        names.append(match[0].name)
        field_type = match[0].field_type
    return tuple(names)


def _no_struct(names: Sequence[str], path: Sequence[str], field_type: types.IcebergType) -> IcefloeError:
    name, wanted = ".".join(names), ".".join(path)
    match field_type:
        case types.ListType():
            hint = f"set it as a whole, as with {name} = transform({name}, each -> ...)"
            return InvalidInputError(f"cannot set {wanted!r}: {name!r} is an array, which is not set in parts; {hint}")
        case types.MapType():
            hint = f"set it as a whole, as with {name} = map_concat({name}, map(...))"
            return InvalidInputError(f"cannot set {wanted!r}: {name!r} is a map, which is not set in parts; {hint}")
        case _:
            return NoSuchColumnError(f"no column {wanted!r}: {name!r} is {field_type}, which has no fields")


def _named(name: str, fields: Sequence[types.NestedField], case_sensitive: bool) -> list[types.NestedField]:
    return [field for field in fields if _is_same(field.name, name, case_sensitive)]


def _are_same(some: Sequence[str], others: Sequence[str], case_sensitive: bool) -> bool:
    pairs = zip(some, others, strict=False)
    return len(some) == len(others) and all(_is_same(one, other, case_sensitive) for one, other in pairs)


def _is_same(one: str, other: str, case_sensitive: bool) -> bool:
    return one == other or (not case_sensitive and one.lower() == other.lower())
