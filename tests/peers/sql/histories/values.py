"""Literals of every type: a few common values, so that predicates meet rows, and the extremes now and then."""

import random

from tests.peers.sql.histories.names import text
from tests.peers.sql.histories.parts import Choice, Part, columns, items, seq
from tests.peers.sql.histories.types import (
    VARIANT,
    Array,
    Decimal,
    Field,
    Map,
    Plain,
    Struct,
    Type,
    type_text,
)

COMMON: dict[str, tuple[str, ...]] = {
    "BOOLEAN": ("true", "false"),
    "TINYINT": ("1Y", "7Y", "-128Y"),
    "SMALLINT": ("1S", "300S", "-1S"),
    "INT": ("0", "1", "2", "7", "-1"),
    "BIGINT": ("0L", "1L", "2L", "7L", "3000000000L"),
    "FLOAT": ("1.5F", "0.1F", "-2.0F", "0.0F"),
    "DOUBLE": ("1.5D", "0.1D", "7.0D", "0.0D"),
    "DATE": ("DATE'2024-02-29'", "DATE'2024-01-01'", "DATE'1969-12-31'"),
    "TIMESTAMP": (
        "TIMESTAMP'2024-01-01 00:00:00'",
        "TIMESTAMP'2024-03-10 07:30:00.123456'",
        "TIMESTAMP'1969-12-31 23:59:59.999999'",
        "TIMESTAMP'2024-01-01 00:00:00+02:00'",
    ),
    "TIMESTAMP_NTZ": (
        "TIMESTAMP_NTZ'2024-01-01 00:00:00'",
        "TIMESTAMP_NTZ'2024-03-10 02:30:00'",
        "TIMESTAMP_NTZ'1969-12-31 23:00:00.000001'",
    ),
    "STRING": ("'a'", "'b'", "''", "'7'", "'A'"),
    "BINARY": ("X''", "X'00FF'", "X'61'"),
    "VARIANT": (
        """parse_json('{"a":1,"b":"x"}')""",
        """parse_json('{"a":[1,null,{"b":2.5}],"c":null}')""",
        "parse_json('1')",
        "parse_json('null')",
        "CAST(DATE'2024-01-01' AS VARIANT)",
        """parse_json('"x"')""",
    ),
}
RARE: dict[str, tuple[str, ...]] = {
    "INT": ("2147483647", "-2147483648", "16777217"),
    "BIGINT": ("9223372036854775807L", "(-9223372036854775807L - 1L)", "9007199254740993L"),
    "FLOAT": (
        "float('NaN')",
        "float('-0.0')",
        "float('Infinity')",
        "float('-Infinity')",
        "float('3.4028235E38')",
        "float('1.4E-45')",
    ),
    "DOUBLE": (
        "double('NaN')",
        "double('-0.0')",
        "double('Infinity')",
        "double('-Infinity')",
        "1.7976931348623157E308D",
        "4.9E-324D",
        "9007199254740993D",
    ),
    "DATE": ("DATE'0001-01-01'", "DATE'9999-12-31'", "DATE'1582-10-04'", "DATE'1970-01-01'", "DATE'1900-01-01'"),
    "TIMESTAMP": (
        "TIMESTAMP'0001-01-02 00:00:00'",
        "TIMESTAMP'9999-12-30 23:59:59.999999'",
        "TIMESTAMP'1582-10-10 01:02:03'",
        "TIMESTAMP'1899-12-31 12:00:00'",
        "TIMESTAMP'2024-11-03 01:30:00'",
    ),
    "TIMESTAMP_NTZ": (
        "TIMESTAMP_NTZ'0001-01-01 00:00:00'",
        "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
        "TIMESTAMP_NTZ'1582-10-10 01:02:03'",
    ),
    "STRING": (
        "'äöü😀'",
        "'a text longer than sixteen characters'",
        "'it''s'",
        "' 7 '",
        "'NaN'",
        "'2024-01-01'",
        "'true'",
        "'1.50'",
        "'\\u0000'",
        "'a/b=c d%20'",
        "'null'",
        "'__HIVE_DEFAULT_PARTITION__'",
        "'😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀'",
    ),
    "BINARY": ("X'000102030405060708090A0B0C0D0E0F1011'", "X'FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF'"),
    "VARIANT": (
        "CAST(1.50BD AS VARIANT)",
        "CAST(TIMESTAMP'2024-01-01 00:00:00' AS VARIANT)",
        "CAST(TIMESTAMP_NTZ'2024-01-01 00:00:00' AS VARIANT)",
        "CAST(X'00' AS VARIANT)",
        "CAST(float('NaN') AS VARIANT)",
        "CAST(array(1, 2) AS VARIANT)",
        "to_variant_object(named_struct('z', 1, 'a', array(true, null)))",
        """parse_json('{"":{"deep":[[{"x":[]}]]}}')""",
        "parse_json('[]')",
        "parse_json('12345678901234567890123456789012345678')",
    ),
}


def literal(chance: random.Random, kind: Type, *, nulls: float = 0.12) -> Part:
    """A literal of exactly that type; NULL now and then, if it may be."""
    if chance.random() < nulls:
        return "NULL" if nulls >= 1 or chance.random() < 0.7 else f"CAST(NULL AS {type_text(kind)})"
    match kind:
        case Plain(name):
            rare = RARE.get(name, ())
            return chance.choice(rare if rare and chance.random() < 0.25 else COMMON[name])
        case Decimal():
            return decimal_literal(chance, kind)
        case Array(element):
            count = chance.choice((0, 1, 1, 2, 3))
            if count == 0:
                return f"CAST(array() AS {type_text(kind)})"
            inner: list[Part] = [literal(chance, element) for _ in range(count)]
            return seq("array(", items(inner), ")")
        case Map(key, value):
            return _map(chance, key, value)
        case Struct(fields):
            inside = [(field.key, seq(text(field.name), ", ", field_literal(chance, field))) for field in fields]
            return seq("named_struct(", columns(inside), ")")


def field_literal(chance: random.Random, field: Field) -> Part:
    """A literal for a field, which is NULL only where it may be, and rarely where it may not."""
    value = literal(chance, field.type, nulls=0.01 if field.required else 0.15)
    return value if field.required or value == "NULL" else Choice(value, ("NULL",))


def decimal_literal(chance: random.Random, kind: Decimal) -> str:
    """A decimal of that precision and scale at most, often one of few."""
    if chance.random() < 0.5:
        whole = kind.precision - kind.scale
        number = chance.choice(("0", "1", "-1") if whole else ("0", "0." + "1" * kind.scale))
    else:
        digits = "".join(chance.choice("0123456789") for _ in range(chance.randint(1, kind.precision)))
        if chance.random() < 0.2:
            digits = "9" * kind.precision
        padded = digits.rjust(kind.scale + 1, "0")
        number = f"{padded[: len(padded) - kind.scale]}.{padded[len(padded) - kind.scale :]}".rstrip(".")
        number = chance.choice(("", "-")) + number
    return f"CAST('{number}' AS DECIMAL({kind.precision},{kind.scale}))"


def _map(chance: random.Random, key: Type, value: Type) -> Part:
    count = chance.choice((0, 1, 2))
    known: list[Part] = []
    for _ in range(count):
        made = literal(chance, key, nulls=0) if key != VARIANT else "'k'"
        if made not in known:
            known.append(made)
    if not known:
        return f"CAST(map() AS {type_text(Map(key, value))})"
    return seq("map(", items([seq(each, ", ", literal(chance, value)) for each in known]), ")")
