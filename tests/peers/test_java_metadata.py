"""The same changes by Java Iceberg and by us leave the same metadata, but for differences that are listed with reasons."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from icefloe.table import Table
from icefloe.versions import Feature, allows
from tests.formats.rows import plain
from tests.peers.java import JAVA_VERSIONS
from tests.peers.lake import MODES, Lake, row_level, versions_and_modes

ENGINE = ("app-name", "engine-name", "engine-version", "app-id", "spark.app.id", "iceberg-version")
SIZES = ("added-files-size", "removed-files-size", "total-files-size")
DIFFERENCES = {
    **{f"summary {key}": "each engine says who it is" for key in ENGINE},
    **{f"summary {key}": "the same rows take other bytes in the files of another Parquet writer" for key in SIZES},
    "file sort_order_id": "of files in no order Java says 0, which is the order of none; we say nothing, which means the same",
}
"""What need not agree, and why."""

RESERVED_FROM = 2_147_483_000
"""Metrics of reserved columns are not compared: paths are other paths, Java has no counts of position deletes, and row ids
are given in the order of a commit's files, which is free. Those of all columns of the table must agree."""

JOINED_DELETES = (
    "file ",
    "entry ",
    "manifest ",
    "summary manifests-",
    "summary added-position-",
    "summary removed-",
    "summary total-delete-",
)
"""From the second delete of a v2 file on: Java replaces its position delete file by one with the old and the new
positions, and we add another one beside it. From v3 on both replace the deletion vector."""
SECOND_DELETE = 3
"""The first step that deletes from a file with deletes."""

COLUMNS = "id long not null, region string, price double, day date, note string"
THEIR_COLUMNS = "id BIGINT NOT NULL, region STRING, price DOUBLE, day DATE, note STRING"
FILE_COLUMNS = (
    "content",
    "file_format",
    "spec_id",
    "partition",
    "record_count",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
    "sort_order_id",
    "equality_ids",
)
ENTRY_COLUMNS = ("status", "sequence_number", "file_sequence_number")
SORTING = ("content", "partition", "record_count", "status", "sequence_number", "added_data_files_count")
MANIFEST_COLUMNS = (
    "content",
    "partition_spec_id",
    "added_data_files_count",
    "existing_data_files_count",
    "deleted_data_files_count",
    "added_delete_files_count",
    "existing_delete_files_count",
    "deleted_delete_files_count",
    "partition_summaries",
)


def values(start: int, stop: int) -> list[tuple[Any, ...]]:
    """Rows of two regions: nulls, NaNs, texts that are too long for a bound."""
    return [
        (
            i,
            ("eu", "us")[i % 2],
            None if i % 5 == 0 else float("nan") if i % 5 == 1 else i / 4,
            None if i % 7 == 0 else dt.date(2020, 1, 1) + dt.timedelta(days=i),
            "é" * 30 + str(i),
        )
        for i in range(start, stop)
    ]


def arrow(rows: list[tuple[Any, ...]]) -> Any:
    names = ("id", "region", "price", "day", "note")
    kinds = (pa.int64(), pa.string(), pa.float64(), pa.date32(), pa.string())
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)], names=names)


def sql(rows: list[tuple[Any, ...]]) -> str:
    return ", ".join(f"({', '.join(map(literal, row))})" for row in rows)


def literal(value: Any) -> str:
    match value:
        case None:
            return "null"
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case dt.date():
            return f"DATE'{value}'"
        case str():
            return f"'{value}'"
        case _:
            return str(value)


STEPS: tuple[tuple[Callable[[Table], object], str], ...] = (
    (lambda table: table.append(arrow(values(0, 10))), f"INSERT INTO {{}} VALUES {sql(values(0, 10))}"),
    (lambda table: table.append(arrow(values(10, 13))), f"INSERT INTO {{}} VALUES {sql(values(10, 13))}"),
    (lambda table: table.delete("id = 2"), "DELETE FROM {} WHERE id = 2"),
    (lambda table: table.delete("id in (3, 4)"), "DELETE FROM {} WHERE id IN (3, 4)"),
    (lambda table: table.delete("region = 'us'"), "DELETE FROM {} WHERE region = 'us'"),
    (
        lambda table: table.dynamic_partition_overwrite(arrow(values(30, 31))),
        f"INSERT OVERWRITE {{}} VALUES {sql(values(30, 31))}",
    ),
)


@pytest.mark.parametrize(("version", "mode"), versions_and_modes(JAVA_VERSIONS))
def test_the_same_changes_leave_the_same_metadata(lake: Lake, version: int, mode: str) -> None:
    ours = lake.create(version, COLUMNS, partition_spec=["region"], properties=row_level(mode))
    name, there = lake.made_by_java(version, THEIR_COLUMNS, "PARTITIONED BY (region)", mode)
    theirs = lake.sql_catalog.load_table(name)
    found: set[str] = set()
    for place, (change, statement) in enumerate(STEPS):
        change(ours)
        lake.java.sql(statement.format(there), **{"spark.sql.sources.partitionOverwriteMode": "dynamic"})
        theirs.refresh()
        is_joined = place >= SECOND_DELETE and mode == MODES[1] and allows(version, Feature.NEW_POSITION_DELETE_FILES)
        more = JOINED_DELETES if is_joined else ()
        found |= {f"step {place}: {each}" for each in differences(described(ours), described(theirs), more)}
    assert not found, "\n".join(sorted(found))
    lake.same(ours)
    lake.same(theirs)


def described(table: Table) -> dict[str, Any]:
    """What is compared of the current state of a table, each thing under a name."""
    metadata, snapshot = table.metadata, table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    found = {
        "operation": snapshot.summary.operation,
        "sequence number": snapshot.sequence_number,
        "last sequence number": metadata.last_sequence_number,
        "row ids": (snapshot.first_row_id, snapshot.added_rows, metadata.next_row_id),
    }
    found |= {f"summary {key}": text for key, text in snapshot.summary.properties.items()}
    for title, rows, columns in (
        ("file", table.inspect.files(), FILE_COLUMNS),
        ("manifest", table.inspect.manifests(), MANIFEST_COLUMNS),
        ("entry", table.inspect.entries(), ENTRY_COLUMNS),
    ):
        listed = sorted(rows.to_pylist(), key=lambda row: str([row.get(column) for column in SORTING]))
        found |= {
            f"{title} {column}": [_of_table_columns(plain(row[column])) for row in listed]
            for column in columns
            if column in rows.schema.names
        }
    return found


def _of_table_columns(value: Any) -> Any:
    """Metrics by the ids of columns, in order, without those of reserved ones; anything else as it is."""
    if isinstance(value, list) and value and all(isinstance(each, list) for each in value):
        return sorted(each for each in value if each[0] < RESERVED_FROM) or None
    return value


def differences(ours: dict[str, Any], theirs: dict[str, Any], but: tuple[str, ...]) -> list[str]:
    """What differs, is not listed above, and does not start with one of some names."""
    different = [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]
    unlisted = [name for name in different if name not in DIFFERENCES and not name.startswith(but)]
    return [f"{name}: {ours.get(name)} and {theirs.get(name)}" for name in unlisted]
