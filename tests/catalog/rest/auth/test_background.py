"""Renewals in the background: in time, for sessions that are there, by a thread that goes with the last of them."""

import gc
import threading
import time

import pytest

from icefloe.catalog.rest.auth.background import Renewals

LATER = 3600.0


class Session:
    """Counts its renewals."""

    def __init__(self) -> None:
        self.renewed = threading.Event()

    def renew_ahead(self) -> None:
        self.renewed.set()
        raise RuntimeError("which is its own business")


def is_running(renewals: Renewals) -> bool:
    with renewals._condition:
        return renewals._is_running


def wait_for_end(renewals: Renewals) -> None:
    deadline = time.monotonic() + 30
    while is_running(renewals):
        assert time.monotonic() < deadline, "the thread goes on without a session"
        time.sleep(0.001)


def test_what_is_due_is_renewed_whatever_else_waits() -> None:
    renewals, late, soon = Renewals(), Session(), Session()
    renewals.schedule(late, LATER)
    renewals.schedule(soon, LATER)
    renewals.schedule(soon, 0.01)
    assert soon.renewed.wait(30)
    assert is_running(renewals)
    assert not late.renewed.is_set()
    renewals.cancel(late)
    wait_for_end(renewals)
    # And it begins again.
    late.renewed.clear()
    renewals.schedule(late, 0.0)
    assert late.renewed.wait(30)
    wait_for_end(renewals)


@pytest.mark.parametrize("is_in_a_cycle", [False, True])
def test_the_thread_ends_with_the_last_session(is_in_a_cycle: bool) -> None:
    renewals, sessions = Renewals(), [Session(), Session()]
    for session in sessions:
        renewals.schedule(session, LATER)
        if is_in_a_cycle:
            session.own = session  # type: ignore[attr-defined]  # whatever it is called
    assert is_running(renewals)
    del session
    sessions.clear()
    gc.collect()
    wait_for_end(renewals)
    assert not renewals._due
