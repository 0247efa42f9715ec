"""Scans of random tables equal the naive definition: all rows, deletes by the spec's table, then the filter."""

from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from icefloe.errors import InvalidValueError
from icefloe.expressions import Expression
from icefloe.manifests import FileContent
from icefloe.partitioning.spec import PartitionField, PartitionSpec
from icefloe.partitioning.transforms import (
    UnknownTransform,
)
from icefloe.planning import PRUNING_SWITCHES, TableScan
from icefloe.versions import ALL_VERSIONS
from tests.planning.histories import histories, leaves
from tests.planning.tables import SyntheticTable, name, same_partition
from tests.strategies import FILTER_SCHEMA, expressions, filter_rows, filter_specs

SWITCHES = [{}, *({each.key: "false"} for each in PRUNING_SWITCHES), {each.key: "false" for each in PRUNING_SWITCHES}]


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=30)
@given(data=st.data())
def test_a_scan_gives_the_rows_that_match(version: int, data: st.DataObject) -> None:
    history = data.draw(histories(version))
    table = history.table
    if table.metadata.current_snapshot() is None:
        assert list(TableScan(table.metadata, table.storage).plan_files()) == []
        return
    predicate = data.draw(expressions(leaves(table.schema)))
    expected = table.naive_rows(predicate)
    possible = table.naive_deletes()
    for options in SWITCHES:
        scan = TableScan(table.metadata, table.storage, predicate, options={"planning.workers": "1", **options})
        tasks = list(scan.plan_files())
        assert table.planned_rows(tasks) == expected, options
        paths = [task.file.file_path for task in tasks]
        assert len(set(paths)) == len(paths)
        for task in tasks:
            assert {name(each) for each in task.deletes} <= possible[task.file.file_path]


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=20)
@given(data=st.data())
def test_without_pruning_every_file_has_exactly_its_deletes(version: int, data: st.DataObject) -> None:
    table = data.draw(histories(version)).table
    if table.metadata.current_snapshot() is None:
        return
    options = {each.key: "false" for each in PRUNING_SWITCHES}
    scan = TableScan(table.metadata, table.storage, options={"planning.workers": "1", **options})
    found = {task.file.file_path: {name(each) for each in task.deletes} for task in scan.plan_files()}
    assert found == table.naive_deletes()
    live = {each.data_file.file_path: each for each in table.live()}
    for task in scan.with_metrics().plan_files():
        entry = live[task.file.file_path]
        assert same_partition(task.file.partition, entry.data_file.partition)
        assert (task.sequence_number, task.first_row_id) == (entry.sequence_number, entry.data_file.first_row_id)
        assert task.file.content is FileContent.DATA


@pytest.mark.parametrize("version", [3, 4])
@settings(max_examples=20)
@given(
    predicate=expressions(),
    rows=st.lists(filter_rows(), min_size=1, max_size=4),
    spec=st.one_of(st.just(PartitionSpec()), filter_specs()),
)
def test_columns_of_every_type(version: int, predicate: Expression, rows: list[Any], spec: PartitionSpec) -> None:
    table = SyntheticTable(FILTER_SCHEMA, version, _named(spec))
    files = []
    for values in rows:
        row = {field.field_id: value for field, value in zip(FILTER_SCHEMA.fields, values, strict=True)}
        try:
            files.append(table.data([row]))
        except InvalidValueError:
            reject()  # values at the end of their type have no partition
    table.add(*files)
    expected = table.naive_rows(predicate)
    for options in (SWITCHES[0], SWITCHES[-1]):
        scan = TableScan(table.metadata, table.storage, predicate, options={"planning.workers": "1", **options})
        assert table.planned_rows(scan.plan_files()) == expected, options


def _named(spec: PartitionSpec) -> PartitionSpec:
    """A spec that a new table takes: without two fields that say the same."""
    kept: dict[Any, PartitionField] = {}
    for each in spec.fields:
        kept.setdefault((each.source_ids, each.transform), each)
    return PartitionSpec(
        *(
            PartitionField(each.source_ids, 1000 + place, each.transform, f"p{place}")
            for place, each in enumerate(kept.values())
            if not isinstance(each.transform, UnknownTransform)
        )
    )
