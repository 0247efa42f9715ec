"""An upsert that leaves a row alone, since it holds what comes, counts on it: at `serializable` it must still be there."""

from typing import Any

import pyarrow as pa
import pytest

from icefloe.catalog import Catalog, load_catalog
from icefloe.errors import ValidationError
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS

MODES = ("copy-on-write", "merge-on-read")


def rows(*found: tuple[int, str]) -> Any:
    return pa.table({"id": pa.array([each[0] for each in found], pa.int64()), "region": [each[1] for each in found]})


def new_table(version: int, mode: str, isolation: str = "serializable") -> tuple[Catalog, Table]:
    catalog = load_catalog("memory", type="memory")
    catalog.create_namespace("shop")
    properties = {"format-version": str(version), "write.merge.mode": mode, "write.merge.isolation-level": isolation}
    table = catalog.create_table(
        "shop.t",
        "id long, region string",
        partition_spec=["region"],
        properties={**properties, "write.delete.mode": mode},
    )
    table.append(rows((1, "eu"), (2, "eu"), (3, "us")))
    return catalog, table


def content(catalog: Catalog) -> list[int]:
    return sorted(catalog.load_table("shop.t").scan().to_arrow().column("id").to_pylist())


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("incoming", [((2, "eu"), (8, "eu")), ((2, "eu"), (3, "eu"))], ids=["inserts", "updates"])
@pytest.mark.parametrize("goes", ["whole file", "row"])
def test_a_row_that_is_left_alone_must_not_go(version: int, mode: str, incoming: Any, goes: str) -> None:
    catalog, table = new_table(version, mode)
    catalog.load_table("shop.t").delete("region = 'eu'" if goes == "whole file" else "id = 2")
    with pytest.raises(ValidationError):
        table.upsert(rows(*incoming), ["id"])
    assert content(catalog) == ([3] if goes == "whole file" else [1, 3])


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("mode", MODES)
def test_rows_elsewhere_may_go(version: int, mode: str) -> None:
    catalog, table = new_table(version, mode)
    catalog.load_table("shop.t").delete("region = 'us'")
    table.upsert(rows((2, "eu"), (1, "eu"), (0, "eu")), ["id"])
    assert content(catalog) == [0, 1, 2]


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("mode", MODES)
def test_snapshot_isolation_allows_it(version: int, mode: str) -> None:
    catalog, table = new_table(version, mode, "snapshot")
    catalog.load_table("shop.t").delete("region = 'eu'")
    table.upsert(rows((2, "eu"), (8, "eu")), ["id"])
    assert content(catalog) == [3, 8]
