"""Scans of random tables equal the naive definition: all rows, deletes by the spec's table, then the filter."""

import random
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, note, reject, settings, strategies as st

from icefloe.errors import InvalidValueError
from icefloe.expressions import Expression, bind, evaluate
from icefloe.manifests import DataFile, FileContent, ManifestCache, Metric
from icefloe.partitioning import PartitionField, PartitionSpec, transforms as tr
from icefloe.planning import PRUNING_SWITCHES, FileScanTask, TableScan
from icefloe.verification import Code, silent, verify
from icefloe.versions import ALL_VERSIONS
from tests.planning.histories import histories, random_predicate
from tests.planning.tables import SyntheticTable, name, same_partition
from tests.strategies import FILTER_SCHEMA, expressions, filter_rows, filter_specs

SWITCHES = [{}, *({each.key: "false"} for each in PRUNING_SWITCHES), {each.key: "false" for each in PRUNING_SWITCHES}]


class NaiveScan:
    """What a scan must give: all rows of all files, without those that a delete is about, each asked the predicate."""

    def __init__(self, table: SyntheticTable) -> None:
        self.table = table
        self.possible = table.naive_deletes()
        self._files = {name(each.data_file): each.data_file for each in table.live()}
        self._surviving: dict[tuple[str, frozenset[Any]], list[int]] = {}
        self._rows = [
            (path, position)
            for path, names in self.possible.items()
            for position in self.surviving(path, (self._files[each] for each in names))
        ]

    def surviving(self, path: str, deletes: Iterable[DataFile]) -> list[int]:
        """The positions of a file that none of the deletes is about; worked out once."""
        files = list(deletes)
        key = path, frozenset(map(name, files))
        if key not in self._surviving:
            self._surviving[key] = self.table.surviving(path, files)
        return self._surviving[key]

    def matching(self, predicate: Expression) -> list[tuple[str, int]]:
        """Path and position of every row that matches."""
        bound = bind(predicate, self.table.schema)
        rows = self.table.model.rows
        return sorted((path, position) for path, position in self._rows if evaluate(bound, rows[path][position]))

    def planned(self, tasks: Iterable[FileScanTask]) -> list[tuple[str, int]]:
        """Path and position of every row that a reader of these tasks would give."""
        rows = self.table.model.rows
        return sorted(
            (task.file.file_path, position)
            for task in tasks
            for position in self.surviving(task.file.file_path, task.deletes)
            if evaluate(task.residual, rows[task.file.file_path][position])
        )


def check_scans(data: st.DataObject, version: int, predicates: int) -> None:
    """One random table, so many random predicates, and for each a scan with every level of pruning, and without each."""
    table = data.draw(histories(version)).table
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    if table.metadata.current_snapshot() is None:
        assert list(TableScan(table.metadata, table.storage).plan_files()) == []
        return
    naive, cache = NaiveScan(table), ManifestCache()
    for _ in range(predicates):
        predicate = random_predicate(rng, table.schema)
        note(str(predicate))
        expected = naive.matching(predicate)
        for options in SWITCHES:
            scan = TableScan(
                table.metadata, table.storage, predicate, options={"planning.workers": "1", **options}, cache=cache
            )
            tasks = list(scan.plan_files())
            assert naive.planned(tasks) == expected, options
            paths = [task.file.file_path for task in tasks]
            assert len(set(paths)) == len(paths)
            for task in tasks:
                assert {name(each) for each in task.deletes} <= naive.possible[task.file.file_path]
    report = verify(table.metadata, table.storage, level="metadata", progress=silent, workers=1)
    # Deletes of files that are gone, and of rows that were never there, are part of these histories.
    assert report.codes <= {Code.DELETE_DANGLING}, str(report)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=8)
@given(data=st.data())
def test_a_scan_gives_the_rows_that_match(version: int, data: st.DataObject) -> None:
    check_scans(data, version, predicates=5)


@pytest.mark.deep
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=100, derandomize=False)
@given(data=st.data())
def test_a_scan_gives_the_rows_that_match_in_tens_of_thousands_of_cases(version: int, data: st.DataObject) -> None:
    check_scans(data, version, predicates=25)


def shown(task: FileScanTask) -> str:
    """The task as a text, since NaN is not equal to itself; maps have no order."""
    metrics: Any = {each.value: dict(sorted(getattr(task.file, each.value).items())) for each in Metric}
    return repr(task.replace(file=replace(task.file, **metrics)))


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=10)
@given(data=st.data())
def test_manifests_in_memory_are_planned_as_those_in_files(version: int, data: st.DataObject) -> None:
    table = data.draw(histories(version)).table
    rng, cache = random.Random(data.draw(st.integers(0, 2**32))), ManifestCache()
    for predicate in ("", random_predicate(rng, table.schema), random_predicate(rng, table.schema)):
        note(str(predicate))
        for scan in (
            TableScan(table.metadata, table.storage, predicate),
            TableScan(table.metadata, table.storage, predicate).with_metrics(),
        ):
            expected = list(map(shown, scan.plan_files()))
            # The second of them finds all manifests in memory, and the third those that were put together.
            for _ in range(3):
                again = replace(scan, cache=cache)
                assert list(map(shown, again.plan_files())) == expected
                with replace(scan, cache=cache).plan() or nullcontext(()) as batches:
                    for batch in batches:
                        few = rng.randint(0, len(batch) + 1)
                        assert list(map(shown, batch.first(few).tasks())) == list(map(shown, batch.tasks()))[:few]
                if scan.report is not None:
                    assert again.report is not None
                    assert again.report.counts == scan.report.counts


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=12)
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
@settings(max_examples=12)
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
            if not isinstance(each.transform, tr.UnknownTransform)
        )
    )
