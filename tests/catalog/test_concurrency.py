"""Many processes write to one table: nothing is lost, nothing comes twice."""

import multiprocessing
from typing import Any

import pytest

from icefloe.verification import silent
from tests.catalog.tables import PATIENT, SCHEMA, Maker, is_linear, live_files
from tests.catalog.workers import NAME, append_many

shared_kinds = pytest.mark.parametrize("kind", ["sqlite", "postgres", "hadoop"])


def append_from_processes(make: Maker, processes: int, count: int, method: str) -> None:
    created = make()
    created.create_namespace("shop")
    created.create_table(NAME, SCHEMA, properties=PATIENT)
    context: Any = multiprocessing.get_context(method)
    start, results = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=append_many, args=(make.name, make.properties, number, count, start, results))
        for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    written = [path for _ in workers for path in results.get(timeout=1100)]
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
    table = created.load_table(NAME)
    assert len(written) == processes * count
    assert sorted(live_files(table)) == sorted(written)
    assert len(table.snapshots()) == processes * count
    assert is_linear(table)
    sequence = [snapshot.sequence_number for snapshot in table.snapshots()]
    assert sequence == list(range(1, processes * count + 1))
    assert len(table.history()) == processes * count
    report = table.verify(progress=silent)
    assert report.clean, str(report)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@shared_kinds
def test_four_processes_append_eight_files_each(make: Maker) -> None:
    append_from_processes(make, 4, 8, "fork")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@shared_kinds
def test_eight_processes_append_fifty_files_each(make: Maker) -> None:
    append_from_processes(make, 8, 50, "spawn")
