"""Commands that change tables: what they do, what they ask before, and what --dry-run leaves alone."""

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefloe
from icefloe.versions import ALL_VERSIONS
from tests.cli.conftest import Run, orders


def table_of(name: str = "shop.orders") -> icefloe.Table:
    return icefloe.load_catalog("icefloe").load_table(name)


def test_tables_come_and_go(own_lake: Path, run: Run) -> None:
    assert run("create", "namespace", "new", "-p", "owner=bob").out == "Created namespace: new\n"
    assert run("properties", "get", "namespace", "new", "owner").out == "bob\n"
    made = (
        "create",
        "table",
        "new.t",
        "--schema",
        "id long, ts timestamp",
        "--partition",
        "days(ts)",
        "--sort",
        "id desc",
    )
    assert run(*made, "--format-version", "3").out == "Created table: new.t\n"
    table = table_of("new.t")
    assert (table.format_version, table.spec().fields[0].name) == (3, "ts_day")
    assert "already exists" in run(*made, code=4).err
    run("create", "table", "new.copy", "--like", "shop.orders")
    assert table_of("new.copy").schema().column_names == table_of().schema().column_names
    assert table_of("new.copy").format_version == 3
    assert "give exactly one of --schema, --like and --from" in run("create", "table", "new.x", code=2).err
    run("create", "view", "new.v", "--sql", "SELECT 1", "--schema", "a int")
    assert run("list", "new").out == "new.copy\nnew.t\nnew.v\n"
    assert run("rename", "new.t", "new.u").out == "Renamed table from new.t to new.u\n"
    location = str(table_of("new.u").metadata_location)
    assert f"to undo: icefloe register new.u {location}" in run("drop", "table", "new.u").err
    run("register", "new.u", location)
    assert table_of("new.u").metadata_location == location
    assert run("register", "new.u", location, code=4).err
    assert "pass --yes to confirm" in run("register", "--overwrite", "new.u", location, code=4).err
    run("drop", "view", "new.v")
    assert run("drop", "namespace", "new", code=4).out == ""
    assert (
        run("drop", "table", "--purge", "--dry-run", "new.u").out == "new.u would be dropped, and its files deleted\n"
    )
    assert run("drop", "table", "--purge", "new.u", code=4).out == ""
    assert os.path.exists(location.removeprefix("file://"))
    run("drop", "table", "--purge", "new.u", "--yes")
    assert not os.path.exists(location.removeprefix("file://"))
    run("drop", "table", "new.copy")
    assert run("drop", "namespace", "new").out == "Dropped namespace: new\n"
    assert run("drop", "table", "new.u", code=3).out == ""


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_rows_go_out_and_come_in(own_lake: Path, run: Run, ending: str) -> None:
    path = f"rows.{ending}"
    assert run("export", "shop.orders", path, "--where", "id >= 20").out == f"10 rows written to {path}\n"
    assert "already exists" in run("export", "shop.orders", path, code=4).err
    assert run("import", "shop.copy", path, code=3).out == ""
    created = run("import", "shop.copy", path, "--create", "--partition", "region", "-o", "json").result()
    assert created["added_rows"] == 10
    rows = table_of("shop.copy").scan().to_arrow().sort_by("id").column("id").to_pylist()
    assert rows == list(range(20, 30))
    assert os.listdir(own_lake).count(path) == 1
    assert [name for name in os.listdir(own_lake) if name.startswith(".")] == []


def test_what_becomes_of_rows_that_are_there(own_lake: Path, run: Run) -> None:
    pq.write_table(orders(28, 32), "some.parquet")
    assert run("import", "shop.orders", "some.parquet", "--dry-run", "-o", "json").result()["exists"] is True
    assert table_of().scan().count() == 19
    changed = run(
        "import", "shop.orders", "some.parquet", "--on-conflict", "upsert", "--key", "id", "-o", "json"
    ).result()
    assert (changed["added_rows"], table_of().scan().count()) == (2, 21)
    run("import", "shop.orders", "some.parquet")
    assert table_of().scan().count() == 25
    assert (
        "pass --yes to confirm"
        in run("import", "shop.orders", "some.parquet", "--on-conflict", "overwrite", code=4).err
    )
    said = run("import", "shop.orders", "some.parquet", "--on-conflict", "overwrite", "-y").out
    assert table_of().scan().count() == 4
    before = said.strip().rpartition(" ")[2]
    assert f"would be set to snapshot {before};" in run("rollback", "shop.orders", "--to", before, "--dry-run").out
    assert table_of().scan().count() == 4
    run("rollback", "shop.orders", "--to", before)
    assert table_of().scan().count() == 25
    run("import", "shop.copy", "some.parquet", "--create", "--add-files")
    assert table_of("shop.copy").inspect.files().column("file_path").to_pylist() == [f"file://{own_lake}/some.parquet"]
    assert (
        "--key requires --on-conflict upsert" in run("import", "shop.orders", "some.parquet", "--key", "id", code=2).err
    )
    assert "no such file: 'none.parquet'" in run("import", "shop.orders", "none.parquet", code=3).err
    assert "files must all have the same extension" in run("import", "shop.orders", "icefloe.toml", code=2).err


def test_a_failed_import_leaves_no_table(own_lake: Path, run: Run) -> None:
    Path("bad.csv").write_text("id\n1\nx\n" + "1\n" * 5)
    pq.write_table(pa.table({"id": [1]}), "a.parquet")
    assert run("import", "shop.bad", "a.parquet", "--create", "--partition", "none", code=3).out == ""
    assert "shop.bad" not in run("list", "shop").out


def test_branches_and_tags(own_lake: Path, run: Run) -> None:
    current = table_of().metadata.current_snapshot_id
    assert run("branch", "create", "shop.orders", "dev").out == f"branch dev is at snapshot {current}\n"
    run("tag", "create", "shop.orders", "t1", "--snapshot", "audit", "--retain", "30d")
    refs = table_of().refs()
    assert refs["t1"].snapshot_id == refs["audit"].snapshot_id
    assert refs["t1"].max_ref_age_ms == 30 * 86_400_000
    run("tag", "replace", "shop.orders", "t1", "--snapshot", "main")
    run("branch", "replace", "shop.orders", "dev", "--snapshot", "v1")
    assert table_of().refs()["t1"].snapshot_id == current
    run("branch", "fast-forward", "shop.orders", "dev", "--to", "audit")
    assert table_of().refs()["dev"].snapshot_id == refs["audit"].snapshot_id
    assert "would be deleted" in run("branch", "delete", "shop.orders", "dev", "--dry-run").out
    assert run("branch", "delete", "shop.orders", "dev", code=4).out == ""
    assert (
        "to undo: icefloe branch create shop.orders dev --snapshot"
        in run("branch", "delete", "shop.orders", "dev", "-y").out
    )
    run("tag", "delete", "shop.orders", "t1", "-y")
    assert set(table_of().refs()) == {"main", "audit", "v1"}
    assert "main" in run("branch", "list", "shop.orders").out
    assert "no branch or tag named" in run("branch", "delete", "shop.orders", "none", "-y", code=3).err
    assert "cannot be changed" in run("branch", "create", "shop.orders@v1", "x", code=2).err


def test_changes_are_picked_and_published(own_lake: Path, run: Run) -> None:
    table = table_of()
    audit = table.refs()["audit"].snapshot_id
    assert "would get the changes of snapshot" in run("cherry-pick", "shop.orders", str(audit), "--dry-run").out
    run("cherry-pick", "shop.orders", str(audit))
    assert table_of().scan().count() == 24
    table.refresh().set_properties({"write.wap.enabled": "true"})
    table.append(orders(50, 52), {"wap.id": "w1"})
    assert table_of().scan().count() == 24
    run("publish", "shop.orders", "w1")
    assert table_of().scan().count() == 26
    assert "no snapshot with WAP id 'w2'" in run("publish", "shop.orders", "w2", code=3).err


@pytest.mark.parametrize("version", [version for version in ALL_VERSIONS if version > 1])
def test_upgrades(own_lake: Path, run: Run, version: int) -> None:
    run("create", "table", "shop.old", "--schema", "id long", "--format-version", "1")
    assert "would be upgraded from v1" in run("upgrade", "shop.old", str(version), "--dry-run").out
    assert run("upgrade", "shop.old", str(version), code=4).out == ""
    run("upgrade", "shop.old", str(version), "--yes")
    assert table_of("shop.old").format_version == version


def test_properties_are_set_and_removed(own_lake: Path, run: Run) -> None:
    run("properties", "set", "table", "shop.orders", "owner", "ann")
    assert run("properties", "get", "table", "shop.orders", "owner").out == "ann\n"
    run("properties", "remove", "table", "shop.orders", "owner")
    assert "has no property 'owner'" in run("properties", "remove", "table", "shop.orders", "owner", code=3).err
    run("properties", "set", "namespace", "shop", "a", "b")
    run("properties", "remove", "namespace", "shop", "a")
    assert "has no property 'a'" in run("properties", "remove", "namespace", "shop", "a", code=3).err


# -- care


def test_care(own_lake: Path, run: Run) -> None:
    assert run("doctor", "-o", "json").result()[0]["status"] == "OK"
    assert "null" not in run("doctor").out
    assert run("verify", "shop", "-o", "json").result() == []
    assert run("verify", "shop.orders", "--level", "metadata").err.startswith("shop.orders: clean")
    plan = run("compact", "shop.orders", "--option", "min-input-files=2", "--dry-run", "-o", "json").result()
    assert plan == {"dry_run": True, "groups": 2, "files": 4, "bytes": plan["bytes"], "files_after": 2}
    done = run("compact", "shop.orders", "--option", "rewrite-all=true", "-o", "json").result()
    assert (done["rewritten_data_files_count"], done["added_data_files_count"]) == (4, 2)
    assert run("rewrite-deletes", "shop.orders").out.splitlines()[-1] == "dangling: nothing to do"
    assert run("rewrite-deletes", "shop.orders", "--dry-run").out.startswith("equality: no equality deletes")
    assert run("rewrite-manifests", "shop.orders", "--dry-run").out.startswith("manifests need no rewrite")
    assert run("compute-stats", "shop.orders", "--dry-run").out.startswith(
        "a statistics file for all primitive columns"
    )
    assert {row["column"]: row["distinct"] for row in run("compute-stats", "shop.orders", "-o", "json").result()}[
        "region"
    ] == 2
    assert run("compute-stats", "shop.orders", "--partitions", "-o", "json").result()
    assert table_of().scan().count() == 19


def test_findings_end_with_one(own_lake: Path, run: Run) -> None:
    run("properties", "set", "table", "shop.orders", "maintenance.partition.quiet-ms", "0")
    table = table_of()
    for number in range(40, 44):
        table.append(orders(number, number + 2))
    table.set_properties({"history.expire.max-snapshot-age-ms": "1"})
    time.sleep(0.01)
    rows = run("doctor", "shop.orders", "-o", "json", code=1).result()
    assert {"old-snapshots"} <= {row["finding"] for row in rows}
    assert all(row["command"].startswith("icefloe ") for row in rows)
    path = str(table.inspect.data_files().column("file_path")[0]).removeprefix("file://")
    os.rename(path, f"{path}.lost")
    found = run("verify", "shop.orders", "-o", "json", code=1).result()
    assert any(path in str(row["location"]) for row in found)


def test_snapshots_expire_after_a_yes(own_lake: Path, run: Run) -> None:
    time.sleep(0.01)
    plan = run("expire-snapshots", "shop.orders", "--older-than", "0s", "--dry-run", "-o", "json").result()
    assert len(plan["snapshot_ids"]) == 1
    assert len(table_of().snapshots()) == 4
    assert run("expire-snapshots", "shop.orders", "--older-than", "0s", code=4).out == ""
    assert len(table_of().snapshots()) == 4
    done = run("expire-snapshots", "shop.orders", "--older-than", "0s", "--yes", "-o", "json").result()
    assert done["snapshot_ids"] == plan["snapshot_ids"]
    assert len(table_of().snapshots()) == 3
    assert "neither a time" in run("expire-snapshots", "shop.orders", "--older-than", "soon", code=2).err


def test_orphans_are_deleted_after_a_yes(own_lake: Path, run: Run) -> None:
    orphan = Path(str(table_of().location()).removeprefix("file://")) / "data" / "left.parquet"
    orphan.write_bytes(b"left behind")
    old = time.time() - 10 * 86_400
    os.utime(orphan, (old, old))
    assert run("clean-orphan-files", "shop.orders", "--dry-run", "-o", "json").result()["files"] == 1
    assert run("clean-orphan-files", "shop.orders", code=4).out == ""
    assert orphan.exists()
    assert run("clean-orphan-files", "shop.orders", "-y", "-o", "json").result()["bytes"] == 11
    assert not orphan.exists()


def test_maintain_shows_and_does(own_lake: Path, run: Run) -> None:
    rows = run("maintain", "shop", "-o", "json").result()
    assert {row["table"] for row in rows} == {"shop.orders"}
    assert run("maintain", "shop", "--run", code=4).out == ""
    table_of().set_properties({"history.expire.max-snapshot-age-ms": "1"})
    time.sleep(0.01)
    done = run("maintain", "shop.orders", "--run", "--only", "expire", "-y", "-o", "json").result()
    assert {row["step"]: row["outcome"] for row in done}["expire_snapshots"] == "done"
    assert "--only does not accept 'all'; use any of compact" in run("maintain", "--only", "all", code=2).err
    assert "mutually exclusive" in run("maintain", "--run", "--plan", code=2).err
