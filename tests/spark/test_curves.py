"""Rewrites along curves as jobs of Spark: the same rows, in files that are near in several columns."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icefloe import Table, load_catalog
from icefloe.verification import silent


def new_table(folder: Path) -> Table:
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "files"))
    catalog.create_namespace_if_not_exists("db")
    schema = "a BIGINT, `b c` TIMESTAMP, name STRING"
    table = catalog.create_table("db.t", schema, properties={"format-version": "3"})
    random = np.random.default_rng(1)
    moments = pa.array(random.integers(0, 10**15, 600), pa.timestamp("us"))
    names = pa.array([f"text-{number % 50}" if number % 7 else None for number in range(600)])
    table.append(pa.table({"a": random.permutation(600), "b c": moments, "name": names}))
    return table


def content(table: Table) -> list[str]:
    return sorted(map(repr, table.scan(selected_fields=("*", "_row_id")).to_arrow().to_pylist()))


@pytest.mark.parametrize(("order", "key"), [("zorder(a, `b c`, name)", "rank"), ("hilbert(a, `b c`)", "bytes")])
def test_a_rewrite_along_a_curve(spark: Any, tmp_path: Path, order: str, key: str) -> None:
    table = new_table(tmp_path)
    before = content(table)
    size = sum(task.file.file_size_in_bytes for task in table.scan().plan_files())
    options = {"rewrite-all": "true", "target-file-size-bytes": str(size // 4), "max-file-size-bytes": str(100 * size)}
    table.maintenance.rewrite_data_files(sort_order=order, options={**options, "zorder-key": key}, engine=spark)
    assert content(table.refresh()) == before
    files = list(table.scan().plan_files())
    assert len(files) >= 4
    read = [len(list(table.scan(text).plan_files())) for text in ("a < 150", "`b c` < '1978-01-01T00:00:00'")]
    # By bytes, a column of small numbers does not count beside one of large ones.
    assert (max if key == "rank" else min)(read) < len(files)
    report = table.verify(level="data", progress=silent)
    assert report.ok, str(report)
