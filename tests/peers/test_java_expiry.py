"""Expiry and removal of orphans, side by side: two tables made alike by Java Iceberg, one cleaned by it and one by us."""

import datetime as dt
import os
import re
from collections import Counter
from pathlib import Path

import pytest

from icefloe.table import Table
from tests.peers.lake import SQL, Lake

COUNTS = (
    "deleted_data_files_count",
    "deleted_position_delete_files_count",
    "deleted_equality_delete_files_count",
    "deleted_manifest_files_count",
    "deleted_manifest_lists_count",
    "deleted_statistics_files_count",
)
LIMIT = "TIMESTAMP'2100-01-01 00:00:00'"
FUTURE = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
OLD = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
LONG_AGO = dt.datetime(2021, 1, 1, tzinfo=dt.UTC)
PLANTED = (
    "data/orphan.parquet",
    "data/_k=0/x.parquet",
    "data/other=1/deep/er/x.parquet",
    "data/deletes.puffin",
    "data/a b%20c+é.parquet",
    "data/_hidden.parquet",
    "data/.crc",
    "data/_temporary/0/x.parquet",
    "_k=7/x.parquet",
    "metadata/snap-1-1-x.avro",
    "metadata/x-m0.avro",
    "metadata/x.stats",
    "metadata/00077-untracked.metadata.json",
    "top.parquet",
)


def folder_of(table: Table) -> Path:
    return Path(re.sub("^file:/*", "/", str(table.location())))


def names_in(table: Table) -> set[str]:
    folder = folder_of(table)
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def kinds_in(table: Table) -> Counter[str]:
    """How many files of each kind there are, but for checksums of Hadoop's and old metadata files."""
    names = (name for name in names_in(table) if not name.endswith((".crc", ".metadata.json")))
    return Counter("list" if "/snap-" in name else name.rpartition(".")[2] for name in names)


def make(lake: Lake, version: int) -> Table:
    """A table with a history of every kind."""
    name, there = lake.made_by_java(version, "id BIGINT, _k INT", "PARTITIONED BY (_k)", "merge-on-read")
    run = lake.java.sql
    for first in (0, 10, 20):
        run(f"INSERT INTO {there} VALUES {', '.join(f'({first + i}, {i % 2})' for i in range(6))}")
    run(f"ALTER TABLE {there} CREATE TAG old")
    run(f"DELETE FROM {there} WHERE id IN (1, 11)")
    run(f"ALTER TABLE {there} CREATE BRANCH side")
    run(f"INSERT INTO {there}.branch_side VALUES (90, 0)")
    run(f"DELETE FROM {there} WHERE id IN (3, 13, 22)")
    run(f"CALL {SQL}.system.compute_table_stats('{name}')")
    run(f"INSERT OVERWRITE {there} SELECT id + 100, _k FROM {there} WHERE _k = 0")
    run(f"CALL {SQL}.system.rewrite_manifests('{name}')")
    run(f"INSERT INTO {there} VALUES (99, 1)")
    run(f"ALTER TABLE {there} DROP BRANCH side")
    return lake.sql_catalog.load_table(name)


@pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_expiry_deletes_the_same_files(lake: Lake, version: int) -> None:
    theirs, ours = make(lake, version), make(lake, version)
    assert kinds_in(theirs) == kinds_in(ours)
    for retained in (3, 1):
        name = ".".join(theirs.name())
        arguments = f"table => '{name}', older_than => {LIMIT}, retain_last => {retained}"
        (row,) = lake.java.rows(f"CALL {SQL}.system.expire_snapshots({arguments})")
        plan = ours.maintenance.expire_snapshots(older_than=FUTURE, retain_last=retained, dry_run=True)
        done = ours.maintenance.expire_snapshots(older_than=FUTURE, retain_last=retained)
        assert done.counts == plan.counts == tuple(row[name] for name in COUNTS)
        assert len(ours.snapshots()) == len(theirs.refresh().snapshots())
        assert kinds_in(theirs) == kinds_in(ours)
        for table in (theirs, ours):
            lake.same(table)
            lake.same(table, ref="old")
            assert table.verify(level="data").ok
    assert sum(done.counts) > 0


def test_the_same_files_are_orphans(lake: Lake) -> None:
    theirs, ours = make(lake, 2), make(lake, 2)
    shown = []
    for table in (theirs, ours):
        folder = folder_of(table)
        for name in PLANTED:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            metadata = Path(re.sub("^file:/*", "/", str(table.metadata_location)))
            path.write_bytes(metadata.read_bytes() if name.endswith(".json") else b"xyz")
        # All files are old, those that are needed, too.
        for name in names_in(table):
            os.utime(folder / name, (OLD.timestamp(), OLD.timestamp()))
        if table is theirs:
            arguments = f"table => '{'.'.join(table.name())}', older_than => TIMESTAMP'2021-01-01 00:00:00'"
            rows = lake.java.rows(f"CALL {SQL}.system.remove_orphan_files({arguments})")
            locations = [row["orphan_file_location"] for row in rows]
        else:
            done = table.maintenance.remove_orphan_files(LONG_AGO)
            locations = done.orphan_file_location.to_pylist()
        shown.append({re.sub("^file:/*", "/", each).removeprefix(f"{folder}/") for each in locations})
        lake.same(table.refresh())
        assert table.verify(level="data").ok
    assert shown[0] == shown[1] == set(PLANTED) - {each for each in PLANTED if re.search(r"/(\.|_(?!k=))", each)}
    left = [{name for name in names_in(table) if name in PLANTED} for table in (theirs, ours)]
    assert left[0] == left[1] == set(PLANTED) - shown[0]
