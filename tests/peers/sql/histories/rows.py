"""Statements that change rows: INSERT, INSERT OVERWRITE, UPDATE, DELETE, TRUNCATE, with values of other types than the columns."""

from collections.abc import Callable

from tests.peers.sql.histories.expressions import Scope, exact, expression, predicate
from tests.peers.sql.histories.known import Defect
from tests.peers.sql.histories.model import TABLE, Draft, Statement
from tests.peers.sql.histories.names import quoted
from tests.peers.sql.histories.parts import Choice, Part, Ref, columns, items, render, seq
from tests.peers.sql.histories.types import VARIANT, Array, Field, Map, Struct, has, paths, type_text
from tests.peers.sql.histories.values import field_literal, literal

NOWHERE = Scope(())


def target(draft: Draft) -> str:
    """The table, or a branch of it."""
    if draft.branches and draft.chance.random() < 0.25:
        return f"{TABLE}.branch_{draft.chance.choice(draft.branches)}"
    return TABLE


def inserted(draft: Draft, scope: Scope, field: Field) -> Part:
    """A value for a column of a new row: mostly one that fits, else one that is stored by its policy."""
    chance = draft.chance
    if chance.random() < 0.7:
        return field_literal(chance, field)
    if not draft.may(Defect.STORE_ASSIGNMENT):
        return exact(chance, scope, field)
    return expression(chance, scope, field.type)


def assigned(draft: Draft, scope: Scope, field: Field) -> Part:
    """A value for a column of a row that is there."""
    if draft.may(Defect.COERCED_VALUES) and draft.may(Defect.STORE_ASSIGNMENT):
        return expression(draft.chance, scope, field.type)
    return exact(draft.chance, scope, field)


def insert_values(draft: Draft) -> Statement:
    """A few rows by position, or for some of the columns."""
    chance = draft.chance
    chosen = list(draft.fields)
    named: Part = ""
    if chance.random() < 0.2:
        chance.shuffle(chosen)
        chosen = [each for each in chosen if each.required or chance.random() < 0.8] or chosen
        named = seq(" (", columns([(each.key, quoted(each.name)) for each in chosen]), ")")
    rows: list[Part] = [
        seq("(", columns([(each.key, inserted(draft, NOWHERE, each)) for each in chosen]), ")")
        for _ in range(chance.choice((1, 2, 2, 3)))
    ]
    draft.snapshots += 1
    into = target(draft)
    if chance.random() < 0.3:
        # One file for all rows, so that changes of one copy the others.
        return Statement(
            seq("INSERT INTO ", into, named, " SELECT /*+ COALESCE(1) */ * FROM VALUES ", items(rows)), "insert"
        )
    return Statement(seq("INSERT INTO ", into, named, " VALUES ", items(rows)), "insert")


def _selected(draft: Draft, fields: "tuple[Field, ...] | list[Field]") -> Part:
    scope = Scope(draft.fields)

    def value(field: Field) -> Part:
        if draft.chance.random() < 0.6:
            return Ref(field.key, quoted(field.name))
        return inserted(draft, scope, field)

    return columns([(each.key, value(each)) for each in fields])


def insert_select(draft: Draft) -> Statement:
    """Rows of the table again, changed, by position or by name."""
    condition = Choice(seq(" WHERE ", predicate(draft.chance, Scope(draft.fields))), ("",))
    draft.snapshots += 1
    if draft.chance.random() < 0.2:
        chosen = [each for each in draft.fields if draft.chance.random() < 0.9] or list(draft.fields)
        draft.chance.shuffle(chosen)
        scope = Scope(draft.fields)
        shown = columns([(each.key, seq(inserted(draft, scope, each), " AS ", quoted(each.name))) for each in chosen])
        return Statement(
            seq("INSERT INTO ", target(draft), " BY NAME SELECT ", shown, f" FROM {TABLE}", condition), "insert"
        )
    return Statement(
        seq("INSERT INTO ", target(draft), " SELECT ", _selected(draft, draft.fields), f" FROM {TABLE}", condition),
        "insert",
    )


def overwrite(draft: Draft) -> Statement:
    """Rows instead of those of the whole table, of partitions, or of a condition."""
    chance = draft.chance
    draft.snapshots += 1
    identities = [
        each for each in draft.partitions if each.identity and any(each.source == top.key for top in draft.fields)
    ]
    draw = chance.random()
    if identities and draw < 0.4:
        chosen = chance.choice(identities)
        [column] = [each for each in draft.fields if each.key == chosen.source]
        value: Part = field_literal(chance, column)
        if not draft.may(Defect.NULL_PARTITIONS):
            value = literal(chance, column.type, nulls=0)
        rest = [each for each in draft.fields if each.key != chosen.source]
        if rest:
            rows: list[Part] = [
                seq("(", columns([(each.key, inserted(draft, NOWHERE, each)) for each in rest]), ")")
                for _ in range(chance.randint(1, 2))
            ]
            into = chance.choice(("INSERT OVERWRITE ", "INSERT OVERWRITE ", "INSERT INTO "))
            static = seq(" PARTITION (", Ref(column.key, quoted(column.name)), " = ", value, ") VALUES ")
            return Statement(seq(into, TABLE, static, items(rows)), "overwrite")
    if draw < 0.55:
        condition = predicate(chance, Scope(draft.fields))
        while "BETWEEN" in render(condition) and not draft.may(Defect.REPLACE_BETWEEN):
            condition = predicate(chance, Scope(draft.fields))
        return Statement(
            seq(
                f"INSERT INTO {TABLE} REPLACE WHERE ",
                condition,
                " SELECT ",
                _selected(draft, draft.fields),
                f" FROM {TABLE}",
            ),
            "overwrite",
        )
    condition = Choice(seq(" WHERE ", predicate(chance, Scope(draft.fields))), ("",))
    if draw < 0.8:
        return Statement(
            seq(
                "INSERT OVERWRITE ",
                target(draft),
                " SELECT ",
                _selected(draft, draft.fields),
                f" FROM {TABLE}",
                condition,
            ),
            "overwrite",
        )
    rows = [
        seq("(", columns([(each.key, inserted(draft, NOWHERE, each)) for each in draft.fields]), ")")
        for _ in range(chance.randint(1, 2))
    ]
    return Statement(seq("INSERT OVERWRITE ", target(draft), " VALUES ", items(rows)), "overwrite")


def condition(draft: Draft, scope: Scope) -> Part:
    """A condition of a change, with a subquery now and then."""
    chance = draft.chance
    if chance.random() < 0.1:
        plain = [
            each for each in draft.fields if not isinstance(each.type, Struct | Array | Map) and each.type != VARIANT
        ]
        if plain:
            name = quoted(chance.choice(plain).name)
            key = next(each.key for each in plain if quoted(each.name) == name)
            inner = predicate(chance, Scope(draft.fields))
            return Choice(
                seq(
                    Ref(key, name),
                    chance.choice((" IN ", " NOT IN ")),
                    f"(SELECT {name} FROM {TABLE} WHERE ",
                    inner,
                    ")",
                ),
                ("true",),
            )
        return seq(f"EXISTS (SELECT 1 FROM {TABLE} WHERE ", predicate(chance, Scope(draft.fields)), ")")
    return predicate(chance, scope)


def assignments(draft: Draft, scope: Scope, prefix: str = "") -> Part:
    """What a row becomes: columns, and fields of structs."""
    chance = draft.chance
    found = [path for path in paths(draft.fields) if len(path.fields) == 1 or draft.may(Defect.NULL_STRUCTS)]
    chance.shuffle(found)
    chosen: list[tuple[str, Part]] = []
    tops: set[str] = set()
    for path in found[: chance.choice((1, 1, 2, 3))]:
        if path.fields[0].key in tops and chance.random() < 0.9:
            continue
        tops.add(path.fields[0].key)
        name = Scope(draft.fields, prefix).name(path)
        value = assigned(draft, scope, path.last)
        if not draft.may(Defect.STRUCTS_THAT_LACK_FIELDS) and isinstance(path.last.type, Struct):
            value = field_literal(chance, path.last)
        chosen.append((path.last.key, seq(name, " = ", value)))
    # Not tied to one column each: an assignment may go alone.
    return items([part for _, part in chosen])


def update(draft: Draft) -> Statement:
    """New values for the rows of a condition."""
    draft.snapshots += 1
    into = target(draft)
    alias = "x" if draft.chance.random() < 0.3 else ""
    scope = Scope(draft.fields, alias)
    shown = f" AS {alias}" if alias else ""
    where: Part = Choice(seq(" WHERE ", condition(draft, scope)), ("",)) if draft.chance.random() < 0.85 else ""
    qualified = alias if alias and draft.may(Defect.NAMES_IN_MERGE) and draft.chance.random() < 0.5 else ""
    return Statement(seq(f"UPDATE {into}{shown} SET ", assignments(draft, scope, qualified), where), "update")


def delete(draft: Draft) -> Statement:
    """No rows of a condition any more."""
    draft.snapshots += 1
    where = seq(" WHERE ", condition(draft, Scope(draft.fields)))
    return Statement(seq("DELETE FROM ", target(draft), where), "delete")


def truncate(draft: Draft) -> Statement:
    """No rows at all."""
    draft.snapshots += 1
    return Statement(f"TRUNCATE TABLE {TABLE}", "truncate")


def copied(draft: Draft) -> "list[Field]":
    """Columns that a query may give to a new table."""
    chosen = [each for each in draft.fields if draft.chance.random() < 0.8] or list(draft.fields)
    if not draft.may(Defect.VARIANT_IDS):
        chosen = [each for each in chosen if not has(each.type, VARIANT)] or chosen
    return chosen


def cast_to(field: Field) -> Callable[[Part], Part]:
    """A value as the type of a column."""
    return lambda value: seq("CAST(", value, f" AS {type_text(field.type)})")
