"""Removal of orphans: all that nothing needs goes, whatever it is; nothing goes that anybody may need."""

import datetime as dt
import json
import os
import posixpath
import random
import re
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from icefloe import Table, load_catalog
from icefloe.data import WriteRequest, write_data_files
from icefloe.errors import InvalidInputError, InvalidPropertyError, ValidationError
from icefloe.maintenance.orphans.keys import NeededPaths, Prefixes
from icefloe.progress import Progress
from icefloe.sql.procedures import call
from icefloe.versions import ALL_VERSIONS
from tests.catalog import faults
from tests.catalog.faults import Wire, wired
from tests.maintenance.test_expiry_files import (
    FUTURE,
    NAME,
    check_exact,
    history,
    load_of,
    needed,
    new_catalog,
    new_table,
    run_killed,
    stored,
)
from tests.maintenance.test_others_at_work import Meeting
from tests.shared_rows import ids_in, rows_of

Result = TypeVar("Result")
ORPHANS = (
    "data/00000-0-x.parquet",
    "data/p=1/q=2/x.parquet",
    "data/deletes.parquet",
    "data/x.puffin",
    "metadata/snap-1-1-x.avro",
    "metadata/x-m0.avro",
    "metadata/x.stats",
    "loose.parquet",
    "data/a%20b c+é.parquet",
)
HIDDEN = ("data/_SUCCESS", "data/.x.crc", "data/_temporary/0/x.parquet", "metadata/.hidden", "_x/y/z")


def plant(table: Table, *names: str) -> set[str]:
    locations = {f"{table.location()}/{name}" for name in names}
    for location in locations:
        table.storage.write(location, b"xyz")
    return locations


def worn(version: int = 3) -> Table:
    table = new_table(version)
    table.append(rows_of(1, 2, 3))
    table.delete("id = 1")
    table.manage_snapshots().create_tag("kept").commit()
    files = write_data_files(rows_of(9), WriteRequest(table.metadata, table.storage))
    table.update_snapshot(stage_only=True).fast_append(files)
    table.maintenance.compute_table_stats()
    table.overwrite(rows_of(4))
    return table


def removed(table: Table, location: str | None = None) -> set[str]:
    """What a removal of files of any age says that it deleted."""
    done = table.maintenance.remove_orphan_files(FUTURE, location, force=True)
    return set(done.orphan_file_location.to_pylist())


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_all_orphans_go_and_nothing_else(version: int) -> None:
    table = worn(version)
    orphans, hidden = plant(table, *ORPHANS), plant(table, *HIDDEN)
    untracked = f"{table.location()}/metadata/00099-old.metadata.json"
    table.storage.write(untracked, table.storage.read(str(table.metadata_location)))
    before = stored(table)
    plan = table.maintenance.remove_orphan_files(FUTURE, force=True, dry_run=True)
    assert set(plan.orphan_file_location.to_pylist()) == orphans | {untracked}
    assert stored(table) == before
    assert (plan.count, json.loads(plan.to_json())["bytes"]) == (len(orphans) + 1, plan.bytes)
    assert f"{plan.bytes:,} bytes" in str(plan)
    # What is planted later was not shown, and stays.
    late = plant(table, "data/late.parquet")
    done = plan.run()
    assert (done.count, done.bytes, done.failed) == (plan.count, plan.bytes, ())
    assert stored(table) == (before - orphans) | late
    assert not table.storage.exists(untracked)
    assert removed(table) == late
    assert removed(table) == set()
    assert stored(table) == needed(table) | hidden
    assert table.verify(level="data").ok
    assert (ids_in(table), ids_in(table, ref="kept")) == ([4], [2, 3])


def test_partitions_whose_names_look_hidden_are_looked_at() -> None:
    table = new_catalog().create_table(NAME, "id BIGINT, _x BIGINT", partition_spec=["_x"])
    table.append(pa.table({"id": [1], "_x": [7]}))
    plant(table, "data/_y=7/stays.parquet")
    orphans = plant(table, "data/_x=7/goes.parquet")
    assert removed(table) == orphans
    assert table.scan().count() == 1


def on_disk(folder: Path) -> Table:
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "files"))
    catalog.create_namespace_if_not_exists("db")
    return catalog.create_table_if_not_exists(NAME, "id BIGINT")


def test_only_files_that_are_old_enough_go(tmp_path: Path) -> None:
    table = on_disk(tmp_path)
    table.append(rows_of(1))
    now = dt.datetime.now(dt.UTC)
    for name, hours in (("young", 70), ("old", 74)):
        (path,) = (each.removeprefix("file://") for each in plant(table, f"data/{name}.parquet"))
        moment = (now - dt.timedelta(hours=hours)).timestamp()
        os.utime(path, (moment, moment))
    remove = table.maintenance.remove_orphan_files
    assert [Path(each).stem for each in remove().orphan_file_location.to_pylist()] == ["old"]
    assert remove(older_than=now - dt.timedelta(hours=71)).count == 0
    assert remove(older_than=now - dt.timedelta(hours=69)).count == 1


def test_what_could_delete_files_of_others_is_refused(tmp_path: Path) -> None:
    table = on_disk(tmp_path)
    table.append(rows_of(1))
    plant(table, "data/x.parquet")
    before = stored(table)
    remove = table.maintenance.remove_orphan_files
    warehouse = f"file://{tmp_path}/files"
    with pytest.raises(InvalidInputError, match="24 hours"):
        remove(older_than=dt.datetime.now(dt.UTC) - dt.timedelta(hours=23))
    with pytest.raises(InvalidInputError, match="does not belong to the table"):
        remove(location=f"{warehouse}/db/elsewhere")
    for root in ("/", "file:///"):
        with pytest.raises(InvalidInputError, match="root of the storage"):
            remove(location=root, force=True)
    for around in (warehouse, f"file:{tmp_path}/files/", str(tmp_path)):
        with pytest.raises(InvalidInputError, match="contains the warehouse"):
            remove(location=around, force=True)
    with pytest.raises(InvalidInputError, match="max_concurrent_deletes"):
        remove(max_concurrent_deletes=0)
    with pytest.raises(InvalidInputError, match="'error', 'ignore' or 'delete'"):
        remove(prefix_mismatch_mode="warn")
    with pytest.raises(InvalidInputError, match="equal_schemes"):
        remove(equal_schemes={"": "s3"})
    table.set_properties({"gc.enabled": "false"})
    with pytest.raises(InvalidPropertyError, match=r"gc\.enabled"):
        remove(FUTURE, force=True)
    assert before == stored(table)
    table.set_properties({"gc.enabled": "true"})
    assert removed(table, location=f"{table.location()}/metadata") == set()
    assert len(removed(table, location=f"{table.location()}/data/")) == 1


def test_another_table_beneath_the_location_is_refused(tmp_path: Path) -> None:
    table = on_disk(tmp_path)
    table.append(rows_of(1))
    plant(table, "data/x.parquet")
    other = load_of(table).create_table("db.inner", "id BIGINT", location=f"{table.location()}/inner")
    other.append(rows_of(2))
    with pytest.raises(ValidationError, match=r"table lake\.db\.inner is also under"):
        removed(table)
    # Its name is gone, and its metadata tells all the same; so does that of another catalog.
    load_of(table).drop_table("db.inner")
    with pytest.raises(ValidationError, match="is the metadata of another table"):
        removed(table)
    assert ids_in(other) == [2]
    for file in table.storage.list_prefix(f"{table.location()}/inner/metadata"):
        if file.location.endswith(".metadata.json"):
            table.storage.write(file.location, b"{ not metadata")
    # Nobody knows whose it is: it stays.
    assert not any(location.endswith(".metadata.json") for location in removed(table))


def test_a_file_list_takes_the_place_of_the_listing(tmp_path: Path) -> None:
    table = on_disk(tmp_path)
    table.append(rows_of(1))
    (orphan,) = plant(table, "data/x.parquet")
    plant(table, "data/not-listed.parquet")
    (kept,) = (task.file.file_path for task in table.scan().plan_files())
    old, young = dt.datetime(2020, 1, 1), dt.datetime(2100, 1, 1)
    rows = {
        "file_path": [orphan, kept, f"{orphan}2", "file:///elsewhere/x", None],
        "last_modified": pa.array([old, old, young, old, old], pa.timestamp("us")),
    }
    remove = table.maintenance.remove_orphan_files
    for files in (pa.table(rows), pa.table(rows).to_reader(), iter(pa.table(rows).to_batches(1))):
        table.storage.write(orphan, b"xyz")
        assert remove(file_list=files).orphan_file_location.to_pylist() == [orphan]
        assert not table.storage.exists(orphan)
    with pytest.raises(InvalidInputError, match="it must have file_path"):
        remove(file_list=pa.table({"path": ["x"]}))
    assert ids_in(table) == [1]


def test_runs_can_be_limited_and_results_too() -> None:
    table = new_table()
    table.append(rows_of(1))
    planted = plant(table, *(f"data/{number:04d}.parquet" for number in range(2_500)))
    told: list[Progress] = []
    first = table.maintenance.remove_orphan_files(FUTURE, force=True, max_files=1_100, progress=told.append)
    assert first.count == first.orphan_file_location.length() == 1_100
    assert {each.stage for each in told} == {"list", "delete"}
    assert len(stored(table) & planted) == 1_400
    rest = table.maintenance.remove_orphan_files(FUTURE, force=True, max_concurrent_deletes=1, stream_results=True)
    assert rest.count == 1_400
    check_exact(table)


def prefixes() -> st.SearchStrategy[str]:
    return st.sampled_from(
        [
            "",
            "file:",
            "file://",
            "s3://b",
            "S3A://b",
            "s3n://B",
            "s3://c",
            "hdfs:",
            "hdfs://n1",
            "hdfs://n2:8020",
            "x://y",
        ]
    )


PATHS = st.text(st.sampled_from("ab%/."), min_size=1, max_size=4).map(lambda text: f"/t/{text}")
EQUAL = st.sampled_from([({}, {}), ({"x,hdfs": "s3"}, {}), ({}, {"n1,N2:8020": "n", "c": "b"})])


def plain(location: str, equal: tuple[dict[str, str], dict[str, str]], *, listed: bool) -> tuple[str, str, str]:
    """Scheme, authority and path by the plain definition."""
    match = re.fullmatch(r"(?:([A-Za-z0-9]+):)?(?://([^/]*))?(/.*)", location)
    assert match is not None
    scheme, authority = (match[1] or "").lower(), (match[2] or "").lower()
    for names, chosen in ({"s3a,s3n": "s3"} | equal[0]).items():
        scheme = chosen if scheme in names.split(",") else scheme
    for names, chosen in equal[1].items():
        authority = chosen if authority in names.lower().split(",") else authority
    if listed and not scheme:
        scheme = "file"
    return scheme, authority, "/" + posixpath.normpath(match[3]).lstrip("/")


@given(
    known=st.lists(st.tuples(prefixes(), PATHS), max_size=8),
    listed=st.lists(st.tuples(prefixes(), PATHS), max_size=12),
    equal=EQUAL,
)
@settings(max_examples=60)
def test_files_are_compared_as_java_does(
    known: list[tuple[str, str]], listed: list[tuple[str, str]], equal: tuple[dict[str, str], dict[str, str]]
) -> None:
    paths = NeededPaths(Prefixes.of(*equal))
    names = ["".join(each) for each in known]
    paths.add(pa.array(names, pa.string()))
    seen = ["".join(each) for each in listed]
    is_needed, is_conflicting = paths.compare(pa.array(seen, pa.string()))
    valid = [plain(name, equal, listed=False) for name in names]
    for location, has, conflicts in zip(seen, is_needed.tolist(), is_conflicting.tolist(), strict=True):
        scheme, authority, path = plain(location, equal, listed=True)
        same = [(s in ("", scheme), a in ("", authority)) for s, a, p in valid if p == path]
        assert has == any(s and a for s, a in same), location
        assert conflicts == (bool(same) and not has), location


@pytest.mark.parametrize("mode", ["error", "ignore", "DELETE"])
def test_another_scheme_is_an_error_unless_the_caller_knows_better(mode: str, tmp_path: Path) -> None:
    table = on_disk(tmp_path)
    table.append(rows_of(1))
    (kept,) = (task.file.file_path for task in table.scan().plan_files())
    folder = str(table.location()).removeprefix("file://")
    path = kept.removeprefix("file://")
    time = pa.array([dt.datetime(2020, 1, 1)] * 2, pa.timestamp("us"))
    files = pa.table({"file_path": [f"hdfs://nn{path}", f"hdfs://nn{folder}/x"], "last_modified": time})
    arguments = {"location": f"hdfs://nn{folder}", "file_list": files, "force": True, "prefix_mismatch_mode": mode}

    def plan(**more: object) -> list[str]:
        shown = table.maintenance.remove_orphan_files(FUTURE, dry_run=True, **(arguments | more))
        return [str(each) for each in shown.orphan_file_location.to_pylist()]

    match mode:
        case "error":
            with pytest.raises(ValidationError, match=r"hdfs://nn and file://.*prefix_mismatch_mode"):
                plan()
        case "ignore":
            assert plan() == [f"hdfs://nn{folder}/x"]
        case _:
            assert plan() == [f"hdfs://nn{path}", f"hdfs://nn{folder}/x"]
    equal = plan(equal_schemes={"hdfs": "file"})
    # The metadata leaves the authority out, which is then any.
    assert equal == [f"hdfs://nn{folder}/x"]


def test_a_file_that_is_committed_meanwhile_stays() -> None:
    rng = random.Random(18)
    version = rng.choice(ALL_VERSIONS)
    # But for the last step: once the pointer was looked at for the last time, the delete is under way.
    count = met_at(10_000, version) - 1
    for at in (*rng.sample(range(count), 2), *range(count - 3, count)):
        met_at(at, version)


def met_at(at: int, version: int) -> int:
    """Commit a file, as old as any orphan, at a step of a removal; the number of its steps."""
    table = new_table(version)
    table.append(rows_of(1))
    (file,) = write_data_files(rows_of(2), WriteRequest(table.metadata, table.storage))
    plant(table, *ORPHANS)

    def commit() -> None:
        load_of(table).load_table(NAME).add_files([file.file_path])

    wire = Meeting(at, commit)
    removing = wired(load_of(table), wire).load_table(NAME)
    wire.begin()
    removed(removing)
    assert ids_in(table.refresh()) == ([1] if at >= len(wire.steps) else [1, 2]), at
    check_exact(table)
    return len(wire.steps)


@pytest.mark.parametrize("fault", [faults.KILL_BEFORE, faults.KILL_AFTER])
def test_a_run_that_was_killed_has_deleted_orphans_only(fault: faults.Fault) -> None:
    table = worn(random.Random(3).choice(ALL_VERSIONS))
    planted = plant(table, *ORPHANS)
    wire = Wire(fault, 0)
    removing = wired(load_of(table), wire).load_table(NAME)
    wire.begin()
    with pytest.raises(faults.Killed):
        removed(removing)
    assert planted & stored(table) == (set() if fault.after else planted)
    removed(table)
    check_exact(table)


def test_files_of_a_killed_expiry_without_its_metadata_are_orphans() -> None:
    table = history(3)
    run_killed(table, faults.KILL_AFTER, 3)
    removed(table)
    check_exact(table)


def test_the_procedure_has_the_arguments_and_the_result_of_java() -> None:
    table = new_table()
    table.append(rows_of(1))
    (orphan,) = plant(table, "data/x.parquet")
    old, catalog = dt.datetime(2020, 1, 1), load_of(table)
    empty = call(
        catalog, "remove_orphan_files", [NAME, old, f"{table.location()}/data", False, 2, None, {"a,b": "c"}, {}]
    )
    assert (empty.num_rows, empty.schema) == (0, pa.schema([("orphan_file_location", pa.string())]))
    named = {"table": NAME, "older_than": old, "dry_run": True, "prefix_listing": True, "stream_results": True}
    assert call(catalog, "remove_orphan_files", [], named | {"prefix_mismatch_mode": "IGNORE"}).num_rows == 0
    with pytest.raises(InvalidInputError, match="24 hours"):
        call(catalog, "remove_orphan_files", [NAME, dt.datetime(2100, 1, 1)])
    with pytest.raises(InvalidInputError, match="needs Spark"):
        list(call(catalog, "remove_orphan_files", [], {"table": NAME, "file_list_view": "v"}))
    assert table.storage.exists(orphan)
