"""Catalyst predicates as predicates of tables: each kind, its negation, and everything that is not understood."""

import json
from typing import Any

import pytest

from icefloe import expressions as ex
from icefloe.expressions import AlwaysFalse, AlwaysTrue
from icefloe.schema import types
from icefloe.spark.predicates import ranges_filter, table_filter, values_filter

COLUMNS = {
    "id": types.NestedField(1, "id", types.LongType()),
    "name": types.NestedField(2, "name", types.StringType()),
    "score": types.NestedField(3, "score", types.DoubleType()),
    "part": types.NestedField(4, "part", types.StructType(types.NestedField(5, "n", types.LongType()))),
}


class Given:
    """A Catalyst expression as its JSON says it."""

    def __init__(self, *nodes: Any) -> None:
        self._nodes = nodes

    def toJSON(self) -> str:  # noqa: N802  # Spark's name
        return json.dumps(self._nodes)


def node(kind: str, children: int = 0, **facts: Any) -> dict[str, Any]:
    return {"class": f"org.apache.spark.sql.catalyst.expressions.{kind}", "num-children": children, **facts}


def attribute(name: str) -> dict[str, Any]:
    return node("AttributeReference", name=name)


def field(place: int, of: tuple[dict[str, Any], ...], **more: Any) -> tuple[dict[str, Any], ...]:
    """A field of a struct by its place, which is all that Spark always says of it."""
    return (node("GetStructField", 1, ordinal=place, **more), *of)


def literal(value: Any) -> dict[str, Any]:
    return node("Literal", value=value)


ID, NAME, SCORE = attribute("id"), attribute("name"), attribute("score")
PART = {"type": "struct", "fields": [{"name": "other", "type": "long"}, {"name": "n", "type": "long"}]}
PARTS = node("AttributeReference", name="part", dataType=PART)
EQUAL = (node("EqualTo", 2), ID, literal("5"))
STRANGE = (node("Rand", 1), ID)


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (EQUAL, "field_id(1) = 5"),
        ((node("Not", 1), *EQUAL), "field_id(1) != 5"),
        ((node("LessThan", 2), literal("5"), ID), "field_id(1) > 5"),
        ((node("Not", 1), node("LessThan", 2), ID, literal("5")), "field_id(1) >= 5"),
        ((node("EqualNullSafe", 2), ID, literal(None)), "field_id(1) is null"),
        ((node("Not", 1), node("EqualNullSafe", 2), ID, literal(None)), "field_id(1) is not null"),
        ((node("EqualTo", 2), ID, literal(None)), "false"),
        ((node("In", 3), ID, literal("1"), literal("2")), "field_id(1) in (1, 2)"),
        ((node("In", 3), ID, literal("1"), literal(None)), "field_id(1) = 1"),
        ((node("Not", 1), node("In", 3), ID, literal("1"), literal(None)), "false"),
        ((node("IsNotNull", 1), NAME), "field_id(2) is not null"),
        ((node("StartsWith", 2), NAME, literal("ab")), "field_id(2) like 'ab%'"),
        ((node("GreaterThan", 2), SCORE, literal("1.5")), "field_id(3) > 1.5e0 or field_id(3) is nan"),
        ((node("LessThan", 2), SCORE, literal("1.5")), "field_id(3) < 1.5e0"),
        ((node("EqualTo", 2), SCORE, literal("NaN")), "field_id(3) is nan"),
        ((node("GreaterThan", 2), SCORE, literal("NaN")), "false"),
        ((node("LessThanOrEqual", 2), SCORE, literal("NaN")), "field_id(3) is not null"),
        ((node("EqualTo", 2), *field(1, (PARTS,), name="N"), literal("7")), "field_id(5) = 7"),
        ((node("EqualTo", 2), *field(1, (node("KnownNullable", 1), PARTS)), literal("7")), "field_id(5) = 7"),
        ((node("EqualTo", 2), *field(0, (PARTS,), name="n"), literal("7")), "true"),
        ((node("And", 2), *EQUAL, *STRANGE), "field_id(1) = 5"),
        ((node("Or", 2), *EQUAL, *STRANGE), "true"),
        ((node("Not", 1), node("And", 2), *EQUAL, *STRANGE), "true"),
        (
            (node("Not", 1), node("Or", 2), *EQUAL, *STRANGE),
            "field_id(1) != 5",
        ),
        (STRANGE, "true"),
        ((node("EqualTo", 2), attribute("elsewhere"), literal("5")), "true"),
        ((node("EqualTo", 2), ID, literal("no number")), "true"),
        ((node("IsNull", 1), attribute("part")), "true"),
    ],
)
def test_what_a_filter_says_of_files(nodes: tuple[Any, ...], text: str) -> None:
    assert str(table_filter([Given(*nodes)], COLUMNS)) == text


def test_all_filters_hold() -> None:
    assert str(table_filter([Given(*EQUAL), Given(*STRANGE)], COLUMNS)) == "field_id(1) = 5"
    assert table_filter([], COLUMNS) == AlwaysTrue()
    assert table_filter([Given(literal("false"))], COLUMNS) == AlwaysFalse()


@pytest.mark.parametrize(
    ("kind", "texts", "values"),
    [
        (types.LongType(), ["7", "-3", str(2**63 - 1)], [-3, 7, 2**63 - 1]),
        (types.IntegerType(), ["7", "-3", str(2**31), str(-(2**31) - 1)], [-3, 7]),
        (types.DateType(), ["20000", "-1"], [-1, 20000]),
        (types.TimestamptzType(), ["1700000000000000", "0"], [0, 1700000000000000]),
        (types.StringType(), ["b", "\U0001f600", "", "\uffff"], ["", "b", "\uffff", "\U0001f600"]),
    ],
)
def test_keys_of_a_join_are_values_or_a_range(kind: types.PrimitiveType, texts: list[str], values: list[Any]) -> None:
    """Few keys are taken one by one, very many by the least and the greatest, in the order of the type."""
    field, term = types.NestedField(1, "k", kind), ex.IdReference(1)
    literals = [ex.Literal(value, kind) for value in values]
    few = values_filter(field, texts)
    assert isinstance(few, ex.In)
    assert set(few.literals) == set(literals)
    between = ex.conjunction(ex.GreaterThanOrEqual(term, literals[0]), ex.LessThanOrEqual(term, literals[-1]))
    assert values_filter(field, texts * 2_000) == between


@pytest.mark.parametrize(("kind", "text"), [(types.UUIDType(), "x"), (types.LongType(), "x"), (types.TimeType(), "1")])
def test_keys_that_are_not_understood_rule_nothing_out(kind: types.PrimitiveType, text: str) -> None:
    assert values_filter(types.NestedField(1, "k", kind), [text]) is None


def test_ranges_of_keys_that_a_column_cannot_have_are_left_out() -> None:
    field = types.NestedField(1, "k", types.IntegerType())
    assert ranges_filter(field, [str(2**31), str(2**40)]) == ex.AlwaysFalse()
    cut = ranges_filter(field, ["-5", "7", str(-(2**40)), str(-(2**31))])
    term = ex.Column(ex.IdReference(1))
    literals = [ex.Literal(value, field.field_type) for value in (-5, 7, -(2**31))]
    assert cut == ex.disjunction(term.between(literals[0], literals[1]), term.between(literals[2], literals[2]))
    assert ranges_filter(types.NestedField(1, "k", types.StringType()), ["1", "2"]) is None
