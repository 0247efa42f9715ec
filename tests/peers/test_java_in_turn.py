"""Java Iceberg and we change one table by turns, through one SQLite catalog; both read the same after each change."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from icefloe.schema.types import LongType, StringType
from icefloe.table import Table
from icefloe.verification import Code
from icefloe.versions import Feature, allows
from tests.peers.java import JAVA_VERSIONS
from tests.peers.lake import MODES, Lake, row_level

LINEAGE = ("*", "_row_id", "_last_updated_sequence_number")
KEPT = 20
"""Rows that no round touches."""


def rows(table: Table, *ids: int, name: str) -> Any:
    """Rows of the current columns."""
    columns = {"id": pa.array(ids, pa.int64()), "name": [name] * len(ids), "n": pa.array(ids, pa.int32())}
    more = {field.name: pa.nulls(len(ids), pa.string()) for field in table.schema().fields[3:]}
    found = pa.table(columns | more)
    kind = pa.int64() if isinstance(table.schema().find_type("n"), LongType) else pa.int32()
    return found.set_column(2, "n", found["n"].cast(kind))


@dataclass(frozen=True)
class Turn:
    """One change of each kind by both, and what it makes of the names by id."""

    title: str
    ours: Callable[[Table, int], object]
    theirs: Callable[[Table, int], str]
    expected: Callable[[dict[int, str], int], object]


def ours_evolves(table: Table, number: int) -> None:
    with table.update_schema() as update:
        update.add_column(f"c{number}", StringType())
    with table.update_spec() as spec:
        spec.add_field("name", "truncate[1]")


TURNS = (
    Turn(
        "append",
        lambda table, k: table.append(rows(table, *range(k, k + 6), name="new")),
        lambda table, k: (
            "INSERT INTO {} (id, name, n) VALUES " + ", ".join(f"({i}, 'new', 1)" for i in range(k, k + 6))
        ),
        lambda names, k: names.update(dict.fromkeys(range(k, k + 6), "new")),
    ),
    Turn(
        "delete",
        lambda table, k: table.delete(f"id in ({k}, {k - 10})"),
        lambda table, k: f"DELETE FROM {{}} WHERE id IN ({k}, {k - 10})",
        lambda names, k: [names.pop(i, None) for i in (k, k - 10)],
    ),
    Turn(
        "merge",
        lambda table, k: table.upsert(rows(table, k + 1, k - 9, k + 7, name="merged"), join_cols=["id"]),
        lambda table, k: (
            f"MERGE INTO {{}} t USING (SELECT explode(array({k + 1}L, {k - 9}L, {k + 7}L)) AS id) s ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET name = 'merged'"
            " WHEN NOT MATCHED THEN INSERT (id, name, n) VALUES (s.id, 'merged', 1)"
        ),
        lambda names, k: names.update(dict.fromkeys((k + 1, k - 9, k + 7), "merged")),
    ),
)


ROUNDS = 4
MORE_ROUNDS = 10


@pytest.mark.cell(direction="in turn", peer="java", scenario="append, delete, merge and evolve, then Java rewrites")
@pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(MORE_ROUNDS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("version", JAVA_VERSIONS)
def test_changes_by_turns(lake: Lake, version: int, rounds: int) -> None:
    modes = MODES if allows(version, Feature.DELETE_FILES) else MODES[:1]
    table = lake.create(version, "id long, name string, n int", properties=row_level(modes[-1]))
    there = lake.their_name(table)
    names: dict[int, str] = {}
    columns = LINEAGE if allows(version, Feature.ROW_LINEAGE) else ("*",)

    def check(title: str) -> None:
        found = lake.same(table.refresh(), columns=columns)
        assert {each["id"]: each["name"] for each in found} == names, title
        if columns is LINEAGE:
            assert len({each["_row_id"] for each in found}) == len(found), title

    table.append(rows(table, *range(1000, 1000 + KEPT), name="kept"))
    names.update(dict.fromkeys(range(1000, 1000 + KEPT), "kept"))
    for number in range(rounds):
        for place, turn in enumerate(TURNS):
            is_ours = (number + place) % 2 == 0
            if is_ours:
                turn.ours(table, number * 10)
            else:
                lake.java.sql(turn.theirs(table, number * 10).format(there))
                table.refresh()
            turn.expected(names, number * 10)
        check(f"round {number}")
        if number == 0:
            ours_evolves(table, number)
        elif number == 1:
            lake.java.sql(f"ALTER TABLE {there} ALTER COLUMN n TYPE BIGINT")
            lake.java.sql(f"ALTER TABLE {there} ADD PARTITION FIELD bucket(2, id)")
            lake.java.sql(f"ALTER TABLE {there} SET TBLPROPERTIES ({copy_on_write()})")
            table.refresh()
        elif number == 2:
            table.set_properties(row_level(modes[-1]))
    lake.java.sql(f"CALL peers.system.rewrite_data_files(table => '{'.'.join(table.name())}')")
    check("rewritten by Java")
    report = table.verify(level="data")
    # Java's rewrite leaves position deletes behind that reach nothing; deletion vectors go with their files.
    left = {Code.DELETE_DANGLING} if allows(version, Feature.NEW_POSITION_DELETE_FILES) else set()
    assert report.codes == left, str(report)


def copy_on_write() -> str:
    """The mode as a list of SQL properties."""
    return ", ".join(f"'{key}'='{value}'" for key, value in row_level(MODES[0]).items())


@pytest.mark.parametrize("version", JAVA_VERSIONS)
def test_handles_that_are_behind_catch_up(lake: Lake, version: int) -> None:
    """An append of ours on what was current before Java committed is tried again on what is."""
    table = lake.create(version, "id long, name string, n int")
    lake.java.sql(f"INSERT INTO {lake.their_name(table)} VALUES (1, 'a', 1)")
    table.append(rows(table, 2, name="b"))
    assert [each["id"] for each in lake.same(table)] == [1, 2]
