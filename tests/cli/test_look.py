"""The commands that look at tables print what the tables are, in every form."""

import csv
import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe.cli.main import main
from icefloe.cli.options import FORMS
from tests.cli.conftest import Run


def table_of(lake: Path) -> icefloe.Table:
    return icefloe.load_catalog("icefloe").load_table("shop.orders")


def test_names(lake: Path, run: Run) -> None:
    assert run("list").out == "shop\n"
    assert run("list", "shop").out == "shop.orders\nshop.big\nshop.eu\n"
    assert run("list", "-r").out == "shop\nshop.orders\nshop.big\nshop.eu\n"
    assert run("list", "shop", "-o", "json").result() == [
        {"name": "shop.orders", "kind": "table"},
        {"name": "shop.big", "kind": "view"},
        {"name": "shop.eu", "kind": "namespace"},
    ]
    long = run("list", "shop", "-l", "--output", "json").result()[0]
    assert (long["rows"], long["files"]) == (20, 4)
    assert run("tree").out == "icefloe\n└── shop/\n    ├── orders\n    ├── big (view)\n    └── eu/\n"
    assert "orders  20 rows, 4 files" in run("tree", "-l").out


def test_a_table_is_described(lake: Path, run: Run) -> None:
    table = table_of(lake)
    text = run("describe", "shop.orders").out
    assert text.startswith(f"shop.orders  table, format v3, {table.metadata.table_uuid}\n")
    assert "rows         19 live (1 deleted, 5.0%)\n" in text
    assert "files        4 data files, " in text
    assert "partitioned  region\nsorted       id asc nulls first\n" in text
    assert "(2 behind, 1 ahead)" in text
    record = run("describe", "shop.orders", "-o", "json").result()
    assert record["uuid"] == table.metadata.table_uuid
    assert record["current_snapshot_id"] == str(table.metadata.current_snapshot_id)
    assert record["counts"]["records"] == 20
    assert [each["name"] for each in record["columns"]] == ["id", "region", "total", "ts"]
    assert record["refs"]["v1"] == {"snapshot_id": str(table.refs()["v1"].snapshot_id), "type": "tag"}
    old = run("describe", "shop.orders@v1", "-o", "json").result()
    assert old["counts"]["records"] == 10


def test_views_and_namespaces_are_described(lake: Path, run: Run) -> None:
    assert run("describe", "shop.big", "-o", "json").result()["sql"] == {
        "spark": "SELECT id FROM shop.orders WHERE total > 5"
    }
    assert "SELECT id FROM shop.orders" in run("describe", "shop.big").out
    assert run("describe", "shop").out == "shop  namespace\nowner  ann\n"
    assert "no table, view or namespace shop.none" in run("describe", "shop.none", code=3).err
    assert "no namespace shop.orders" in run("describe", "--entity", "namespace", "shop.orders", code=3).err
    assert "'cat' is not one of" in run("describe", "--entity", "cat", "shop", code=2).err


def test_structure(lake: Path, run: Run) -> None:
    assert run("schema", "shop.orders").out.splitlines()[1].split() == ["1", "id", "long", "true", "the", "key"]
    ddl = run("schema", "--ddl", "shop.orders").out
    assert ddl == "id long not null comment 'the key',\nregion string,\ntotal double,\nts timestamp\n"
    assert run("schema", "--arrow", "shop.orders").out.startswith("id: int64 not null\n")
    assert [row["change"] for row in run("schema", "--history", "shop.orders", "-o", "json").result()] == ["added"] * 4
    assert run("spec", "shop.orders", "-o", "json").result() == [
        {"spec_id": 0, "id": 1000, "name": "region", "transform": "identity", "source": "region"}
    ]
    assert run("sort-order", "shop.orders", "-o", "csv").out == (
        "order_id,transform,source,direction,nulls\n1,identity,id,asc,nulls first\n"
    )
    table = table_of(lake)
    assert run("uuid", "shop.orders").out.strip() == table.metadata.table_uuid
    assert run("location", "shop.orders").out.strip() == table.location()


def test_properties(lake: Path, run: Run) -> None:
    assert run("properties", "get", "table", "shop.orders").out == "write.delete.mode  merge-on-read\n"
    assert run("properties", "get", "table", "shop.orders", "write.delete.mode").out == "merge-on-read\n"
    assert run("properties", "get", "namespace", "shop", "owner").out == "ann\n"
    assert "has no property 'none'" in run("properties", "get", "namespace", "shop", "none", code=3).err


def test_history(lake: Path, run: Run) -> None:
    table = table_of(lake)
    rows = run("snapshots", "shop.orders", "-o", "json").result()
    assert [row["snapshot_id"] for row in rows] == [str(each.snapshot_id) for each in table.snapshots()]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", row["timestamp"]) for row in rows)
    assert {name: row["snapshot_id"] for row in rows for name in row["refs"]} == {
        name: str(ref.snapshot_id) for name, ref in table.refs().items()
    }
    assert len(run("log", "shop.orders").out.splitlines()) == 3
    assert len(run("log", "shop.orders@audit").out.splitlines()) == 2
    assert len(run("log", "shop.orders", "-n", "1").out.splitlines()) == 1
    graph = [
        re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", line)
        for line in run("log", "--graph", "shop.orders").out.splitlines()
    ]
    ids = {name: str(ref.snapshot_id) for name, ref in table.refs().items()}
    middle = str(table.snapshot_by_name("main").parent_snapshot_id)  # type: ignore[union-attr]  # it has commits
    assert graph == [
        f"* {ids['main']}  TIME  append     +10 rows  +2 files  (main)",
        f"* {middle}  TIME  delete     -1 rows  +1 delete file",
        f"| * {ids['audit']}  TIME  append     +5 rows  +2 files  (audit)",
        "|/",
        f"* {ids['v1']}  TIME  append     +10 rows  +2 files  (tag: v1)",
    ]
    mermaid = run("log", "--mermaid", "shop.orders").out
    assert mermaid.startswith("flowchart BT\n")
    assert f"s{ids['v1']} --> s{ids['audit']}" in mermaid


def test_refs(lake: Path, run: Run) -> None:
    rows = run("refs", "shop.orders", "-o", "json").result()
    assert [(row["name"], row["type"]) for row in rows] == [("main", "branch"), ("audit", "branch"), ("v1", "tag")]
    assert rows[0]["min_snapshots_to_keep"] == 1
    assert rows[2]["min_snapshots_to_keep"] is None
    assert len(run("list-refs", "--type", "tag", "shop.orders").out.splitlines()) == 2
    assert "must be branch or tag" in run("list-refs", "--type", "x", "shop.orders", code=2).err


def test_metadata_tables(lake: Path, run: Run) -> None:
    table = table_of(lake)
    files = run("files", "shop.orders", "-o", "json").result()
    assert {row["file_path"] for row in files} == set(table.inspect.files().column("file_path").to_pylist())
    assert len(run("files", "shop.orders@v1", "-o", "json").result()) == 2
    assert len(run("files", "shop.orders", "--where", "content = 1", "-o", "json").result()) == 1
    assert len(run("files", "shop.orders", "--history", "--columns", "file_path", "-o", "json").result()) > 5
    assert len(run("manifests", "shop.orders", "-o", "json").result()) == 3
    assert len(run("partitions", "shop.orders", "-o", "json").result()) == 2
    entries = run("metadata", "shop.orders", "entries", "--where", "status = 1", "-o", "json").result()
    assert entries
    assert all(isinstance(row["snapshot_id"], str) and isinstance(row["sequence_number"], str) for row in entries)
    assert len(run("metadata", "shop.orders", "--log", "-o", "json").result()) == 6
    assert json.loads(run("metadata", "shop.orders").out)["table-uuid"] == table.metadata.table_uuid
    assert "no metadata table 'nope'" in run("metadata", "shop.orders", "nope", code=2).err
    assert "covers all snapshots" in run("metadata", "shop.orders@v1", "snapshots", code=2).err


def test_rows(lake: Path, run: Run) -> None:
    assert run("count", "shop.orders").out == "19\n"
    assert run("count", "shop.orders@audit").out == "15\n"
    assert run("count", "shop.orders", "--where", "region = 'eu'").out == "9\n"
    assert len(run("head", "shop.orders", "-n", "3").out.splitlines()) == 4
    rows = run("head", "shop.orders", "--where", "id < 2", "--columns", "id,ts", "-o", "json").result()
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": 0, "ts": "2026-01-01T00:00:00"},
        {"id": 1, "ts": "2026-01-02T00:00:00"},
    ]
    stats = {row["column"]: row for row in run("stats", "shop.orders", "-o", "json").result()}
    assert (stats["id"]["min"], stats["id"]["max"], stats["id"]["values"]) == (0, 29, 20)
    assert (stats["region"]["min"], stats["region"]["nulls"]) == ("eu", 0)


def test_a_location_needs_no_catalog(lake: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(lake)
    location, folder = str(table.metadata_location), str(table.location())
    monkeypatch.chdir(tmp_path)
    assert run("count", location).out == "19\n"
    assert run("count", location.removeprefix("file://")).out == "19\n"
    assert run("count", folder).out == "19\n"
    assert run("count", f"{folder}@v1").out == "10\n"
    assert "which is read-only" in run("properties", "set", "table", location, "a", "b", code=2).err
    assert "has no table metadata files" in run("count", f"{tmp_path}/none", code=3).err
    assert "no metadata file" in run("count", f"{tmp_path}/00001-x.metadata.json", code=3).err


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", [("snapshots",), ("describe",), ("head",), ("refs",), ("stats",)])
def test_every_form(lake: Path, capfdbinary: pytest.CaptureFixture[bytes], form: str, command: tuple[str, ...]) -> None:
    assert main(["-o", form, *command, "shop.orders"]) == 0
    out = capfdbinary.readouterr().out
    match form:
        case "arrow":
            assert pa.ipc.open_stream(out).read_all().num_rows >= 1
        case "json":
            assert json.loads(out)["command"] == command[0]
        case "jsonl":
            assert all(isinstance(json.loads(line), dict) for line in out.splitlines())
        case "csv":
            rows = list(csv.reader(io.StringIO(out.decode())))
            assert len({len(row) for row in rows}) == 1
        case "markdown":
            assert out.decode().splitlines()[1].startswith("|---|")
    assert b"\x1b[" not in out


def test_values_survive_json(own_lake: Path, run: Run) -> None:
    with icefloe.load_catalog("icefloe") as catalog:
        table = catalog.create_table(
            "shop.odd",
            "id long, d decimal(9,2), b binary, f double, u uuid, m map<string, int>, l list<long>, t timestamptz, dd date",
        )
        table.append(
            pa.Table.from_pylist(
                [
                    {
                        "id": 2**60 + 1,
                        "d": None,
                        "b": b"\x00\xff",
                        "f": float("nan"),
                        "m": [("a", 1)],
                        "l": [2**60 + 1],
                        "t": None,
                    },
                ],
                schema=pa.schema(
                    [
                        ("id", pa.int64()),
                        ("d", pa.decimal128(9, 2)),
                        ("b", pa.binary()),
                        ("f", pa.float64()),
                        ("m", pa.map_(pa.string(), pa.int32())),
                        ("l", pa.list_(pa.int64())),
                        ("t", pa.timestamp("us", "UTC")),
                    ]
                ),
            )
        )
    [row] = run("head", "shop.odd", "-o", "json").result()
    assert row == {
        "id": 2**60 + 1,
        "d": None,
        "b": "AP8=",
        "f": "nan",
        "u": None,
        "m": {"a": 1},
        "l": [2**60 + 1],
        "t": None,
        "dd": None,
    }
    assert "0x00ff" in run("head", "shop.odd").out
