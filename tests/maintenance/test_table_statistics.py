"""Statistics of tables: counts of distinct values against the rows themselves, in a file that is right down to its bytes."""

import struct
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from icefloe import Table, load_catalog
from icefloe.commit import StatisticsChange
from icefloe.errors import InvalidInputError, NoSuchColumnError, NoSuchSnapshotError
from icefloe.formats.theta_codec import THETA_BLOB, decode_sketch
from icefloe.schema import types
from icefloe.sql.procedures import call
from icefloe.verification import silent
from icefloe.versions import ALL_VERSIONS
from tests.maintenance.histories import History, new_table, steps
from tests.maintenance.test_expire_snapshots import FUTURE, on_disk
from tests.puffin_files import decode_puffin
from tests.shared_rows import rows_of


def distinct(values: list[object]) -> int:
    """How many values there are, NaN once and both zeros, but nulls and empty texts."""
    forms = (struct.pack("<d", value) if isinstance(value, float) else value for value in values)
    return len({form for form in forms if form is not None and form != ""})


def stats_files(table: Table) -> set[str]:
    return {path for path in on_disk(table) if path.endswith(".stats")}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_file_and_entry(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    table.append(pa.table({"k": [1, 2, 2, None], "name": ["a", "", None, "a"]}))
    done = table.maintenance.compute_table_stats(columns=["name", "k", "name"])
    [entry] = table.statistics()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert done.distinct_counts == {"name": 1, "k": 2}
    assert table.metadata.resolve(entry.statistics_path) == done.statistics_file
    assert f"/metadata/{snapshot.snapshot_id}-" in str(done.statistics_file)
    data = table.storage.read(str(done.statistics_file))
    footer, blobs = decode_puffin(data, "a.stats")
    assert (entry.file_size_in_bytes, entry.file_footer_size_in_bytes) == (len(data), footer.size)
    numbers = snapshot.snapshot_id, snapshot.sequence_number
    assert [(blob.type, blob.compression_codec, blob.fields, blob.properties) for blob in footer.blobs] == [
        (THETA_BLOB, "zstd", (2,), {"ndv": "1"}),
        (THETA_BLOB, "zstd", (1,), {"ndv": "2"}),
    ]
    assert {(blob.snapshot_id, blob.sequence_number) for blob in footer.blobs} == {numbers}
    assert [(blob.blob_type, blob.fields, blob.properties) for blob in entry.blob_metadata] == [
        (blob.type, blob.fields, blob.properties) for blob in footer.blobs
    ]
    assert [decode_sketch(blob, "a.stats").estimate for blob in blobs] == [1, 2]
    assert table.verify(level="data", progress=silent).clean


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_counts_are_those_of_the_rows(
    version: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    history = History(new_table(tmp_path_factory.mktemp("statistics"), version))
    history.step("append", 0)
    for name, number in data.draw(steps()):
        history.step(name, number)
    table = history.table
    snapshot = data.draw(st.sampled_from(table.snapshots()))
    done = table.maintenance.compute_table_stats(snapshot.snapshot_id)
    rows = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
    expected = {
        field.name: distinct(rows[field.name].to_pylist())
        for field in rows.schema
        if not pa.types.is_struct(field.type)
    }
    assert done.distinct_counts == expected, history.steps
    if "part" in rows.column_names:
        nested = table.maintenance.compute_table_stats(snapshot.snapshot_id, ["part.y", "part.x"])
        parts = [part or {"x": None, "y": None} for part in rows["part"].to_pylist()]
        assert nested.distinct_counts == {
            name: distinct([part[name[5:]] for part in parts]) for name in ("part.y", "part.x")
        }
    assert table.verify(level="data", progress=silent).ok


def test_many_files_and_values(tmp_path: Path) -> None:
    table = new_table(tmp_path, 3)
    for first in range(0, 30_000, 10_000):
        table.append(pa.table({"k": list(range(first, first + 12_000)), "name": ["x"] * 12_000}))
    steps_seen: list[int] = []
    done = table.maintenance.compute_table_stats(progress=lambda step: steps_seen.append(step.done))
    assert abs(done.distinct_counts["k"] - 32_000) < 32_000 * 0.05
    assert done.distinct_counts["name"] == 1
    assert steps_seen


def test_the_file_before_is_deleted(tmp_path: Path) -> None:
    """Java leaves it behind as an orphan."""
    table = new_table(tmp_path, 2)
    table.append(rows_of_k(1))
    first = table.maintenance.compute_table_stats()
    second = table.maintenance.compute_table_stats()
    assert first.statistics_file != second.statistics_file
    assert stats_files(table) == {str(second.statistics_file).removeprefix("file://")}
    table.set_properties({"gc.enabled": "false"})
    third = table.maintenance.compute_table_stats()
    assert len(stats_files(table)) == 2
    assert [file.statistics_path for file in table.statistics()] == [third.statistics_file]


def test_a_file_that_another_entry_names_stays(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    for key in (1, 2):
        table.append(rows_of_k(key))
    old, new = table.snapshots()
    shared = table.maintenance.compute_table_stats(new.snapshot_id)
    [entry] = table.statistics()
    with table.transaction() as tx:
        tx.update_statistics(StatisticsChange((replace(entry, snapshot_id=old.snapshot_id),)))
    table.maintenance.compute_table_stats(new.snapshot_id)
    assert str(shared.statistics_file).removeprefix("file://") in stats_files(table)


def test_no_file_stays_of_a_commit_that_failed(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    for key in (1, 2):
        table.append(rows_of_k(key))
    old = table.snapshots()[0].snapshot_id
    other = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "files")
    ).load_table(table.name())
    other.maintenance.expire_snapshots(older_than=FUTURE, delete_files=False)
    with pytest.raises(NoSuchSnapshotError):
        table.maintenance.compute_table_stats(old)
    assert not stats_files(table)


def test_empty_tables_and_bad_input(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    compute = table.maintenance.compute_table_stats
    assert compute().statistics_file is None
    with pytest.raises(NoSuchColumnError, match="'no'"):
        compute(columns=["no"])
    table.append(rows_of_k(1))
    with pytest.raises(InvalidInputError, match="'part' is of type struct"):
        compute(columns=["part"])
    with pytest.raises(InvalidInputError, match="no columns"):
        compute(columns=[])
    with pytest.raises(InvalidInputError, match="give a list"):
        compute(columns="k")
    with pytest.raises(NoSuchSnapshotError):
        compute(7)
    with table.update_schema() as schema:
        schema.add_column("tags", types.ListType(99, types.StringType()))
    table.append(rows_of_k(2))
    with pytest.raises(InvalidInputError, match="inside of a list"):
        compute(columns=["tags.element"])
    assert not stats_files(table)


def test_procedure(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "files")
    )
    name = ".".join(table.name())
    assert call(catalog, "compute_table_stats", [name]).num_rows == 0
    table.append(rows_of_k(1))
    rows = call(catalog, "compute_table_stats", [name], {"columns": ["k"]}).to_pylist()
    assert rows == [{"statistics_file": file.statistics_path} for file in table.refresh().statistics()]


def rows_of_k(key: int) -> pa.Table:
    """One row."""
    return rows_of(key).rename_columns(["k"])
