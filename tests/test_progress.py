"""The line on a terminal: after two seconds of work, not too often, one for each stage."""

import io

from hypothesis import given, strategies as st

from icefloe.progress import Progress, ProgressBar, Stage, listener_or_bar, silent


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
