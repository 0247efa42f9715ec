"""How scenarios are read, states and rows compared, and the page written: without an engine."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

from tests.peers.page import END, START
from tests.peers.sql.normal import normal, rows_of
from tests.peers.sql.page import Result, sql_page_with
from tests.peers.sql.scenario import Expected, Run, filled, read_file, with_snapshots
from tests.peers.sql.state import Counts, State

TEXT = """-- words about the file
-- runs: v1 v2-mor

-- name: one
-- set: spark.sql.ansi.enabled=false
CREATE TABLE $t (id INT) $props;
-- differs v2-mor: rows, refs | java | a reason
INSERT INTO $t
VALUES (1);
-- name: two
-- runs: v3-cow
SELECT 1;
-- differs: verify.java | choice | another
"""


def test_a_file_is_scenarios_with_runs_settings_and_known_differences(tmp_path: Path) -> None:
    path = tmp_path / "some.sql"
    path.write_text(TEXT)
    one, two = read_file(path)
    assert (one.file, one.name, [each.title for each in one.runs]) == ("some", "one", ["v1", "v2-mor"])
    assert one.settings == {"spark.sql.ansi.enabled": "false"}
    assert one.statements == ("CREATE TABLE $t (id INT) $props", "INSERT INTO $t\nVALUES (1)")
    assert one.steps[1].of(one.runs[0]) == ()
    [expected] = one.steps[1].of(one.runs[1])
    assert expected == Expected(("rows", "refs"), "java", "a reason", ("v2-mor",))
    assert expected.covers("refs.b")
    assert not expected.covers("counts.s1")
    assert [each.title for each in two.runs] == ["v3-cow"]
    assert two.steps[-1].text is None
    assert two.steps[-1].expected[0].reason == "another"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;\n", "twice"),
        ("-- name: a\nSELECT 1\n", "no `;`"),
        ("-- name: a\n-- runs: v2-both\nSELECT 1;\n", "is no run"),
        ("-- name: a\n-- differs: rows | whim | because\nSELECT 1;\n", "a difference is"),
        ("-- set: a=b\n", "before the first name"),
    ],
)
def test_a_file_that_is_wrong_says_so(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "some.sql"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_file(path)


def test_placeholders() -> None:
    run = Run(2)
    assert filled("CREATE TABLE $t $props('a'='b')", run, "lake.n1") == (
        "CREATE TABLE lake.n1.t TBLPROPERTIES ('format-version'='2', 'a'='b')"
    )
    assert filled("SELECT * FROM $db.u, $t.files", run, "lake.n1") == "SELECT * FROM lake.n1.u, lake.n1.t.files"
    known = {("t", 1): (77, 0), ("u", 2): (88, 1500)}
    text = with_snapshots("$s1 $u:s2 $u:ms2 '$u:at2'", lambda table, place: known[table, place])
    assert text == "77 88 1500 '1970-01-01 00:00:01.500'"


def test_rows_are_the_same_only_if_values_and_types_are() -> None:
    def rows(values: list[object], kind: pa.DataType) -> object:
        return rows_of(pa.table([pa.array(values, kind)], names=["x"]))

    assert rows([float("nan")], pa.float64()) == rows([float("nan")], pa.float64())
    assert rows([0.0], pa.float64()) != rows([-0.0], pa.float64())
    assert rows([1], pa.int32()) != rows([1], pa.int64())
    assert rows([None], pa.int32()) != rows([0], pa.int32())
    assert rows(["a"], pa.large_string()) == rows(["a"], pa.string())
    struct = pa.struct([("a", pa.int32())])
    assert rows([None], struct) != rows([{"a": None}], struct)
    moment = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    assert rows([moment], pa.timestamp("us", "UTC")) == rows([moment], pa.timestamp("us", "Asia/Tokyo"))
    assert rows([moment], pa.timestamp("us", "UTC")) != rows([moment], pa.timestamp("us"))
    assert rows([[1], None], pa.list_(pa.int32())) != rows([[1], []], pa.list_(pa.int32()))
    variant = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x07"}
    kind = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    assert rows([variant], kind).values == (("variant 7",),)  # type: ignore[attr-defined]  # an object to the helper


def test_counts_of_another_layout_are_the_same_if_the_rows_are() -> None:
    def state(*counts: dict[str, int]) -> State:
        return State("x", {"counts": {f"s{place}": Counts(each) for place, each in enumerate(counts, 1)}})

    dropped = {"added-records": 1, "deleted-records": 2, "removed-position-deletes": 1, "total-records": 2}
    marked = {
        "added-records": 1,
        "added-position-deletes": 2,
        "removed-position-deletes": 1,
        "total-records": 4,
        "total-position-deletes": 2,
    }
    assert not state(dropped).differences(state(marked))
    [(part, _)] = state(dropped).differences(state({**marked, "added-records": 2}))
    assert part == "counts.s1"
    copied = {"added-records": 5, "deleted-records": 5, "total-records": 9}
    less_copied = {"added-records": 2, "deleted-records": 2, "total-records": 9}
    assert state(copied).differences(state(less_copied))
    files = {"added-records": 9, "added-data-files": 1, "total-records": 9}
    assert not state(files, copied).differences(state({**files, "added-data-files": 2}, less_copied))


def test_a_script_is_one_statement_until_its_end(tmp_path: Path) -> None:
    path = tmp_path / "some.sql"
    path.write_text("-- name: one\nBEGIN\n  SELECT 1;\n  BEGIN SELECT 2; END;\nEND;\nSELECT 3;\n")
    [one] = read_file(path)
    assert one.statements == ("BEGIN\n  SELECT 1;\n  BEGIN SELECT 2; END;\nEND", "SELECT 3")


def test_the_page_has_counts_and_every_difference_by_name() -> None:
    results = [
        Result("update", "one", "v1", True),
        Result("update", "two", "v2", True, (("java", "an issue"),)),
        Result("update", "two", "v3", True, (("java", "an issue"),)),
        Result("delete", "three", "v3", False),
    ]
    page = sql_page_with(f"words {START} old {END} more", results, "Java 9", dt.date(2026, 1, 2))
    assert page.startswith(f"words {START}\n\nJava 9; seen on 2026-01-02.")
    assert page.endswith(f"{END} more")
    assert "| update | 2 | 3 | 1 | 2 | 0 |" in page
    assert "| all | 3 | 4 | 1 | 2 | 1 |" in page
    assert "| update | two | v2 v3 | an issue |" in page
    assert "- delete: three, v3" in page


def test_strings_that_are_no_utf_8_are_compared() -> None:
    column = pa.array([b"\xffx", None, b"\xfex"]).view(pa.string())
    assert normal(column) == ["\\xffx", None, "\\xfex"]
