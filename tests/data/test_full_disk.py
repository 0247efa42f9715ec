"""A disk that is full, or gets full while rows are written: the table is as it was, and takes no more space than before."""

import os
from pathlib import Path

import pytest

from icefloe.catalog import load_catalog
from tests.data.use_full_disk import append, make, some_rows
from tests.small_disk import no_file_beyond, run_on_small_disk, why_no_small_disk


@pytest.mark.skipif(why_no_small_disk() is not None, reason=str(why_no_small_disk()))
@pytest.mark.parametrize("catalog", ["sql", "hadoop"])
def test_a_full_disk_leaves_the_table_as_it_was(tmp_path: Path, catalog: str) -> None:
    """The program checks the table after each append; here is what the appends said, with ever more space."""
    problems = run_on_small_disk("tests.data.use_full_disk", tmp_path / "disk", "3m", catalog)
    refused = [each for each in problems if each]
    assert all("No space left on device" in each or "disk is full" in each for each in refused), refused
    for kind in (".parquet: ", "-m0.avro: ", "/snap-"):
        assert any(kind in each for each in refused), f"no {kind} was refused: {refused}"


@pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
def test_files_that_may_not_grow_leave_the_table_as_it_was(tmp_path: Path, file_format: str) -> None:
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/warehouse"
    )
    catalog.create_namespace("db")
    table = make(catalog, "limited", file_format)
    with no_file_beyond(100_000, [os.getpid()]):
        assert "File too large" in append(table, some_rows(10_000))
        assert append(table, some_rows(10)) == ""
    assert append(table, some_rows(10_000)) == ""
