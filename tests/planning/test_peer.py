"""PyIceberg plans the same files of the same tables."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from icefloe.expressions import bind, evaluate, parse_expression
from icefloe.manifests import DataFile
from icefloe.partitioning import parse_partition_spec
from icefloe.planning import TableScan
from icefloe.schema import Schema, schema_to_arrow, types
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.peers.tables import HandmadeTable

SCHEMA = Schema(
    types.NestedField(1, "id", types.LongType(), required=True),
    types.NestedField(2, "name", types.StringType()),
    types.NestedField(3, "score", types.DoubleType()),
    types.NestedField(4, "day", types.DateType()),
)
ROWS: list[dict[str, Any]] = [
    {
        "id": number,
        "name": None if number % 7 == 0 else f"n{number % 5}",
        "score": float("nan") if number % 11 == 0 else number / 8,
        "day": date(2024, 1, 30) + timedelta(days=number % 4),
    }
    for number in range(24)
]
FILTERS = [
    "id > 17",
    "id = 7",
    "id in (3, 90)",
    "name = 'n4'",
    "name is null",
    "name is not null",
    "score < 1.5",
    "score is nan",
    "day >= '2024-02-01'",
    "day = '2024-01-30' and id < 3",
    "day = '2024-02-02' or id = 2",
]


@pytest.mark.parametrize("version", [version for version in ALL_VERSIONS if not allows(version, Feature.ROW_LINEAGE)])
@pytest.mark.parametrize("spec", [[], ["day"], ["bucket(4, id)"], ["truncate(1, name)", "months(day)"]])
def test_the_same_files_are_planned(tmp_path: Path, version: int, spec: list[str]) -> None:
    table = HandmadeTable(tmp_path, SCHEMA, version, parse_partition_spec(spec, SCHEMA))
    held: dict[str, list[dict[int, Any]]] = {}
    for start in range(0, len(ROWS), 8):
        table.commit(_write(table, ROWS[start : start + 8], held))
    theirs = StaticTable.from_metadata(table.save())
    for row_filter in ["", *FILTERS]:
        ours = {task.file.file_path for task in TableScan(table.metadata, table.storage, row_filter).plan_files()}
        scan = theirs.scan(row_filter=row_filter) if row_filter else theirs.scan()
        assert ours <= {task.file.file_path for task in scan.plan_files()}, row_filter
        bound = bind(parse_expression(row_filter or "true"), SCHEMA)
        needed = {path for path, rows in held.items() if any(evaluate(bound, row) for row in rows)}
        assert needed <= ours, row_filter
        if row_filter in ("", "id > 17", "day >= '2024-02-01'"):
            assert ours == {task.file.file_path for task in scan.plan_files()}, row_filter


def _write(table: HandmadeTable, rows: list[dict[str, Any]], held: dict[str, list[dict[int, Any]]]) -> list[DataFile]:
    """A file for each partition."""
    groups: dict[tuple[Any, ...], list[tuple[dict[str, Any], dict[int, Any]]]] = {}
    for row in rows:
        values = {field.field_id: row[field.name] for field in SCHEMA.fields}
        values[4] = (row["day"] - date(1970, 1, 1)).days
        spec = table.metadata.spec()
        key = tuple(
            each.transform.apply(values[each.source_id], SCHEMA.fields_by_id[each.source_id].field_type)
            for each in spec.fields
        )
        groups.setdefault(key, []).append((row, values))
    files = []
    for key, members in groups.items():
        file = table.write_data(pa.Table.from_pylist([row for row, _ in members], schema_to_arrow(SCHEMA)), key)
        held[file.file_path] = [values for _, values in members]
        files.append(file)
    return files
