"""What tables take, and what is different between snapshots."""

import json
import os
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefloe
from icefloe.errors import StateError
from icefloe.manifests import ManifestFile
from icefloe.planning import ManifestSource
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS
from tests.cli.conftest import Run, orders
from tests.shared_rows import row_modes


def files_of(table: Table) -> dict[str, int]:
    folder = str(table.location()).removeprefix("file://")
    return {
        os.path.join(place, name): os.path.getsize(os.path.join(place, name))
        for place, _, names in os.walk(folder)
        for name in names
    }


def test_every_byte_is_counted_once(own_lake: Path, run: Run) -> None:
    table = icefloe.load_catalog("icefloe").load_table("shop.orders")
    (Path(str(table.location()).removeprefix("file://")) / "data" / "left.bin").write_bytes(b"x" * 77)
    layout = table.storage_layout()
    assert layout.unreferenced.bytes == 77
    assert layout.live.files == table.inspect.files().num_rows
    assert layout.history.files == 2
    assert (layout.total.files, layout.total.bytes) == (len(files_of(table)), sum(files_of(table).values()))
    [row] = run("du", "-o", "json").result()
    assert row["total_bytes"] == layout.total.bytes
    assert run("du", "shop.orders").out.splitlines()[0].split() == [
        "table",
        "live",
        "history",
        "metadata",
        "unreferenced",
        "total",
    ]
    with icefloe.load_catalog("icefloe") as catalog:
        empty = catalog.create_table("shop.empty", "id long")
        assert empty.maintenance.storage_layout().total.files == 1


def test_by_partition_and_by_ref(own_lake: Path, run: Run) -> None:
    table = icefloe.load_catalog("icefloe").load_table("shop.orders")
    layout = table.maintenance.storage_layout()
    parts = run("du", "shop.orders", "--by", "partition", "-o", "json").result()
    assert sorted(each["partition"]["region"] for each in parts) == ["eu", "us"]
    for kind in ("live", "history"):
        assert sum(each[f"{kind}_bytes"] for each in parts) == getattr(layout, kind).bytes
        assert sum(each[f"{kind}_files"] for each in parts) == getattr(layout, kind).files
    refs = {each["ref"]: each for each in run("du", "shop.orders", "--by", "ref", "-o", "json").result()}
    assert {name: (each["all_files"], each["alone_files"]) for name, each in refs.items()} == {
        "main": (5, 3),  # 2 files and a vector of its own
        "audit": (4, 2),
        "v1": (2, 0),
    }
    assert refs["main"]["all_bytes"] == layout.live.bytes
    assert run("du", "shop", "--by", "ref").out.splitlines()[0].split() == ["table", "ref", "all", "alone"]
    assert "'x' is not one of kind, partition, ref" in run("du", "--by", "x", code=2).err
    with icefloe.load_catalog("icefloe") as catalog:
        plain = catalog.create_table("shop.plain", "id long, day date")
        assert plain.maintenance.storage_by_partition() == []
        assert plain.maintenance.storage_by_ref() == []
        plain.append(pa.table({"id": [1]}))
        [whole] = plain.maintenance.storage_by_partition()
        assert (whole.partition, whole.live.files) == ({}, 1)
        with plain.update_spec() as update:
            update.add_field("day", "identity")
        plain.append(pa.table({"id": [1, 2], "day": pa.array([0, 1], pa.int32()).cast(pa.date32())}))
    shown = run("du", "shop.plain", "--by", "partition", "-o", "jsonl").out
    assert [json.loads(line)["partition"] for line in shown.splitlines()].count({"day": None}) == 1
    assert len(shown.splitlines()) == 3


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_files_that_are_different_are_those_of_all_manifests(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=f"memory://shared/v{version}")
    catalog.create_namespace("shop")
    modes = row_modes("merge-on-read" if version > 1 else "copy-on-write")
    properties = {"format-version": str(version), **modes}
    table = catalog.create_table("shop.t", "id long, region string, total double, ts timestamp", properties=properties)
    for number in range(4):
        table.append(orders(10 * number, 10 * number + 10))
    table.delete("id in (2, 3, 14)")
    table.maintenance.rewrite_manifests()
    table.append(orders(50, 60))
    snapshots = [each.snapshot_id for each in table.snapshots()]

    @cache
    def files(snapshot_id: int) -> set[tuple[str, int | None]]:
        columns = table.inspect.files(snapshot_id, selected_fields=("file_path", "content_offset")).to_pydict()
        return set(zip(columns["file_path"], columns["content_offset"], strict=True))

    for before in snapshots:
        for after in snapshots:
            diff = table.diff(before, after)
            assert diff.added_files().num_rows == len(files(after) - files(before))
            assert diff.removed_files().num_rows == len(files(before) - files(after))
    # The manifest of the last append alone is read.
    read: list[str] = []
    reading = ManifestSource.read

    def counted(source: ManifestSource, manifest: ManifestFile, *more: Any) -> Any:
        read.append(manifest.manifest_path)
        return reading(source, manifest, *more)

    monkeypatch.setattr(ManifestSource, "read", counted)
    assert table.diff(snapshots[-2], snapshots[-1]).added_files().num_rows == 1
    assert len(read) == 1


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_differences(version: int) -> None:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=f"memory://diff/v{version}")
    catalog.create_namespace("shop")
    modes = row_modes("merge-on-read" if version > 1 else "copy-on-write")
    table = catalog.create_table(
        "shop.t",
        "id long, region string, total double, ts timestamp",
        properties={"format-version": str(version), **modes},
    )
    table.append(orders(0, 10))
    table.manage_snapshots().create_tag("v1").create_branch("audit").commit()
    table.append(orders(90, 92), branch="audit")
    with table.update_schema() as update:
        update.add_column("note", "string")
    table.append(orders(10, 15))
    table.delete("id in (2, 3)")
    before = table.scan(ref="v1").to_arrow()
    after = table.scan().to_arrow()

    found = table.diff("v1")
    assert [(change.before, change.after and change.after.name) for change in found.columns] == [(None, "note")]
    changed = found.rows().read_all()
    kinds = Counter(changed.column("_change_type").to_pylist())
    ids = {name: set(table.column("id").to_pylist()) for name, table in (("before", before), ("after", after))}
    assert kinds == {"INSERT": len(ids["after"] - ids["before"]), "DELETE": len(ids["before"] - ids["after"])}
    back = table.diff("main", "v1").rows("id < 5").read_all()
    assert sorted(zip(back.column("id").to_pylist(), back.column("_change_type").to_pylist(), strict=True)) == [
        (2, "INSERT"),
        (3, "INSERT"),
    ]
    paths = {
        name: set(table.inspect.files(ref=ref).column("file_path").to_pylist())
        for name, ref in (("before", "v1"), ("after", "main"))
    }
    assert set(found.added_files().column("file_path").to_pylist()) == paths["after"] - paths["before"]
    assert set(found.removed_files().column("file_path").to_pylist()) == paths["before"] - paths["after"]
    assert table.diff(None, "v1").rows().read_all().num_rows == 10
    assert table.diff("v1", "v1").rows().read_all().num_rows == 0
    assert table.diff("audit").added_files().num_rows > 0
    with pytest.raises(StateError, match="diverged"):
        table.diff("audit").rows()


def test_the_command(lake: Path, run: Run) -> None:
    said = run("diff", "shop.orders@v1", "shop.orders", "-o", "json", code=1).result()
    assert said["columns"] == []
    assert (said["added"]["data_files"], said["added"]["files"], said["removed"]["files"]) == (2, 3, 0)
    assert run("diff", "shop.orders@v1", "shop.orders", code=1).out.startswith("files    + 3 (10 rows in data files, ")
    assert (
        run("diff", "shop.orders", "shop.orders").out
        == "files    + 0 (0 rows in data files, 0 B)\nfiles    - 0 (0 rows in data files, 0 B)\n"
    )
    rows = run("diff", "shop.orders@v1", "shop.orders", "--rows", "--where", "id < 21", "-o", "json", code=1).result()
    assert sorted((row["id"], row["_change_type"]) for row in rows) == [(3, "DELETE"), (20, "INSERT")]
    assert len(run("diff", "shop.orders@v1", "shop.orders", "--files", "-o", "json", code=1).result()) == 3
    assert run("diff", "shop.orders@v1", "shop.orders", "--schema", "-o", "json").result()["columns"] == []
    assert "diverged" in run("diff", "shop.orders@audit", "shop.orders", "--rows", code=4).err
    assert "--where and --key require --rows" in run("diff", "shop.orders@v1", "shop.orders", "--key", "id", code=2).err


def test_tables_in_notebooks() -> None:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse="memory://html/lake")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", "id long not null comment '<b>bold</b>', s list<string>")
    shown = table._repr_html_()
    assert "<td>1</td><td>id</td><td>long</td><td>yes</td><td>&lt;b&gt;bold&lt;/b&gt;</td>" in shown
    assert "list&lt;string&gt;" in shown
    assert shown.startswith("<p>n.t, format v2, memory://html/lake/n/t</p><table>")
