"""Scans of random tables that a server plans, in pages of any size, are those that are planned here."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, note, settings, strategies as st

from icefloe.catalog.rest.planner import RestPlanner
from icefloe.errors import InvalidExpressionError
from icefloe.expressions import expression_to_term_json
from icefloe.planning import TableScan, parsed_filter
from icefloe.server.planning import PlanningService, PlanningSettings
from icefloe.versions import ALL_VERSIONS
from tests.planning.histories import histories, random_predicate
from tests.planning.tables import SyntheticTable
from tests.planning.test_property import NaiveScan
from tests.rest.test_plans import without_numbers
from tests.server.planning.serving import served

SIZES = [(1, 1), (2, 2), (3, 1000), (1000, 1000)]
"""Files in a page, and plan tasks in an answer."""


@pytest.fixture(scope="module")
def services() -> Iterator[list[PlanningService]]:
    made = [PlanningService(PlanningSettings(page_files=files, most_parts=parts)) for files, parts in SIZES]
    yield made
    for service in made:
        service.close()


def comparable(tasks: Any) -> list[str]:
    """Tasks without their order; deletes of a task, too, have none."""
    return sorted(repr(task.replace(deletes=tuple(sorted(task.deletes, key=repr)))) for task in without_numbers(tasks))


@pytest.mark.parametrize("version", ALL_VERSIONS)
# To shrink a table takes minutes, and tells no more than its history, which a failure shows.
@settings(max_examples=6, phases=[Phase.generate])
@given(data=st.data())
def test_a_scan_that_a_server_plans_is_that_which_is_planned_here(
    version: int, data: st.DataObject, services: list[PlanningService]
) -> None:
    table: SyntheticTable = data.draw(histories(version)).table
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    naive = NaiveScan(table)
    for service in services:
        scan = random_scan(table, rng)
        note(str(scan.row_filter))
        remote = replace(scan, planner=RestPlanner(served(scan, service)))
        planned = list(remote.plan_files())
        if is_sent_whole(scan):
            assert comparable(planned) == comparable(scan.plan_files())
        if scan.snapshot_id is None and table.metadata.current_snapshot() is not None:
            assert naive.planned(planned) == naive.matching(parsed_filter(scan.row_filter))


def random_scan(table: SyntheticTable, rng: random.Random) -> TableScan:
    """A scan of any snapshot, with any filter."""
    scan = TableScan(table.metadata, table.storage, options={"planning.workers": str(rng.choice([1, 3]))})
    if rng.random() < 0.3 and table.metadata.snapshots:
        scan = replace(scan, snapshot_id=rng.choice(table.metadata.snapshots).snapshot_id)
    if rng.random() < 0.3:
        scan = scan.with_metrics()
    return replace(scan, row_filter=random_predicate(rng, scan.schema))


def is_sent_whole(scan: TableScan) -> bool:
    """Whether JSON can say all of the filter."""
    try:
        expression_to_term_json(scan.bound_filter)
    except InvalidExpressionError:
        return False
    return True
