"""Expressions over the columns of a table, of the type of a column or of another one, and predicates that rows may meet."""

import random
from dataclasses import dataclass

from tests.peers.sql.histories.names import text
from tests.peers.sql.histories.parts import Choice, Part, Ref, Seq, columns, seq
from tests.peers.sql.histories.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NTZ,
    SMALLINT,
    STRING,
    TIMES,
    TIMESTAMP,
    TINYINT,
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

OTHERS: dict[Type, tuple[Type, ...]] = {
    BOOLEAN: (STRING, INT),
    INT: (BIGINT, DOUBLE, SMALLINT, TINYINT, Decimal(10, 2), Decimal(5, 0), STRING, FLOAT, BOOLEAN, DATE),
    BIGINT: (INT, DOUBLE, Decimal(38, 18), Decimal(20, 0), STRING, TIMESTAMP, FLOAT, SMALLINT),
    FLOAT: (DOUBLE, INT, BIGINT, Decimal(20, 3), STRING),
    DOUBLE: (FLOAT, BIGINT, INT, Decimal(38, 10), STRING),
    DATE: (TIMESTAMP, NTZ, STRING),
    TIMESTAMP: (DATE, NTZ, STRING, BIGINT),
    NTZ: (DATE, TIMESTAMP, STRING),
    STRING: (INT, DATE, BOOLEAN, DOUBLE, Decimal(5, 2), TIMESTAMP, BINARY, NTZ, BIGINT, FLOAT),
    BINARY: (STRING, INT),
    VARIANT: (STRING, INT),
}


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns that an expression may name, and what they are called by."""

    fields: tuple[Field, ...]
    alias: str = ""

    def name(self, path: Path) -> Part:
        """A column in SQL, which needs each field on its way."""
        prefix = f"{self.alias}." if self.alias else ""
        parts: list[Part] = []
        for i, field in enumerate(path.fields):
            quoted = Path((field,)).text()
            parts.append(Ref(field.key, ("." if i else prefix) + quoted))
        return seq(*parts)

    def paths(self) -> list[Path]:
        """All columns and fields."""
        return list(paths(self.fields))


def expression(chance: random.Random, scope: Scope, kind: Type, *, others: float = 0.35, depth: int = 0) -> Part:
    """Something of a type, or, as often as `others` says, of a type that is stored as it."""
    plain = literal(chance, kind)
    draw = chance.random()
    if draw < others:
        return Choice(_of_another(chance, scope, kind), (plain,) if isinstance(plain, str) else ("NULL", plain))
    if draw < others + 0.25:
        found = [path for path in scope.paths() if path.last.type == kind]
        if found:
            return Choice(scope.name(chance.choice(found)), ("NULL",))
    if draw < others + 0.45 and depth < 2:
        return Choice(_computed(chance, scope, kind, depth), ("NULL",))
    return plain if plain == "NULL" else Choice(plain, ("NULL",))


def exact(chance: random.Random, scope: Scope, field: Field) -> Part:
    """A value of the type of a field, by a cast if it must be."""
    if chance.random() < 0.5:
        return field_literal(chance, field)
    made = expression(chance, scope, field.type, others=0.0)
    return seq("CAST(", made, f" AS {type_text(field.type)})")


def _of_another(chance: random.Random, scope: Scope, kind: Type) -> Part:
    match kind:
        case Struct(fields):
            return _struct_like(chance, scope, fields)
        case Array(element):
            return seq("array(", expression(chance, scope, element, others=0.8, depth=2), ")")
        case Map(key, value):
            return seq("map(", literal(chance, key, nulls=0), ", ", expression(chance, scope, value, depth=2), ")")
        case Decimal(precision, scale):
            others: tuple[Type, ...] = (
                Decimal(min(38, precision + 3), scale),
                Decimal(38, min(scale + 2, 38)),
                Decimal(precision, 0),
                INT,
                DOUBLE,
                BIGINT,
                STRING,
            )
        case _:
            others = OTHERS.get(kind, (STRING,))
    other = chance.choice(others)
    named = [path for path in scope.paths() if path.last.type == other]
    if named and chance.random() < 0.5:
        return scope.name(chance.choice(named))
    return _fitting(chance, kind, other)


def _fitting(chance: random.Random, kind: Type, other: Type) -> Part:
    """A literal of another type; texts that can be read as the type, more often than not."""
    if other == STRING and chance.random() < 0.8:
        samples: dict[Type, str] = {
            BOOLEAN: "true",
            INT: "12",
            BIGINT: "12",
            FLOAT: "0.5",
            DOUBLE: "-1e3",
            DATE: "2024-05-05",
            TIMESTAMP: "2024-05-05 01:02:03",
            NTZ: "2024-05-05 01:02:03",
        }
        return text(samples.get(kind, "1.5" if isinstance(kind, Decimal) else "x"))
    return literal(chance, other, nulls=0.05)


def _struct_like(chance: random.Random, scope: Scope, fields: tuple[Field, ...]) -> Part:
    """A struct whose fields are of other types, in another order, of other names, too few or too many."""
    shown = list(fields)
    draw = chance.random()
    if draw < 0.15:
        chance.shuffle(shown)
    inside: list[tuple[str, Part]] = [
        (
            field.key,
            seq(
                text(field.name if draw > 0.2 else field.name + "x"),
                ", ",
                expression(chance, scope, field.type, depth=2),
            ),
        )
        for field in shown
    ]
    if draw > 0.9:
        inside.append(("extra", "'extra', 1"))
    return seq("named_struct(", columns(inside), ")")


def _computed(chance: random.Random, scope: Scope, kind: Type, depth: int) -> Part:
    """Functions and operators whose result is of the type, or close to it."""
    inner = expression(chance, scope, kind, others=0.2, depth=depth + 1)
    other = expression(chance, scope, kind, others=0.2, depth=depth + 1)
    general: list[Part] = [
        seq("coalesce(", inner, ", ", other, ")"),
        seq("CASE WHEN ", predicate(chance, scope, depth=2), " THEN ", inner, " ELSE ", other, " END"),
        seq("if(", predicate(chance, scope, depth=2), ", ", inner, ", ", other, ")"),
    ]
    if kind != VARIANT and not isinstance(kind, Map):
        general.append(seq("nullif(", inner, ", ", other, ")"))
    match kind:
        case Plain("INT" | "BIGINT"):
            general += [seq(inner, " + 1"), seq(inner, " / 2"), seq(inner, " % 3"), seq("-", inner)]
        case Plain("FLOAT" | "DOUBLE"):
            general += [seq(inner, " * 1.1"), seq(inner, " / 3"), seq("-(", inner, ")")]
        case Decimal():
            general += [seq(inner, " * 1.1"), seq(inner, " + 1"), seq("round(", inner, ", 1)")]
        case Plain("STRING"):
            general += [
                seq("concat(", inner, ", 'x')"),
                seq("upper(", inner, ")"),
                seq("substring(", inner, ", 1, 2)"),
            ]
        case Plain("DATE"):
            general += [seq("date_add(", inner, ", 1)"), seq("last_day(", inner, ")")]
        case Plain("TIMESTAMP" | "TIMESTAMP_NTZ"):
            general += [seq(inner, " + INTERVAL '1' DAY"), seq("date_trunc('HOUR', ", inner, ")")]
        case Plain("BOOLEAN"):
            general += [seq("NOT ", inner), predicate(chance, scope, depth=2)]
        case Array():
            general += [seq("concat(", inner, ", ", other, ")"), seq("slice(", inner, ", 1, 1)")]
        case _:
            pass
    made = chance.choice(general)
    return made if not isinstance(made, Seq) else seq("(", made, ")")


def predicate(chance: random.Random, scope: Scope, depth: int = 0) -> Part:
    """A condition on columns, of comparisons with literals of the same or another type."""
    found = scope.paths()
    if depth < 2 and chance.random() < 0.25:
        left, right = predicate(chance, scope, depth + 1), predicate(chance, scope, depth + 1)
        match chance.randrange(3):
            case 0:
                return Choice(seq("(", left, " AND ", right, ")"), (left, right))
            case 1:
                return Choice(seq("(", left, " OR ", right, ")"), (left, right))
            case _:
                return Choice(seq("NOT ", left), (left,))
    if not found:
        return "1 = 1"
    path = chance.choice(found)
    name = scope.name(path)
    made = _comparison(chance, scope, name, path.last.type)
    return Choice(made, ("true", seq(name, " IS NULL"), seq(name, " IS NOT NULL")))


def _comparison(chance: random.Random, scope: Scope, name: Part, kind: Type) -> Part:
    if chance.random() < 0.2 or (kind == VARIANT and chance.random() < 0.4):
        return seq(name, chance.choice((" IS NULL", " IS NOT NULL")))
    operator = chance.choice((" = ", " = ", " < ", " >= ", " <> ", " > ", " <= ", " <=> "))
    match kind:
        case Plain("VARIANT"):
            path = chance.choice(("$.a", "$.b", "$", "$.a[0]"))
            target = chance.choice(("INT", "STRING", "DOUBLE"))
            wanted = {"INT": "1", "STRING": "'x'", "DOUBLE": "1.0D"}[target]
            return seq("try_variant_get(", name, f", '{path}', '{target}')", operator, wanted)
        case Map(key, _):
            return chance.choice(
                (
                    seq("size(", name, ")", operator, "1"),
                    seq("element_at(", name, ", ", literal(chance, key, nulls=0), ") IS NULL"),
                )
            )
        case Array(element):
            if element == VARIANT or isinstance(element, Array | Map | Struct) or chance.random() < 0.4:
                return seq("size(", name, ")", operator, "1")
            return seq("array_contains(", name, ", ", literal(chance, element, nulls=0), ")")
        case Struct(fields):
            if any(isinstance(field.type, Map | Array | Struct) or field.type == VARIANT for field in fields):
                return seq(name, " IS NOT NULL")
            return seq(name, operator, literal(chance, kind, nulls=0))
        case _:
            return _plain_comparison(chance, name, kind, operator)


def _plain_comparison(chance: random.Random, name: Part, kind: Type, operator: str) -> Part:
    draw = chance.random()
    if draw < 0.12:
        values = [literal(chance, kind, nulls=0.1) for _ in range(chance.randint(1, 3))]
        return seq(name, chance.choice((" IN (", " NOT IN (")), *_separated(values), ")")
    if draw < 0.2:
        return seq(name, " BETWEEN ", literal(chance, kind, nulls=0), " AND ", literal(chance, kind, nulls=0))
    if kind == STRING and draw < 0.35:
        return seq(name, " LIKE ", chance.choice(("'a%'", "'%a'", "'_'", "'%'")))
    if kind in TIMES and draw < 0.3:
        return seq("year(", name, ")", operator, "2024")
    if draw < 0.45:
        other = chance.choice(OTHERS.get(kind, (INT, DOUBLE)))
        return seq(name, operator, _fitting(chance, kind, other))
    return seq(name, operator, literal(chance, kind, nulls=0.03))


def _separated(values: list[Part]) -> list[Part]:
    found: list[Part] = []
    for i, value in enumerate(values):
        found += [", ", value] if i else [value]
    return found
