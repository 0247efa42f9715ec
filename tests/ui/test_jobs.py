"""Work in the background: once for all who ask, with progress, and with its error told."""

import threading

import pytest

from icefloe.errors import InvalidInputError
from icefloe.progress import Listener, Progress
from icefloe.ui.jobs import Jobs

PLACE = ("lake", ("ns", "t"))


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


def test_those_who_ask_for_the_same_share_one_run(jobs: Jobs) -> None:
    going, runs = threading.Event(), []

    def work(listener: Listener) -> str:
        runs.append(1)
        listener(Progress("files", 3, 10))
        going.wait(10)
        return "done"

    first = jobs.ask("key", "Work", PLACE, work, patience=0.01)
    assert first.state in ("running", "waiting")
    second = jobs.ask("key", "Work", PLACE, work, patience=0.01)
    assert second is first
    going.set()
    assert jobs.ask("key", "Work", PLACE, work, patience=10).result == "done"
    assert first.progress == Progress("files", 3, 10)
    assert (first.state, runs) == ("done", [1])
    assert jobs.ask("key", "Work", PLACE, work).result == "done"
    assert runs == [1]
    jobs.forget("key")
    assert jobs.peek("key") is None


def test_what_failed_is_tried_again_and_faults_are_not_shown(jobs: Jobs, caplog: pytest.LogCaptureFixture) -> None:
    def refused(_: Listener) -> None:
        raise InvalidInputError("no such column")

    def broken(_: Listener) -> None:
        raise RuntimeError("secret detail")

    failed = jobs.ask("key", "Work", PLACE, refused, patience=10)
    assert (failed.state, failed.message) == ("failed", "no such column")
    assert jobs.ask("key", "Work", PLACE, lambda _: 1, patience=10).result == 1
    fault = jobs.ask("other", "Work", PLACE, broken, patience=10)
    assert "secret" not in fault.message
    assert "secret detail" in caplog.text


def test_a_result_that_is_too_large_to_keep_is_still_shown(jobs: Jobs) -> None:
    class Large:
        nbytes = 1 << 40

    job = jobs.ask("key", "Work", PLACE, lambda _: Large(), patience=10)
    assert jobs.ask("key", "Work", PLACE, lambda _: None, patience=10) is job


def test_what_users_start_is_listed_newest_first(jobs: Jobs) -> None:
    for number in range(3):
        jobs.begin(("run", number), f"job {number}", PLACE, lambda _: None).done.wait(10)
    jobs.ask("page", "not listed", PLACE, lambda _: None)
    assert [job.title for job in jobs.listed()] == ["job 2", "job 1", "job 0"]
    newest = jobs.listed()[0]
    assert jobs.numbered(newest.number) is newest
    assert jobs.numbered(-1) is None
    jobs.close()
