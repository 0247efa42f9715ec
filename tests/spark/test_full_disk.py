"""A disk that gets full while Spark writes: the table is as it was, and no file of the write is left."""

from pathlib import Path
from typing import Any

import pytest

from icefloe.catalog import load_catalog
from tests.small_disk import descendants, no_file_beyond, run_on_small_disk, why_no_small_disk
from tests.spark.conftest import missing_java
from tests.spark.use_full_disk import TABLES, check_refused, make, some_rows


def test_files_that_may_not_grow_leave_the_table_as_it_was(spark: Any, tmp_path: Path) -> None:
    catalog = load_catalog("lake", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    for name in TABLES:
        table = make(catalog, name)
        # The workers of Python are there from now on.
        table.append(some_rows(spark, table, 100))
        with no_file_beyond(100_000, descendants()):
            check_refused(table, lambda: table.append(some_rows(spark, table, 20_000)), "File too large")  # noqa: B023  # run at once
        table.append(some_rows(spark, table, 100))
        assert table.scan().count() == 200


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(missing_java() is not None, reason=str(missing_java()))
@pytest.mark.skipif(why_no_small_disk() is not None, reason=str(why_no_small_disk()))
def test_a_full_disk_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    run_on_small_disk("tests.spark.use_full_disk", tmp_path / "disk", "6m", timeout=800)
