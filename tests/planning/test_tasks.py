"""Tasks of plans: made when something is asked of them, and then values like any other."""

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from icefloe.expressions import AlwaysTrue, Expression
from icefloe.manifests import DataFile
from icefloe.planning import FileScanTask
from icefloe.planning.tasks import PlannedTask

DELETE = DataFile("d", "puffin", 1, 40)


class Source:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def task_at(self, row: int) -> tuple[DataFile, tuple[DataFile, ...], Expression, int]:
        self.asked += 1
        return DataFile(f"f{row}", "parquet", 10, 100), (DELETE,) if row % 2 else (), AlwaysTrue(), 7


def plain(row: int) -> FileScanTask:
    return FileScanTask(*Source().task_at(row))


def test_nothing_is_made_until_something_is_asked() -> None:
    source = Source()
    task = PlannedTask(source, 1)
    assert source.asked == 0
    assert (task.file.file_path, task.deletes, task.start, task.length) == ("f1", (DELETE,), 0, None)
    assert source.asked == 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda task: task == plain(1),
        lambda task: plain(1) == task,
        lambda task: task == PlannedTask(Source(), 1),
        lambda task: task != plain(2),
        lambda task: plain(2) != task,
        lambda task: task != "f1",
        lambda task: hash(task) == hash(plain(1)),
        lambda task: repr(task) == repr(plain(1)),
        lambda task: {task: 1}[plain(1)] == 1,
        lambda task: copy.copy(task) == plain(1),
        lambda task: copy.deepcopy(task) == plain(1),
        lambda task: task.size_bytes == 140,
        lambda task: task.replace(start=4, length=6) == plain(1).replace(start=4, length=6),
    ],
)
def test_it_is_the_same_value_as_a_plain_one(ask: Callable[[FileScanTask], bool]) -> None:
    assert ask(PlannedTask(Source(), 1))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_hold_no_more_than_the_task(protocol: int) -> None:
    planned, expected = (pickle.dumps(each, protocol) for each in (PlannedTask(Source(), 1), plain(1)))
    assert len(planned) <= len(expected)
    found = pickle.loads(planned)
    assert found == plain(1)
    assert type(found) is FileScanTask


@pytest.mark.parametrize("name", ["file", "deletes", "residual", "sequence_number", "start", "length"])
def test_fields_cannot_be_set(name: str) -> None:
    task: Any = PlannedTask(Source(), 1)
    with pytest.raises(AttributeError):
        setattr(task, name, None)
    assert task == plain(1)


def test_threads_may_ask_at_once() -> None:
    tasks = [PlannedTask(Source(), 1) for _ in range(2000)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda task: task.file.file_path, [task for task in tasks for _ in range(2)]))
    assert set(found) == {"f1"}
