"""Tables whose partition column was replaced by one had another type under the same id: what was written before stays readable."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from icefloe import load_catalog
from icefloe.errors import IncompatibleChangeError, ValidationError
from icefloe.inspect import TABLE_NAMES
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows

DAY, NEXT_DAY = dt.date(1970, 1, 8), dt.date(1970, 1, 9)
CASES: dict[str, tuple[str, list[Any], str, list[Any], list[Any]]] = {
    "text, then numbers": ("STRING", ["a", "abcd"], "INT", [1, 2], [None, None]),
    "numbers, then text": ("INT", [1, 2], "STRING", ["a", "b"], ["1", "2"]),
    "longs, then ints": ("BIGINT", [2**40, 2], "INT", [1, 2], [None, 2]),
    "days, then doubles": ("DATE", [DAY, None], "DOUBLE", [7.0, 1.0], [None, None]),
    "numbers, then days": ("INT", [7, 8], "DATE", [DAY, NEXT_DAY], [None, None]),
    "one day, then doubles": ("DATE", [DAY, DAY], "DOUBLE", [7.0, 1.0], [None]),
    "days, then text": ("DATE", [DAY, None], "STRING", ["a", "b"], ["1970-01-08", None]),
}
"""The type and values of before, those of now, and how the type of now shows the values of before."""
TYPES = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DATE": pa.date32(),
    "DOUBLE": pa.float64(),
}


def rows(kind: str, values: list[Any]) -> pa.Table:
    return pa.table({"id": pa.array(range(len(values)), pa.int64()), "p": pa.array(values, TYPES[kind])})


def replaced(case: str, version: int, **properties: str) -> Table:
    """A table with two rows of before in the branch `old` and the tag `then`, and two of now."""
    before, old, now, new, _ = CASES[case]
    catalog = load_catalog("replaced", type="memory")
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t",
        f"id BIGINT, p {before}",
        partition_spec=["p"],
        properties={"format-version": str(version), **properties},
    )
    table.append(rows(before, old))
    table.manage_snapshots().create_branch("old").create_tag("then").commit()
    table = catalog.replace_table("db.t", f"id BIGINT, p {now}", partition_spec=["p"])
    table.append(rows(now, new))
    assert len(table.metadata.partition_specs) == 1
    return table


def partitions(shown: pa.Table) -> list[Any]:
    return sorted((each["p"] for each in shown["partition"].to_pylist()), key=str)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_snapshots_of_before_are_read_and_shown(case: str, version: int) -> None:
    before, old, now, new, shown = CASES[case]
    table = replaced(case, version)
    for name in TABLE_NAMES:
        getattr(table.inspect, name)().validate(full=True)
    assert partitions(table.inspect.all_files()) == sorted([*shown, *new], key=str)
    assert partitions(table.inspect.files()) == sorted(new, key=str)
    first = table.metadata.snapshots[0].snapshot_id
    assert partitions(table.inspect.files(snapshot_id=first)) == sorted(shown, key=str)
    [summary] = [each["partition_summaries"][0] for each in table.inspect.manifests(snapshot_id=first).to_pylist()]
    assert summary["lower_bound"] == str(min(each for each in old if each is not None))
    assert table.scan(ref="then").to_arrow().sort_by("id").to_pylist() == rows(before, old).to_pylist()
    assert table.scan(ref="old", selected_fields=("id",)).count() == 2
    with pytest.raises(IncompatibleChangeError, match="cannot be read"):
        table.scan(ref="old").to_arrow()
    if "days" not in case or "days," in case:
        with pytest.raises(IncompatibleChangeError, match="cannot be read"):
            table.scan(ref="old", selected_fields=("id", "_partition")).to_arrow()
    assert table.scan().to_arrow().sort_by("id").to_pylist() == rows(now, new).to_pylist()
    assert table.verify(level="data").ok


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_filters_of_metadata_tables_ask_what_they_show(case: str, version: int) -> None:
    *_, new, shown = CASES[case]
    table = replaced(case, version)
    for value in {each for each in (*shown, *new) if each is not None}:
        literal = value if isinstance(value, int | float) else f"'{value}'"
        found = table.inspect.all_files(row_filter=f"partition.p = {literal}")
        assert partitions(found) == [each for each in (*shown, *new) if each == value]
    assert table.inspect.all_files(row_filter="partition.p IS NULL").num_rows == shown.count(None)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_the_branch_of_before_goes_on(case: str, version: int) -> None:
    *_, now, new, shown = CASES[case]
    table = replaced(case, version, **{"commit.manifest.min-count-to-merge": "2"})
    table.append(rows(now, new), branch="old")
    at = table.metadata.refs["old"].snapshot_id
    # Merging keeps values of the two types apart.
    assert partitions(table.inspect.files(snapshot_id=at)) == sorted([*shown, *new], key=str)
    table.update_snapshot(branch="old").rewrite_manifests()
    at = table.metadata.refs["old"].snapshot_id
    assert partitions(table.inspect.files(snapshot_id=at)) == sorted([*shown, *new], key=str)
    # A value of now that has the bytes of one of before is another one: nothing of before goes.
    table.delete("p IS NOT NULL AND id >= 0 AND id < 0", branch="old")
    assert table.scan(ref="old", selected_fields=("id",)).count() == 4
    table.overwrite(rows(now, new[:1]), branch="old")
    assert table.scan(ref="old").to_arrow().to_pylist() == rows(now, new[:1]).to_pylist()
    assert table.scan(ref="then").count() == 2
    assert table.verify(level="data").ok


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.DELETE_FILES)])
def test_rows_of_before_are_not_deleted_from_other_partitions(version: int) -> None:
    table = replaced("one day, then doubles", version, **{"write.delete.mode": "merge-on-read"})
    table.append(rows("DOUBLE", [7.0, 7.0]), branch="old")
    with pytest.raises(ValidationError, match="had another type"):
        table.delete("id = 0", branch="old")
    assert table.scan(ref="old", selected_fields=("id",)).count() == 4


def test_bounds_of_before_are_not_taken_for_those_of_now() -> None:
    catalog = load_catalog("bounds", type="memory")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id BIGINT, v BIGINT")
    table.append(pa.table({"id": [1, 2], "v": [4607182418800017408, 4611686018427387904]}))  # 1.0 and 2.0 as doubles
    table.manage_snapshots().create_branch("old").commit()
    table = catalog.replace_table("db.t", "id BIGINT, v DOUBLE")
    with pytest.raises(IncompatibleChangeError, match="cannot be read"):
        table.delete("v >= 1.0", branch="old")
    with pytest.raises(IncompatibleChangeError, match="cannot be read"):
        table.scan("v > 5.0", ref="old").to_arrow()
    assert table.scan(ref="old", selected_fields=("id",)).count() == 2
