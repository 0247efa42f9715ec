"""The line on a terminal: after two seconds of work, not too often, one for each stage."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

import icefloe
from icefloe.progress import LogLines, NotebookLine, Progress, ProgressBar, Stage, listener_or_bar, silent


class Clock:
    """A time that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def shown_after(steps: list[float], total: int | None = None) -> str:
    """What the bar wrote while each step took so many seconds."""
    stream, clock = io.StringIO(), Clock()
    stage = Stage("files", len(steps) if total is None else total, ProgressBar(stream, clock))
    for seconds in steps:
        clock.now += seconds
        stage.step()
    return stream.getvalue()


@given(st.lists(st.floats(0, 0.19), max_size=10))
def test_work_below_two_seconds_shows_nothing(steps: list[float]) -> None:
    assert shown_after(steps) == ""


def test_work_of_two_seconds_shows_a_line() -> None:
    assert shown_after([1.0, 0.9], total=3) == ""
    assert shown_after([1.0, 1.0], total=3) == "\rfiles      [####################..........] 2/3"
    assert shown_after([1.0, 0.5, 0.6]).endswith("[##############################] 3/3\n")


@given(st.lists(st.floats(0, 3), min_size=1, max_size=50))
def test_a_stage_is_one_line_that_is_not_written_too_often(steps: list[float]) -> None:
    shown = shown_after(steps)
    assert shown.count("\n") == (sum(steps) >= 2)
    assert shown.count("\r") <= 2 + sum(steps) / 0.1


def test_a_shorter_line_covers_a_longer_one() -> None:
    stream, clock = io.StringIO(), Clock()
    bar = ProgressBar(stream, clock)
    clock.now += 3
    bar(Progress("a long name of a stage", 1, 1000))
    clock.now += 3
    bar(Progress("short", 2, 1000))
    first, second = stream.getvalue().split("\r")[1:]
    assert len(first) == len(second)


def test_the_second_stage_is_shown_at_once_when_the_first_took_long() -> None:
    stream, clock = io.StringIO(), Clock()
    bar = ProgressBar(stream, clock)
    clock.now += 2.5
    bar(Progress("first", 1, 1))
    bar(Progress("second", 1, 5))
    assert stream.getvalue().count("\n") == 1
    assert "second" not in stream.getvalue()
    clock.now += 0.1
    bar(Progress("second", 2, 5))
    assert "second     [############" in stream.getvalue()


def test_a_listener_hears_of_every_step_at_once() -> None:
    told: list[Progress] = []
    stage = Stage("files", 2, listener_or_bar(told.append))
    stage.step()
    stage.step()
    assert told == [Progress("files", 1, 2), Progress("files", 2, 2)]
    assert listener_or_bar(None) is silent


class Displayed:
    """Stands for a line that a notebook shows."""

    def __init__(self) -> None:
        self.updates: list[object] = []

    def update(self, line: object) -> None:
        self.updates.append(line)


def test_a_notebook_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, lines = Displayed(), []

    def display(line: object, display_id: bool) -> Displayed:
        lines.append(line)
        return shown

    class Kernel:
        kernel = object()

    notebook = SimpleNamespace(get_ipython=Kernel)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    assert isinstance(listener_or_bar(None), NotebookLine)
    clock = Clock()
    line = NotebookLine(clock)
    line(Progress("files", 1, 3))
    assert lines == []
    clock.now += 3
    line(Progress("<files>", 2, 3))
    clock.now += 3
    line(Progress("<files>", 3, 3))
    assert lines == ['&lt;files&gt; <progress max="3" value="2"></progress> 2/3']
    assert shown.updates == ['&lt;files&gt; <progress max="3" value="3"></progress> 3/3']


def test_a_log_has_a_line_every_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    assert listener_or_bar(None) is silent
    with caplog.at_level("INFO", "icefloe.progress"):
        assert isinstance(listener_or_bar(None), LogLines)
        lines = LogLines(clock)
        for done in range(1, 26):
            clock.now += 1
            lines(Progress("files", done, 25))
    assert caplog.messages == ["files: 10 of 25", "files: 20 of 25"]


def test_scans_and_added_files_tell_how_far_they_are(tmp_path: Path) -> None:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse="memory://progress/lake")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", "id long")
    rows = pa.table({"id": [1, 2, 3]})
    for _ in range(3):
        table.append(rows)
    told: list[Progress] = []
    assert table.scan().to_arrow(progress=told.append).num_rows == 9
    assert told == [Progress("files", done, 3) for done in (1, 2, 3)]
    told.clear()
    assert len(table.scan().to_pandas(progress=told.append)) == len(table.scan().to_polars(progress=told.append)) == 9
    assert [each.done for each in told] == [1, 2, 3, 1, 2, 3]
    told.clear()
    assert table.scan(limit=2).to_arrow(progress=told.append).num_rows == 2
    assert table.scan("id > 1").count(progress=told.append) == 6
    assert [each.total for each in told] == [3, 3, 3]
    told.clear()
    pq.write_table(rows, tmp_path / "a.parquet")
    table.add_files([str(tmp_path / "a.parquet")], progress=told.append)
    assert told == [Progress("files", 1, 1)]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_changes_of_rows_tell_how_far_they_are(mode: str) -> None:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=f"memory://progress/{mode}")
    catalog.create_namespace("n")
    properties = {"write.delete.mode": mode, "write.merge.mode": mode}
    table = catalog.create_table("n.t", "id long, v long", properties=properties)
    rows = pa.table({"id": [1, 2, 3], "v": [1, 2, 3]})
    told: list[Progress] = []
    table.append(rows, progress=told.append)
    assert told == [Progress("rows", 3, 3)]
    told.clear()
    table.append(rows.to_reader(2), progress=told.append)
    assert told == [Progress("rows", 3, None), Progress("rows", 3, 3)]
    told.clear()
    table.delete("id = 1", progress=told.append)
    search = [Progress("search", 1, None), Progress("search", 2, None), Progress("search", 2, 2)]
    assert told[:3] == search
    assert told[3:] == ([Progress("rows", 4, None), Progress("rows", 4, 4)] if mode == "copy-on-write" else [])
    told.clear()
    table.upsert(pa.table({"id": [2, 9], "v": [7, 7]}), ["id"], progress=told.append)
    assert told[-1].is_end
    assert {each.stage for each in told} == {"search", "rows"}
    told.clear()
    table.overwrite(rows, progress=told.append)
    assert told[0] == Progress("rows", 3, None)
    assert told[-1] == Progress("rows", 3, 3)
    told.clear()
    assert table.scan_changes().to_arrow(progress=told.append).num_rows == told[-1].done == told[-1].total
    told.clear()
    with table.transaction() as tx:
        tx.append(rows, progress=told.append)
    assert told == [Progress("rows", 3, 3)]


def test_work_of_unknown_size_is_shown_without_a_bar(caplog: pytest.LogCaptureFixture) -> None:
    stream, clock = io.StringIO(), Clock()
    stage, logged = Stage("rows", None, ProgressBar(stream, clock)), LogLines(clock)
    clock.now += 20
    stage.step(5000)
    with caplog.at_level("INFO", "icefloe.progress"):
        logged(Progress("rows", 5000, None))
    clock.now += 1
    stage.step(1)
    stage.finish()
    stage.finish()
    assert stream.getvalue() == (
        "\rrows       5,000\rrows       5,001\rrows       [##############################] 5,001/5,001\n"
    )
    assert caplog.messages == ["rows: 5000"]
