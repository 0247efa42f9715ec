"""Tables that Spark wrote through icefloe are read alike by other implementations."""

from pathlib import Path
from typing import Any

import pytest

from icefloe.catalog import Catalog, load_catalog
from tests.peers.test_files_floor import PEER_VERSIONS, duckdb_rows, pyiceberg_rows


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    found = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/warehouse")
    found.create_namespace("db")
    return found


@pytest.mark.parametrize("version", PEER_VERSIONS)
def test_other_implementations_read_the_same_rows(spark: Any, catalog: Catalog, version: int) -> None:
    table = catalog.create_table(
        "db.t",
        "id bigint not null, s string, ts timestamptz, d decimal(9, 2), st struct<a: int>",
        partition_spec=["days(ts)"],
        properties={"format-version": str(version)},
    )
    table.append(
        spark.range(50, numPartitions=1).selectExpr(
            "id",
            "case when id % 7 > 0 then concat('é', id) end s",
            "timestamp_micros(id * 7200000000) ts",
            "cast(id / 4 as decimal(9, 2)) d",
            "named_struct('a', cast(id as int)) st",
        )
    )
    table.overwrite(spark.range(60, 62).selectExpr("id", "'x' s"), "id < 10")
    expected = table.scan().to_arrow().sort_by("id").to_pylist()
    assert len(expected) == 42
    for peer in (pyiceberg_rows, duckdb_rows):
        assert sorted(peer(str(table.metadata_location)), key=lambda row: row["id"]) == expected
