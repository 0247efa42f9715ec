"""Nothing is found in tables that are as they should be: those of all our operations, and those of PyIceberg."""

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import GreaterThanOrEqual
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import LongType as TheirLongType

import icefloe
from icefloe.commit import Expire, Planned
from icefloe.manifests import ManifestContent, ManifestFile
from icefloe.schema import schema_to_arrow
from icefloe.schema.types import LongType, StringType, UUIDType
from icefloe.storage import Storage
from icefloe.table import Table
from icefloe.verification import VerificationReport, silent, verify
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.formats.rows import arrow_table
from tests.peers.engines import PYICEBERG_WRITES
from tests.peers.reading import load
from tests.peers.rows import ROWS, SCHEMA
from tests.shared_rows import row_modes
from tests.verification.tables import Damaged, create, rows

MODES = ("copy-on-write", "merge-on-read")
FORMATS = ("parquet", "avro", "orc")


def evolve(table: Table) -> None:
    with table.update_schema() as update:
        update.rename_column("region", "area")
        update.add_column("note", StringType())
        update.delete_column("price")
    with table.update_spec() as spec:
        spec.add_field("id")
    with table.update_sort_order() as order:
        order.asc("area")
    table.append(pa.table({"id": [71], "area": ["eu"], "note": ["new"]}))
    with table.update_schema() as update:
        update.add_column("price", LongType())
    table.append(pa.table({"id": [72], "area": ["us"], "note": ["new"], "price": [7]}))


def branch_and_tag(table: Table) -> None:
    current = table.metadata.current_snapshot_id
    assert current is not None
    table.manage_snapshots().create_branch("audit", current).create_tag("then", current).commit()
    table.append(rows(81), branch="audit")
    table.append(rows(82))
    table.manage_snapshots().rollback_to_snapshot(current).commit()
    table.append(rows(83))


def stage_and_pick(table: Table) -> None:
    file = Damaged.of(table).write_rows(f"{table.location()}/data/staged.parquet", rows(91))
    staged = table.update_snapshot(stage_only=True).fast_append([_in(file, "us")])
    assert staged is not None
    table.append(rows(92))
    table.manage_snapshots().cherrypick(staged.snapshot_id).commit()


def _in(file: Any, region: str) -> Any:
    return replace(file, partition=(region,))


def rewrite(table: Table) -> None:
    found = Damaged.of(table)
    old = found.data_file()
    table.update_snapshot().rewrite_manifests(ManifestContent.DATA)
    made = found.write_rows(f"{table.location()}/data/again.parquet", rows(10, 12, 14, 16, 18, region=old.partition[0]))
    table.update_snapshot().rewrite_files(
        Planned.on(table.metadata), remove=[old.file_path], add=[_in(made, old.partition[0])]
    )


def expire(table: Table) -> None:
    with table.transaction() as tx:
        tx.expire_snapshots(Expire(retain_last=1, older_than_ms=2**60))


def upgrade(table: Table) -> None:
    for version in ALL_VERSIONS:
        if version > table.format_version:
            table.upgrade_format_version(version)
            table.append(rows(100 + version))
            table.delete(f"id = {100 + version} or id = {2 * version}")


OPERATIONS: dict[str, Callable[[Table], object]] = {
    "delete": lambda table: (table.delete("id in (3, 4)"), table.delete("id < 6"), table.delete("region = 'eu'")),
    "overwrite": lambda table: table.overwrite(rows(*range(5, 15)), "id >= 5 and id < 12"),
    "overwrite all": lambda table: (table.delete("id = 3"), table.overwrite(rows(1, 2))),
    "replace partitions": lambda table: (
        table.delete("id = 3"),
        table.dynamic_partition_overwrite(rows(5, region="eu")),
    ),
    "upsert": lambda table: (
        table.upsert(rows(3, 4, 33), join_cols=["id"]),
        table.upsert(rows(3, 4, 34), join_cols=["id"]),
    ),
    "evolve": evolve,
    "branch": branch_and_tag,
    "cherry pick": stage_and_pick,
    "rewrite": rewrite,
    "expire": expire,
    "upgrade": upgrade,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_leaves_a_clean_table(operation: str, version: int, mode: str) -> None:
    if mode == MODES[1] and not allows(version, Feature.DELETE_FILES) and operation != "upgrade":
        return  # there is only copy-on-write
    table = create(version, **row_modes(mode))
    table.append(rows(*range(10)))
    table.append(rows(*range(10, 20)))
    OPERATIONS[operation](table)
    check(table.verify(level="data", progress=silent))


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_every_file_format(version: int, file_format: str) -> None:
    table = create(version, **{"write.format.default": file_format})
    table.append(rows(*range(10)))
    table.delete("id in (3, 4)")
    check(table.verify(level="footers", progress=silent))
    check(table.verify(level="data", progress=silent))


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("level", ["footers", "data"])
def test_a_table_that_was_replaced_by_one_of_other_types(version: int, level: str) -> None:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=f"memory://verification/{uuid.uuid4()}")
    catalog.create_namespace("db")
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    table = catalog.create_table("db.t", "id int, p int, gone date", partition_spec=["p"], properties=properties)
    days = pa.array([1, 2, 3], pa.date32())
    table.append(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "p": pa.array([7, 7, 8], pa.int32()), "gone": days}))
    table.delete("id = 1")
    before = table.metadata.current_snapshot_id
    # Columns of the same name keep their ids, whatever their types are.
    table = catalog.replace_table("db.t", "id string, p timestamp, more boolean", partition_spec=["days(p)"])
    moment = pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("us"))
    table.append(pa.table({"id": ["x"], "p": moment, "more": [True]}))
    with table.update_schema() as update:
        update.delete_column("more")
    table.append(pa.table({"id": ["y"], "p": moment}))
    check(table.verify(level=level))
    assert sorted(table.scan(snapshot_id=before).to_arrow()["id"].to_pylist()) == [2, 3]


@pytest.mark.parametrize("version", PYICEBERG_WRITES)
def test_tables_of_pyiceberg(tmp_path: Path, version: int) -> None:
    catalog = SqlCatalog("peer", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=(tmp_path / "w").as_uri())
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema=schema_to_arrow(SCHEMA), properties={"format-version": str(version)})
    with table.update_spec() as spec:
        spec.add_field("id", BucketTransform(4), "id_bucket")
        spec.add_field("name", IdentityTransform(), "name")
    table.append(arrow_table(SCHEMA, ROWS[:12]))
    with table.update_spec() as spec:
        spec.add_field("ts", DayTransform(), "ts_day")
    table.append(arrow_table(SCHEMA, ROWS[12:]))
    table.delete(GreaterThanOrEqual("id", 18))
    with table.update_schema() as update:
        update.add_column("extra", TheirLongType())
    table.overwrite(table.scan().to_arrow())
    for level in ("footers", "data"):
        check(verify(load(table.metadata_location), Storage(), table.metadata_location, level=level, progress=silent))
    catalog.close()


def check(report: VerificationReport) -> None:
    assert report.clean, str(report)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_summaries_of_uuids_may_be_in_the_order_of_java(version: int) -> None:
    """Java compares the halves of uuids as signed numbers; what is outside of both orders is found."""
    kept = create(version)
    with kept.update_schema() as update:
        update.add_column("key", UUIDType())
    with kept.update_spec() as spec:
        spec.remove_field("region")
        spec.add_field("key")
    low, middle, high = bytes(16), b"\x7f" * 16, b"\x80" + bytes(15)
    keys = pa.array([low, middle, high], pa.binary(16)).cast(pa.uuid())
    kept.append(pa.table({"id": pa.array([1, 2, 3], pa.int64()), "key": keys}))
    for lower, upper, is_clean in ((low, high, True), (high, middle, True), (high, low, False), (middle, high, False)):
        table = Damaged.of(kept)

        def change(manifest: ManifestFile, bounds: tuple[bytes, bytes] = (lower, upper)) -> ManifestFile:
            assert manifest.partitions is not None
            *others, last = manifest.partitions
            changed = replace(last, lower_bound=bounds[0], upper_bound=bounds[1])
            return replace(manifest, partitions=(*others, changed))

        table.change_list(change)
        assert table.verify().clean is is_clean
