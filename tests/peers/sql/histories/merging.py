"""MERGE with any clauses: sources of other types than the columns, stars, conditions on both sides, fields of structs."""

from tests.peers.sql.histories.expressions import OTHERS, Scope, expression, predicate
from tests.peers.sql.histories.known import Defect
from tests.peers.sql.histories.model import TABLE, Draft, Statement
from tests.peers.sql.histories.names import quoted
from tests.peers.sql.histories.parts import Choice, Part, columns, items, seq
from tests.peers.sql.histories.rows import assignments, target
from tests.peers.sql.histories.types import (
    INT,
    VARIANT,
    Array,
    Decimal,
    Field,
    Map,
    Path,
    Plain,
    Struct,
    Type,
    paths,
    type_text,
)
from tests.peers.sql.histories.values import field_literal, literal


def merge(draft: Draft) -> Statement:
    """Rows changed, added and removed by those of a source."""
    chance = draft.chance
    draft.snapshots += 1
    star = chance.random() < 0.3
    keyed = [path for path in paths(draft.fields) if _joins(path.last.type)]
    key = chance.choice(keyed) if keyed else None
    source = _source_fields(draft, key, star)
    ours, theirs = Scope(draft.fields, "t"), Scope(source, "s")
    into = target(draft)
    clauses = _clauses(draft, ours, theirs, star)
    text = seq(
        f"MERGE INTO {into} t USING (",
        _source(draft, source),
        ") s ON ",
        _on(draft, ours, theirs, key, star),
        " ",
        items(clauses, " "),
    )
    return Statement(text, "merge")


def _joins(kind: Type) -> bool:
    return isinstance(kind, Plain | Decimal) and kind != VARIANT


def _source_fields(draft: Draft, key: Path | None, star: bool) -> tuple[Field, ...]:
    chance = draft.chance
    if star:
        return tuple(
            Field(f"s{each.key}", each.name, _source_type(draft, each.type), each.required) for each in draft.fields
        )
    fields = [Field("sk", "k", INT if key is None else _source_type(draft, key.last.type))]
    for i, path in enumerate(chance.sample(list(paths(draft.fields)), min(3, len(list(paths(draft.fields)))))):
        fields.append(Field(f"s{i}", f"x{i}", _source_type(draft, path.last.type)))
    return tuple(fields)


def _source_type(draft: Draft, kind: Type) -> Type:
    if not (draft.may(Defect.STORE_ASSIGNMENT) and draft.may(Defect.COERCED_VALUES)):
        return kind
    if draft.chance.random() < 0.3 and kind in OTHERS and kind != VARIANT:
        return draft.chance.choice(OTHERS[kind])
    return kind


def _source(draft: Draft, fields: tuple[Field, ...]) -> Part:
    """Rows of literals, or those of the table itself."""
    rows: list[Part] = [
        seq(
            "SELECT ",
            columns([(each.key, seq(_typed(draft, each), " AS ", quoted(each.name))) for each in fields]),
        )
        for _ in range(draft.chance.choice((1, 2, 2, 3)))
    ]
    if draft.chance.random() < 0.15 and all(
        any(mine.name == each.name and mine.type == each.type for mine in draft.fields) for each in fields
    ):
        named = columns([(each.key, quoted(each.name)) for each in fields])
        return (
            seq("SELECT DISTINCT ", named, f" FROM {TABLE}") if not _holds_maps(fields) else items(rows, " UNION ALL ")
        )
    return items(rows, " UNION ALL ")


def _holds_maps(fields: tuple[Field, ...]) -> bool:
    return any(isinstance(each.type, Map | Array | Struct) or each.type == VARIANT for each in fields)


def _typed(draft: Draft, field: Field) -> Part:
    """A value of exactly the type, so that all rows of a source have one."""
    made = field_literal(draft.chance, field)
    return seq("CAST(", made, f" AS {type_text(field.type)})")


def _on(draft: Draft, ours: Scope, theirs: Scope, key: Path | None, star: bool) -> Part:
    chance = draft.chance
    if key is None or chance.random() < 0.07:
        return seq(predicate(chance, ours), " AND ", predicate(chance, theirs))
    if star:
        [match] = [each for each in theirs.fields if each.key == f"s{key.fields[0].key}"]
        other = Path((match,)) if len(key.fields) == 1 else None
        if other is None or not _joins(other.last.type):
            return predicate(chance, theirs)
    else:
        other = Path((theirs.fields[0],))
    joined = seq(ours.name(key), chance.choice((" = ", " = ", " = ", " <=> ")), theirs.name(other))
    if chance.random() < 0.15:
        return Choice(seq(joined, " AND ", predicate(chance, ours)), (joined,))
    return joined


def _clauses(draft: Draft, ours: Scope, theirs: Scope, star: bool) -> list[Part]:
    chance = draft.chance
    found: list[Part] = []
    both = Scope((*ours.fields,), "t")
    for kind in ("MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"):
        count = chance.choice((0, 1, 1, 2) if kind != "NOT MATCHED BY SOURCE" else (0, 0, 1, 2))
        for i in range(count):
            last = i == count - 1
            scope = theirs if kind == "NOT MATCHED" else both
            condition: Part = "" if last and chance.random() < 0.7 else seq(" AND ", predicate(chance, scope))
            if condition and last:
                condition = Choice(condition, ("",))
            found.append(seq(f"WHEN {kind}", condition, " THEN ", _action(draft, kind, theirs, star)))
    return found or [seq("WHEN MATCHED THEN ", _action(draft, "MATCHED", theirs, star))]


def _action(draft: Draft, kind: str, theirs: Scope, star: bool) -> Part:
    chance = draft.chance
    if kind == "NOT MATCHED":
        return _insert(draft, theirs, star)
    if chance.random() < 0.3:
        return "DELETE"
    if kind == "MATCHED":
        if star and chance.random() < 0.6:
            return "UPDATE SET *"
        scope = theirs if chance.random() < 0.6 else Scope(draft.fields, "t")
    else:
        scope = Scope(draft.fields, "t")
    prefix = chance.choice(("t", "")) if kind == "MATCHED" or draft.may(Defect.NAMES_IN_MERGE) else "t"
    return Choice(seq("UPDATE SET ", assignments(draft, scope, prefix)), ("DELETE",))


def _insert(draft: Draft, theirs: Scope, star: bool) -> Part:
    if star and draft.chance.random() < 0.7:
        return "INSERT *"
    chosen = [each for each in draft.fields if each.required or draft.chance.random() < 0.9] or list(draft.fields)
    values: list[tuple[str, Part]] = [(each.key, _new_value(draft, theirs, each)) for each in chosen]
    names: list[tuple[str, Part]] = [(each.key, quoted(each.name)) for each in chosen]
    return seq("INSERT (", columns(names), ") VALUES (", columns(values), ")")


def _new_value(draft: Draft, theirs: Scope, field: Field) -> Part:
    if draft.may(Defect.STORE_ASSIGNMENT) and draft.may(Defect.COERCED_VALUES):
        return expression(draft.chance, theirs, field.type)
    same = [path for path in theirs.paths() if path.last.type == field.type]
    if same and draft.chance.random() < 0.6:
        return theirs.name(draft.chance.choice(same))
    return seq("CAST(", literal(draft.chance, field.type), f" AS {type_text(field.type)})")
