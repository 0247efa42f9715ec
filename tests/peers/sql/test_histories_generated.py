"""The generator of histories: the same for a seed, made of all types and statements, and made smaller as far as it goes."""

import re
from dataclasses import replace

from tests.peers.sql.histories.__main__ import seeds
from tests.peers.sql.histories.generating import KINDS, History, history
from tests.peers.sql.histories.known import EXPECTED_DIFFERENCES, KNOWN_DEFECTS, Defect, Expected
from tests.peers.sql.histories.model import Statement
from tests.peers.sql.histories.parts import Choice, Ref, columns, items, keys, reductions, render, seq, without
from tests.peers.sql.histories.program import program
from tests.peers.sql.histories.running import Difference
from tests.peers.sql.histories.shrinking import shrunk
from tests.peers.sql.histories.types import Array, Field, Map, Plain, Struct, changed, spots

MANY = 400


def texts(made: History) -> list[str]:
    """The statements of a history."""
    return [render(each.part) for each in made.statements]


def test_a_seed_gives_the_same_history_each_time() -> None:
    assert [history(seed) for seed in range(20)] == [history(seed) for seed in range(20)]
    assert len({tuple(texts(history(seed))) for seed in range(20)}) == 20


def test_nothing_known_is_in_the_way_of_any_kind_of_statement_and_type() -> None:
    made = [history(seed, frozenset()) for seed in range(MANY)]
    kinds = {each.kind for one in made for each in one.statements}
    assert len(kinds) >= len(KINDS) - 6
    everything = "\n".join(text for one in made for text in texts(one))
    wanted = (
        *("BOOLEAN", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "STRING", "BINARY"),
        *("VARIANT", "NOT NULL", "NaN", "-0.0", "Infinity", "NULL", "WHEN NOT MATCHED BY SOURCE", "INSERT *"),
        *("UPDATE SET *", "PARTITIONED BY", "bucket(", "truncate(", "hours(", "BRANCH", "TAG", "VERSION AS OF"),
        *("INSERT OVERWRITE", "REPLACE WHERE", "BY NAME", "DROP PARTITION FIELD", "spark.wap.branch", "TEMPORARY VIEW"),
    )
    assert [each for each in wanted if each not in everything] == []
    scales = {(int(a), int(b)) for a, b in re.findall(r"DECIMAL\((\d+),(\d+)\)", everything)}
    assert {precision for precision, _ in scales} == set(range(1, 39))


def test_what_is_known_is_avoided() -> None:
    for seed in range(MANY):
        made = history(seed, frozenset(Defect))
        settings = dict(made.settings)
        assert "spark.sql.storeAssignmentPolicy" not in settings
        for text in texts(made):
            assert "TEMPORARY VIEW" not in text
            assert "spark.wap.branch" not in text
            if "VARIANT" in text:
                assert settings["spark.sql.variant.pushVariantIntoScan"] == "false"


def test_parts_go_with_their_column() -> None:
    where = Choice(seq(" WHERE ", Ref("f1", "a"), " = 1"), ("",))
    text = seq("INSERT (", columns([("f1", "a"), ("f2", "b")]), ") VALUES (", columns([("f1", "1"), ("f2", "2")]), ")")
    assert keys(text) == {"f1", "f2"}
    smaller = without(seq(text, where), "f1")
    assert smaller is not None
    assert render(smaller) == "INSERT (b) VALUES (2)"
    assert without(seq("DROP COLUMN ", Ref("f1", "a")), "f1") is None
    assert without(columns([("f1", "a")]), "f1") is None


def test_each_reduction_is_one_step() -> None:
    part = seq("SELECT ", items(["a", Choice("b + 1", ("b",))]))
    assert {render(each) for each in reductions(part)} == {"SELECT a", "SELECT b + 1", "SELECT a, b"}


def test_places_in_nested_types() -> None:
    inner = Struct((Field("f2", "x", Plain("INT")),))
    kind = Struct((Field("f1", "a b", Array(Map(Plain("STRING"), inner))),))
    assert [render(each.text()) for each in spots(kind)] == [
        "`a b`",
        "`a b`.element",
        "`a b`.element.value",
        "`a b`.element.value.x",
    ]
    [last] = [each for each in spots(kind) if each.field is not None and each.field.name == "x"]
    wider = changed(kind, last.steps, lambda _: Plain("BIGINT"))
    assert [each.type for each in spots(wider)][-1] == Plain("BIGINT")


def test_a_difference_is_made_small() -> None:
    whole = next(made for made in map(history, range(MANY)) if sum("UPDATE «t»" in text for text in texts(made)) >= 2)

    def judge(made: History) -> Difference | None:
        for step, text in enumerate(texts(made)):
            if text.startswith("UPDATE") and any("CREATE" in each for each in texts(made)):
                return Difference(step, "update", text, "rows", "1", "2")
        return None

    found = judge(whole)
    assert found is not None
    small, left = shrunk(whole, found, judge, seconds=20)
    create, update = texts(small)
    assert create.startswith("CREATE TABLE «t» (")
    assert len(keys(small.statements[0].part)) <= 2
    assert update.startswith("UPDATE «t»")
    assert len(update) <= len(found.statement)
    assert "WHERE" not in update
    assert small.settings == ()
    assert "lake.n.t" in program(small, left)
    compile(program(small, left), "program.py", "exec")


def test_another_difference_is_not_taken_for_it() -> None:
    whole = replace(history(1), statements=(Statement("CREATE", "create"), Statement("A", "x"), Statement("B", "x")))

    def judge(made: History) -> Difference | None:
        if "A" not in texts(made):
            return Difference(0, "x", "B", "schema", "", "")
        return Difference(1, "x", "A", "rows", "", "")

    small, left = shrunk(whole, Difference(1, "x", "A", "rows", "", ""), judge, seconds=5)
    assert "A" in texts(small)
    assert left.what == "rows"


def test_seeds_are_chosen_by_the_environment() -> None:
    assert seeds({"SEEDS": "3,7-9"}) == [3, 7, 8, 9]
    assert seeds({"START": "5", "COUNT": "2"}) == [5, 6]
    assert len(seeds({})) == 600


def test_a_difference_is_explained_by_all_that_is_said_of_it() -> None:
    known = Expected("why", "apache/iceberg#1", kind="query|view", statement="FROM", ours="refused", what="refusal")
    assert known.explains("query", "SELECT 1 FROM t", "refusal", "refused: x", "[]")
    assert not known.explains("insert", "SELECT 1 FROM t", "refusal", "refused: x", "[]")
    assert not known.explains("query", "SELECT 1 FROM t", "refusal", "[]", "[]")


def test_what_stays_different_has_a_reason() -> None:
    for each in EXPECTED_DIFFERENCES:
        assert each.reason
        assert each.issue
        assert any((each.statement, each.ours, each.java)), each.reason


def test_defects_are_known_by_what_they_do() -> None:
    assert all(each.value for each in Defect)
    assert frozenset(Defect) >= KNOWN_DEFECTS
