"""`table.inspect` follows what is done to a table through its handle."""

from typing import Any

import pyarrow as pa
import pytest

import icefloe
from icefloe.inspect import TABLE_NAMES
from icefloe.versions import ALL_VERSIONS, Feature, allows


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_the_metadata_tables_follow_the_table(version: int) -> None:
    catalog = icefloe.load_catalog("inspected", type="memory")
    catalog.create_namespace("shop")
    table = catalog.create_table(
        "shop.orders",
        schema="id long not null, region string",
        partition_spec=["region"],
        properties={"format-version": str(version), "write.delete.mode": "merge-on-read"},
    )
    rows: Any = pa.table({"id": pa.array(range(6)), "region": ["eu", "us"] * 3})
    table.append(rows.cast(pa.schema([pa.field("id", pa.int64(), False), pa.field("region", pa.string())])))
    shown = table.inspect
    assert sorted(each["region"] for each in shown.files().column("partition").to_pylist()) == ["eu", "us"]
    assert shown.files(row_filter="partition.region = 'eu'").column("record_count").to_pylist() == [3]
    assert shown.metadata_log_entries().column("file").to_pylist()[-1] == table.metadata_location
    table.delete("id = 2")
    by_vectors = allows(version, Feature.DELETE_FILES)
    deleted = table.inspect.position_deletes(selected_fields=("pos", "partition.region")).to_pylist()
    assert deleted == ([{"pos": 1, "partition": {"region": "eu"}}] if by_vectors else [])
    assert table.inspect.delete_files().num_rows == by_vectors
    [eu] = table.inspect.partitions(row_filter="partition.region = 'eu'").to_pylist()
    assert (eu["record_count"], eu["position_delete_record_count"]) == ((3, 1) if by_vectors else (2, 0))
    assert eu["last_updated_snapshot_id"] == table.current_snapshot().snapshot_id  # type: ignore[union-attr]  # there is one
    assert shown.snapshots().num_rows + 1 == table.inspect.snapshots().num_rows == 2
    for name in TABLE_NAMES:
        found = getattr(table.inspect, name)()
        found.validate(full=True)
        for field in found.schema:
            assert field.nullable or not found.column(field.name).null_count, (name, field)
