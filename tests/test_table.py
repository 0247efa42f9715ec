"""The table as a user holds it: rows in, rows changed, rows out, in every format version and both modes of change."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefloe
from icefloe.errors import IcefloeError, InvalidInputError, InvalidValueError, NoSuchColumnError, ValidationError
from icefloe.schema.types import StringType
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.shared_rows import ids_in, row_modes

MODES = ("copy-on-write", "merge-on-read")
DDL = "id long not null, region string, amount double, ts timestamptz"


def rows(*ids: int, region: str = "eu") -> Any:
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "region": [region] * len(ids),
            "amount": [i / 2 for i in ids],
            "ts": pa.array([start + dt.timedelta(hours=i) for i in ids], pa.timestamp("us", "UTC")),
        }
    )


@pytest.fixture
def catalog(request: pytest.FixtureRequest) -> icefloe.Catalog:
    found = icefloe.load_catalog(request.node.name, type="memory")
    found.create_namespace("shop")
    return found


def create(catalog: icefloe.Catalog, version: int, mode: str = MODES[0], **options: Any) -> Table:
    modes = row_modes(mode)
    properties = {"format-version": str(version), **modes, **options.pop("properties", {})}
    return catalog.create_table("shop.orders", DDL, properties=properties, **options)


every_version = pytest.mark.parametrize("version", ALL_VERSIONS)
both_modes = pytest.mark.parametrize("mode", MODES)


@every_version
def test_rows_come_back_in_the_tables_schema(catalog: icefloe.Catalog, version: int) -> None:
    table = create(catalog, version, partition_spec=["days(ts)", "bucket(4, id)"], sort_order=["id desc"])
    assert ids_in(table) == []
    snapshot = table.append(rows(1, 2, 30), snapshot_properties={"job": "nightly"})
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary["job"] == "nightly"
    assert snapshot.summary["total-records"] == "3"
    found = table.scan("ts >= '2026-01-02'", ("id", "ts")).to_arrow()
    assert found.column("id").to_pylist() == [30]
    assert found.schema.names == ["id", "ts"]
    assert table.scan().to_arrow().sort_by("id").to_pylist() == rows(1, 2, 30).to_pylist()
    assert table.scan().count() == 3
    assert table.scan(limit=2).to_arrow().num_rows == 2
    assert table.append(rows()) is None


@every_version
def test_other_handles_see_what_was_committed(catalog: icefloe.Catalog, version: int) -> None:
    table = create(catalog, version)
    other = catalog.load_table("shop.orders")
    table.append(rows(1))
    assert ids_in(other) == []
    assert ids_in(other.refresh()) == [1]
    other.append(rows(2))
    table.append(rows(3))
    assert ids_in(table) == [1, 2, 3]


@both_modes
@every_version
def test_deletes(catalog: icefloe.Catalog, version: int, mode: str) -> None:
    table = create(catalog, version, mode)
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5, region="us"))
    before = table.current_snapshot()
    assert table.delete("id = 2") is not None
    assert ids_in(table) == [1, 3, 4, 5]
    assert table.delete("id = 2") is None
    table.delete("region = 'us'")
    assert ids_in(table) == [1, 3]
    table.delete("id = 3")
    assert ids_in(table) == [1]
    assert before is not None
    assert ids_in(table, snapshot_id=before.snapshot_id) == [1, 2, 3, 4, 5]
    summary = table.snapshots()[2].summary
    assert summary is not None
    if mode == MODES[1] and allows(version, Feature.DELETION_VECTORS):
        assert summary["added-dvs"] == "1"
    elif mode == MODES[1] and allows(version, Feature.DELETE_FILES):
        assert summary["added-position-deletes"] == "1"
    else:
        assert summary["deleted-data-files"] == "1"
    assert table.scan().count() == 1


@both_modes
@every_version
def test_overwrites(catalog: icefloe.Catalog, version: int, mode: str) -> None:
    table = create(catalog, version, mode)
    table.append(rows(1, 2, 3))
    table.overwrite(rows(20, 21), "id >= 2")
    assert ids_in(table) == [1, 20, 21]
    table.overwrite(rows(7))
    assert ids_in(table) == [7]
    table.overwrite(rows(8), "id = 100")
    assert ids_in(table) == [7, 8]


@every_version
def test_partitions_are_overwritten_by_what_comes(catalog: icefloe.Catalog, version: int) -> None:
    table = create(catalog, version, partition_spec=["region"])
    table.append(pa.concat_tables([rows(1, 2), rows(3, region="us")]))
    table.dynamic_partition_overwrite(rows(9, region="us"))
    assert ids_in(table) == [1, 2, 9]


@both_modes
@every_version
def test_upserts(catalog: icefloe.Catalog, version: int, mode: str) -> None:
    table = create(catalog, version, mode)
    table.append(rows(1, 2, 3))
    lineage = allows(version, Feature.ROW_LINEAGE)
    columns = ("id", "_row_id") if lineage else ("id",)
    before = {row["id"]: row.get("_row_id") for row in table.scan(selected_fields=columns).to_arrow().to_pylist()}
    table.upsert(rows(2, 4, region="new"), join_cols=["id"])
    found = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert {i: row["region"] for i, row in found.items()} == {1: "eu", 2: "new", 3: "eu", 4: "new"}
    if lineage:
        after = {row["id"]: row["_row_id"] for row in table.scan(selected_fields=columns).to_arrow().to_pylist()}
        assert {i: after[i] for i in before} == before
        assert len(set(after.values())) == 4
    table.upsert(rows(1, 5, region="x"), join_cols=["id"], when_matched_update_all=False)
    table.upsert(rows(3, 6, region="y"), join_cols=["id"], when_not_matched_insert_all=False)
    found = {row["id"]: row["region"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {1: "eu", 2: "new", 3: "y", 4: "new", 5: "x"}


@both_modes
@every_version
def test_upserts_leave_alone_what_is_the_same(catalog: icefloe.Catalog, version: int, mode: str) -> None:
    table = create(catalog, version, mode)
    odd = rows(1, 2, 3).set_column(2, "amount", pa.array([float("nan"), None, 0.0]))
    table.append(odd)
    table.append(rows(4))
    assert table.upsert(odd, join_cols=["id"]) is None
    assert len(table.snapshots()) == 2
    changed = odd.set_column(2, "amount", pa.array([float("nan"), 1.0, -0.0]))
    snapshot = table.upsert(pa.concat_tables([changed, rows(4, 5)]), join_cols=["id"])
    assert snapshot is not None
    assert snapshot.summary is not None
    found = table.scan().to_arrow().sort_by("id").column("amount").to_pylist()
    assert [str(each) for each in found] == ["nan", "1.0", "-0.0", "2.0", "2.5"]
    if mode == MODES[1] and allows(version, Feature.DELETE_FILES):
        assert snapshot.summary["added-records"] == "3", "rows 2, 3 and 5"
    if allows(version, Feature.ROW_LINEAGE):
        kept = table.scan(selected_fields=("id", "_last_updated_sequence_number")).to_arrow().sort_by("id")
        assert kept.column(1).to_pylist() == [1, 3, 3, 2, 3]


@both_modes
@every_version
def test_an_upsert_leaves_one_row_of_a_key_that_several_have(catalog: icefloe.Catalog, version: int, mode: str) -> None:
    table = create(catalog, version, mode)
    table.append(rows(1, 2))
    table.append(rows(1, region="other"))
    table.upsert(rows(1), join_cols=["id"])
    assert table.scan().to_arrow().sort_by("id").to_pylist() == rows(1, 2).to_pylist()
    if allows(version, Feature.ROW_LINEAGE):
        assert sorted(table.scan(selected_fields=("_row_id",)).to_arrow().column(0).to_pylist()) == [0, 1]


@every_version
def test_upserts_by_several_columns(catalog: icefloe.Catalog, version: int) -> None:
    table = create(catalog, version, partition_spec=["region"])
    table.append(pa.concat_tables([rows(1, 2), rows(1, 2, region="us")]))
    incoming = rows(2, 3, region="us").set_column(2, "amount", pa.array([9.0, 9.0]))
    table.upsert(pa.concat_tables([incoming, rows(1)]), join_cols=["region", "id"])
    found = {(row["region"], row["id"]): row["amount"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {("eu", 1): 0.5, ("eu", 2): 1.0, ("us", 1): 0.5, ("us", 2): 9.0, ("us", 3): 9.0}


@pytest.mark.parametrize(
    ("data", "join_cols", "error", "message"),
    [
        (rows(1, 1), ["id"], InvalidValueError, "duplicate keys, such as"),
        (rows(1), None, InvalidInputError, "no identifier fields"),
        (rows(1), [], InvalidInputError, "one or more top-level columns"),
        (rows(1), ["nope"], NoSuchColumnError, "nope"),
        (
            rows(1).set_column(1, "region", pa.nulls(1, pa.string())),
            ["region"],
            InvalidValueError,
            "null in the key column 'region'",
        ),
    ],
)
def test_upserts_that_make_no_sense(
    catalog: icefloe.Catalog, data: Any, join_cols: Any, error: type[IcefloeError], message: str
) -> None:
    table = create(catalog, 2)
    table.append(rows(1))
    with pytest.raises(error, match=message):
        table.upsert(data, join_cols)
    assert len(table.refresh().snapshots()) == 1


@every_version
def test_several_changes_are_one_commit(catalog: icefloe.Catalog, version: int) -> None:
    table = create(catalog, version)
    with table.transaction() as tx:
        tx.append(rows(1, 2))
        tx.delete("id = 1")
        with tx.update_schema() as update:
            update.add_column("note", StringType())
        assert ids_in(catalog.load_table("shop.orders")) == []
    assert ids_in(table) == [2]
    assert table.scan().to_arrow().schema.names[-1] == "note"


@both_modes
@every_version
def test_rows_are_upserted_in_a_transaction(catalog: icefloe.Catalog, version: int, mode: str) -> None:
    table = create(catalog, version, mode)
    table.append(rows(1, 2))
    with table.transaction() as tx:
        tx.append(rows(3))
        made = tx.upsert(rows(2, 3, 4, region="us"), join_cols=["id"], snapshot_properties={"job": "nightly"})
        assert tx.upsert(rows(1), join_cols=["id"]) is None
        assert ids_in(catalog.load_table("shop.orders")) == [1, 2]
    assert made is not None
    committed = table.snapshot_by_id(made.snapshot_id)
    assert committed is not None
    assert committed.summary is not None
    assert committed.summary["job"] == "nightly"
    assert len(table.snapshots()) == 3
    assert ids_in(table) == [1, 2, 3, 4]
    assert ids_in(table, row_filter="region = 'us'") == [2, 3, 4]


@both_modes
@every_version
def test_a_transaction_changes_rows_of_a_branch(catalog: icefloe.Catalog, version: int, mode: str) -> None:
    table = create(catalog, version, mode, partition_spec=["region"])
    table.append(rows(1, 2))
    with table.transaction() as tx:
        tx.append(rows(3), branch="side")
        tx.delete("ID = 1", branch="side", case_sensitive=False)
        tx.upsert(rows(2, 4, region="us"), ["id"], branch="side")
        tx.overwrite(rows(5), "ID = 3", branch="side", case_sensitive=False)
        tx.dynamic_partition_overwrite(rows(6, region="us"), branch="side")
        tx.append(rows(7))
    assert ids_in(table, ref="side") == [5, 6]
    assert ids_in(table) == [1, 2, 7]


@every_version
def test_partitions_are_overwritten_in_a_transaction(catalog: icefloe.Catalog, version: int) -> None:
    table = create(catalog, version, partition_spec=["region"])
    table.append(rows(1, 2))
    table.append(rows(3, region="us"))
    with table.transaction() as tx:
        tx.append(rows(4))
        tx.dynamic_partition_overwrite(rows(5))
    assert ids_in(table) == [3, 5]


@every_version
def test_what_fails_leaves_neither_rows_nor_files(catalog: icefloe.Catalog, version: int) -> None:
    table = create(catalog, version)
    table.append(rows(1))
    before = {info.location for info in table.storage.list_prefix(str(table.location()))}
    with pytest.raises(InvalidValueError, match="'wrong'"), table.transaction() as tx:  # noqa: PT012  # the first succeeds
        tx.append(rows(2))
        tx.append(rows(3).append_column("wrong", pa.array([1])))
    with pytest.raises(InvalidValueError, match="'wrong'"):
        table.append(rows(3).append_column("wrong", pa.array([1])))
    assert {info.location for info in table.storage.list_prefix(str(table.location()))} == before
    assert ids_in(table.refresh()) == [1]


@every_version
def test_branches_have_rows_of_their_own(catalog: icefloe.Catalog, version: int) -> None:
    table = create(catalog, version)
    table.append(rows(1))
    table.append(rows(2), branch="audit")
    table.delete("id = 1", branch="audit")
    assert ids_in(table) == [1]
    assert ids_in(table, ref="audit") == [2]


@both_modes
@every_version
def test_a_delete_does_not_pass_over_rows_that_came_meanwhile(
    catalog: icefloe.Catalog, version: int, mode: str
) -> None:
    table = create(catalog, version, mode)
    table.append(rows(1, 2))
    late = catalog.load_table("shop.orders")
    table.append(rows(1))
    with pytest.raises(ValidationError):
        late.delete("id = 1")
    assert ids_in(table.refresh()) == [1, 1, 2]


def test_two_deletes_of_one_file_both_count(catalog: icefloe.Catalog) -> None:
    table = create(catalog, 3, MODES[1])
    table.append(rows(1, 2, 3))
    late = catalog.load_table("shop.orders")
    table.delete("id = 1")
    late.delete("id = 3")
    assert ids_in(table.refresh()) == [2]


@both_modes
@every_version
def test_two_upserts_of_one_new_key_do_not_insert_it_twice(catalog: icefloe.Catalog, version: int, mode: str) -> None:
    table = create(catalog, version, mode)
    table.append(rows(1))
    late = catalog.load_table("shop.orders")
    table.upsert(rows(7), join_cols=["id"])
    with pytest.raises(ValidationError):
        late.upsert(rows(7, region="late"), join_cols=["id"])
    late.refresh().upsert(rows(7, region="late"), join_cols=["id"])
    assert ids_in(late) == [1, 7]


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.VARIANT)])
@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_columns_with_required_parts_may_be_left_out(version: int, file_format: str, tmp_path: Path) -> None:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t",
        "id bigint, doc variant, s struct<a: int not null, doc: variant, l: array<int>>",
        properties={"format-version": str(version), "write.format.default": file_format},
    )
    table.append(pa.table({"id": [1, 2]}))
    found = table.scan().to_arrow()
    assert found.column("doc").null_count == 2
    assert found.column("s").null_count == 2
