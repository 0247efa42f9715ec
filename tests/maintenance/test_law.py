"""The one law of maintenance: rows, their ids and the numbers of their last updates are the same before and after."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from icefloe import Table
from icefloe.maintenance import GroupOutcome, RewrittenManifests
from icefloe.versions import ALL_VERSIONS
from tests.maintenance.histories import History, check_same_rows, new_table, rows_of_snapshots, steps
from tests.maintenance.worn import SETTLED

FUTURE = 32_503_680_000_000
Draw = Callable[[st.SearchStrategy[int]], int]


def _expire(table: Table, draw: Draw) -> None:
    table.maintenance.expire_snapshots(older_than=FUTURE, retain_last=draw(st.integers(1, 4)))


def _rewrite_data_files(table: Table, draw: Draw) -> None:
    number = draw(st.integers(0, 255))
    specs = sorted(table.specs())
    options = {
        "rewrite-all": number % 2 == 0,
        "min-input-files": 1 + number // 2 % 3,
        "target-file-size-bytes": (600, 1 << 20)[number // 6 % 2],
        "delete-file-threshold": (1, 5)[number // 12 % 2],
        "rewrite-old-specs": number // 24 % 2 == 0,
        "partial-progress.enabled": number // 48 % 2 == 0,
        "output-spec-id": specs[number % len(specs)],
        "use-starting-sequence-number": number % 5 != 0,
        "max-file-group-input-files": 1 + number % 3,
    }
    for branch in ("main", *(name for name, ref in table.refs().items() if ref.is_branch and name != "main")):
        where = "k < 10" if number % 7 == 0 else None
        order = (None, None, "k DESC", "price NULLS LAST, name")[number % 4]
        order = order if order is None or {"price", "name"} <= set(table.schema().column_names) else None
        result = table.maintenance.rewrite_data_files(None, order, where, options, branch)
        assert all(group.outcome is GroupOutcome.COMMITTED for group in result.groups), result


def _rewrite_manifests(table: Table, draw: Draw) -> None:
    table.maintenance.rewrite_manifests()
    assert table.maintenance.rewrite_manifests() == RewrittenManifests()


def _compute_statistics(table: Table, draw: Draw) -> None:
    snapshot = table.snapshots()[draw(st.integers(0, len(table.snapshots()) - 1))]
    table.maintenance.compute_table_stats(snapshot.snapshot_id)
    if any(spec.fields for spec in table.specs().values()):
        table.maintenance.compute_partition_stats(snapshot.snapshot_id)


def _maintain(table: Table, draw: Draw) -> None:
    report = table.maintenance.maintain(SETTLED | {"maintenance.deletes.enabled": draw(st.integers(0, 3)) > 0})
    assert report.exit_code == 0, report


PROCEDURES: dict[str, Callable[[Table, Draw], object]] = {
    "maintain": _maintain,
    "compute statistics": _compute_statistics,
    "convert equality deletes": lambda table, _: table.maintenance.convert_equality_deletes(),
    "expire snapshots": _expire,
    "remove dangling deletes": lambda table, _: table.maintenance.remove_dangling_deletes(),
    "rewrite position deletes": lambda table, draw: table.maintenance.rewrite_position_delete_files(
        min_input_files=draw(st.integers(1, 5))
    ),
    "rewrite data files": _rewrite_data_files,
    "rewrite manifests": _rewrite_manifests,
}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=settings().max_examples // 10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_maintenance_changes_no_row(
    version: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    history = History(new_table(tmp_path_factory.mktemp("law"), version))
    history.step("append", 0)
    for name, number in data.draw(steps()):
        history.step(name, number)
    for name in data.draw(st.lists(st.sampled_from(sorted(PROCEDURES)), min_size=1, max_size=4)):
        before = rows_of_snapshots(history.table)
        try:
            PROCEDURES[name](history.table, data.draw)
            check_same_rows(before, history.table)
        except Exception as error:
            error.add_note(f"{name} after {history.steps}")
            raise
        history.step(*data.draw(steps(max_size=1, min_size=1))[0])
