"""Statements that change the schema: columns and nested fields added, dropped, renamed, moved, widened; names are used again."""

from dataclasses import replace

from tests.peers.sql.histories.known import Defect
from tests.peers.sql.histories.model import TABLE, Draft, Statement
from tests.peers.sql.histories.names import new_name, quoted, text
from tests.peers.sql.histories.parts import Part, Ref, seq
from tests.peers.sql.histories.types import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NTZ,
    STRING,
    TIMESTAMP,
    Decimal,
    Field,
    Spot,
    Struct,
    Type,
    random_type,
    spots,
    type_part,
    type_text,
)
from tests.peers.sql.histories.values import literal


def _spots(draft: Draft) -> list[Spot]:
    return list(spots(Struct(draft.fields)))


def _structs(draft: Draft) -> list[tuple[tuple[str, ...], Spot | None, tuple[Field, ...]]]:
    """The table itself, and each struct in it: the steps to it, the place, its fields."""
    found: list[tuple[tuple[str, ...], Spot | None, tuple[Field, ...]]] = [((), None, draft.fields)] * 3
    return found + [(spot.steps, spot, spot.type.fields) for spot in _spots(draft) if isinstance(spot.type, Struct)]


def _name_for(draft: Draft, fields: tuple[Field, ...], *, nested: bool) -> str:
    """A new name among fields: one that was used before, if it may be."""
    chance = draft.chance
    taken = [each.name for each in fields]
    lower = {each.lower() for each in taken}
    again = [each for each in draft.dropped if each.lower() not in lower]
    if again and chance.random() < 0.6 and (not nested or draft.may(Defect.NESTED_NAMES_AGAIN)):
        return chance.choice(again)
    if nested and not draft.may(Defect.NESTED_NAMES_AGAIN):
        return f"n{draft.keys.new()}"
    if draft.may(Defect.CASE_TWINS) and chance.random() < 0.05:
        # Refused, unless case matters.
        return chance.choice(taken).swapcase()
    return new_name(chance, taken, odd=draft.shapes.odd_names, twins=draft.shapes.twins)


def _sibling(spot: Spot | None, name: str) -> Part:
    return quoted(name) if spot is None else seq(spot.text(), f".{quoted(name)}")


def add_column(draft: Draft) -> Statement:
    """A column, or a field of a struct, at some place."""
    chance = draft.chance
    steps, spot, fields = chance.choice(_structs(draft))
    name = _name_for(draft, fields, nested=spot is not None)
    kind = random_type(chance, draft.keys, draft.shapes, min(2, len(steps)))
    made = Field(draft.keys.new(), name, kind)
    place, index = _position(draft, fields)
    required = " NOT NULL" if chance.random() < 0.04 else ""
    default = ""
    if draft.version >= 3 and spot is None and chance.random() < 0.08 and not isinstance(kind, Struct):
        default = f" DEFAULT {_text_of(draft, kind)}"
    comment = f" COMMENT {text('a comment')}" if chance.random() < 0.1 else ""
    if not required and not default and not _taken(draft, name, fields):
        draft.change(steps, lambda found: (*found[:index], made, *found[index:]))
    return Statement(
        seq(
            f"ALTER TABLE {TABLE} ADD COLUMN ",
            _sibling(spot, name),
            " ",
            type_part(kind),
            required,
            default,
            comment,
            place,
        ),
        "add column",
    )


def _text_of(draft: Draft, kind: Type) -> str:
    from tests.peers.sql.histories.parts import render

    return render(literal(draft.chance, kind, nulls=0))


def _taken(draft: Draft, name: str, fields: tuple[Field, ...]) -> bool:
    if draft.sensitive:
        return name in [each.name for each in fields]
    return name.lower() in {each.name.lower() for each in fields}


def _position(draft: Draft, fields: tuple[Field, ...], moved: str = "") -> tuple[Part, int]:
    """`FIRST` or `AFTER` a column, and the index among the others that this is."""
    others = [each for each in fields if each.key != moved]
    draw = draft.chance.random()
    if draw < 0.2 or not others:
        return " FIRST", 0
    if draw < 0.5 or moved:
        index = draft.chance.randrange(len(others))
        return seq(" AFTER ", Ref(others[index].key, quoted(others[index].name))), index + 1
    return "", len(fields)


def _fields_of(draft: Draft) -> list[Spot]:
    return [spot for spot in _spots(draft) if spot.field is not None]


def _siblings(draft: Draft, spot: Spot) -> tuple[Field, ...]:
    steps = spot.steps[:-1]
    if not steps:
        return draft.fields
    [above] = [each for each in _spots(draft) if each.steps == steps]
    assert isinstance(above.type, Struct)
    return above.type.fields


def drop_column(draft: Draft) -> Statement | None:
    """A column, or a field of a struct, which is not the last one."""
    free = [spot for spot in _fields_of(draft) if len(_siblings(draft, spot)) > 1]
    used = {each.source for each in draft.partitions}
    free = [spot for spot in free if not used & {spot.steps[-1], *spot.steps}] or free
    if not free:
        return None
    spot = draft.chance.choice(free)
    assert spot.field is not None
    if not any(each.source in spot.steps or _holds(spot.type, each.source) for each in draft.partitions):
        draft.dropped.append(spot.field.name)
        draft.change(spot.steps[:-1], lambda found: tuple(each for each in found if each.key != spot.steps[-1]))
    return Statement(seq(f"ALTER TABLE {TABLE} DROP COLUMN ", spot.text()), "drop column")


def _holds(kind: Type, key: str) -> bool:
    return any(spot.steps[-1] == key for spot in spots(kind))


def rename_column(draft: Draft) -> Statement:
    """A column, or a field of a struct, gets another name, maybe one that another had."""
    spot = draft.chance.choice(_fields_of(draft))
    assert spot.field is not None
    siblings = _siblings(draft, spot)
    name = _name_for(draft, siblings, nested=len(spot.steps) > 1)
    if not _taken(draft, name, siblings):
        draft.dropped.append(spot.field.name)
        draft.with_field(spot.steps[:-1], spot.steps[-1], name=name)
    return Statement(seq(f"ALTER TABLE {TABLE} RENAME COLUMN ", spot.text(), f" TO {quoted(name)}"), "rename column")


def move_column(draft: Draft) -> Statement | None:
    """A column, or a field of a struct, at another place among its siblings."""
    free = [spot for spot in _fields_of(draft) if len(_siblings(draft, spot)) > 1]
    if not free:
        return None
    spot = draft.chance.choice(free)
    made = spot.field
    assert made is not None
    place, index = _position(draft, _siblings(draft, spot), made.key)

    def moved(found: tuple[Field, ...]) -> tuple[Field, ...]:
        rest = [each for each in found if each.key != made.key]
        return (*rest[:index], made, *rest[index:])

    draft.change(spot.steps[:-1], moved)
    return Statement(seq(f"ALTER TABLE {TABLE} ALTER COLUMN ", spot.text(), place), "move column")


def widen_column(draft: Draft) -> Statement | None:
    """A type that holds more; now and then one that Iceberg refuses."""
    chance = draft.chance
    known: dict[Type, Type] = {INT: BIGINT, FLOAT: DOUBLE}
    found = [spot for spot in _spots(draft) if spot.type in known or _widens(spot.type)]
    if found and chance.random() < 0.85:
        spot = chance.choice(found)
        wider = known.get(spot.type)
        if isinstance(spot.type, Decimal):
            wider = Decimal(chance.randint(spot.type.precision + 1, 38), spot.type.scale)
        assert wider is not None
        draft.retype(spot.steps, wider)
    else:
        spot = chance.choice(_spots(draft))
        wider = chance.choice((INT, BIGINT, STRING, DOUBLE, DATE, TIMESTAMP, NTZ, Decimal(10, 2)))
        if wider == spot.type or isinstance(spot.type, Decimal) or spot.type in known or spot.type == DATE:
            return None
    return Statement(
        seq(f"ALTER TABLE {TABLE} ALTER COLUMN ", spot.text(), f" TYPE {type_text(wider)}"), "widen column"
    )


def _widens(kind: Type) -> bool:
    return isinstance(kind, Decimal) and kind.precision < 38


def change_nullability(draft: Draft) -> Statement:
    """A required column may be null from now on; the other way is refused."""
    required = [spot for spot in _fields_of(draft) if spot.field is not None and spot.field.required]
    if required and draft.chance.random() < 0.8:
        spot = draft.chance.choice(required)
        draft.with_field(spot.steps[:-1], spot.steps[-1], required=False)
        return Statement(seq(f"ALTER TABLE {TABLE} ALTER COLUMN ", spot.text(), " DROP NOT NULL"), "nullability")
    spot = draft.chance.choice(_fields_of(draft))
    return Statement(seq(f"ALTER TABLE {TABLE} ALTER COLUMN ", spot.text(), " SET NOT NULL"), "nullability")


def comment_column(draft: Draft) -> Statement:
    """A text about a column."""
    spot = draft.chance.choice(_fields_of(draft))
    said = draft.chance.choice(("", 'it\'s a "comment"', "ä\n"))
    return Statement(seq(f"ALTER TABLE {TABLE} ALTER COLUMN ", spot.text(), f" COMMENT {text(said)}"), "comment column")


def widened(field: Field) -> Field:
    """A column as a query gives it: required no more."""
    return replace(field, required=False)
