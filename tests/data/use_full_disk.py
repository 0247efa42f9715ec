"""A program that appends rows to tables on a disk that gets full; run by test_full_disk, which gives it such a disk."""

import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from icefloe.catalog import Catalog, load_catalog
from icefloe.errors import IcefloeError
from icefloe.maintenance import reachable_files
from icefloe.table import Table

PAGE = 4096


def free_bytes(table: Table) -> int:
    """What is left of the table's disk."""
    found = os.statvfs((table.location() or "").removeprefix("file://"))
    return found.f_bavail * found.f_frsize


def stored(table: Table) -> set[str]:
    """All files in the table's folder."""
    found = {info.location for info in table.storage.list_prefix(table.location() or "")}
    return {each for each in found if not each.endswith("/version-hint.text")}


def some_rows(count: int) -> Any:
    """Rows that no codec makes smaller."""
    values = [os.urandom(64) for _ in range(count)]
    return pa.table({"id": range(count), "p": [each % 3 for each in range(count)], "b": values})


def check_whole(table: Table) -> None:
    """No file is missing, and none is there that nobody knows."""
    needed = set(reachable_files(table.metadata, table.metadata_location, table.storage).all())
    assert stored(table) == needed, (stored(table) - needed, needed - stored(table))


def append(table: Table, rows: Any) -> str:
    """Try to append: all rows are there then, or none, and nothing else."""
    before, count = table.metadata, table.scan().count()
    problem = ""
    try:
        table.append(rows)
    except IcefloeError as error:
        problem = f"{type(error).__name__}: {error}"
    table.refresh()
    assert table.scan().count() == count + (0 if problem else rows.num_rows), problem
    if problem:
        assert table.metadata == before
    check_whole(table)
    return problem


def make(catalog: Catalog, name: str, file_format: str) -> Table:
    """A table with some rows."""
    properties = {"format-version": "3", "write.format.default": file_format, "write.target-file-size-bytes": "200000"}
    table = catalog.create_table(
        f"db.{name}", "id bigint, p bigint, b binary", partition_spec=["p"], properties=properties
    )
    table.append(some_rows(10))
    return table


def fill(table: Table, ballast: Path, left: int) -> None:
    """Take all of the disk but for so many bytes, with one file."""
    ballast.write_bytes(bytes(max(0, free_bytes(table) - left)))


def main(folder: str, kind: str) -> None:
    """Rows that do not fit; then rows that fit, with ever more space for what is written beside them."""
    uri = {"uri": f"sqlite:///{folder}/catalog.db"} if kind == "sql" else {}
    catalog = load_catalog("lake", type=kind, warehouse=f"{folder}/warehouse", **uri)
    catalog.create_namespace("db")
    for file_format in ("parquet", "avro", "orc"):
        table = make(catalog, file_format, file_format)
        problem = append(table, some_rows(60_000))
        assert "No space left" in problem, problem
        assert append(table, some_rows(10)) == ""
    table = make(catalog, "small", "parquet")
    outcomes = []
    for pages in range(20):
        fill(table, Path(folder) / "ballast", pages * PAGE)
        outcomes.append(append(table, some_rows(10)))
        assert not outcomes[-1] or free_bytes(table) >= (pages - 1) * PAGE, "the failed write still takes space"
        (Path(folder) / "ballast").unlink()
    print("\n".join(outcomes))  # noqa: T201  # for the test
    assert outcomes[0]
    assert not outcomes[-1]
    assert append(table, some_rows(10)) == ""
    table.verify().raise_if_broken()


if __name__ == "__main__":
    main(*sys.argv[1:])
