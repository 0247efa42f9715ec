"""Decides how tables are loaded by many clients at once: one question to the database has the pointers of all who wait for it.

Each of them is let in, or refused, by itself, and a pointer is never older than the request. Whoever has the table already
is told so at once; the others go on in threads of their own, since theirs may be the one whose metadata must be read.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from icefloe.server.calls import Answer, Call
from icefloe.server.gathering import Gathering
from icefloe.server.server import Server
from icefloe.server.stopwatch import Stopwatch
from icefloe.server.warehouses import Warehouse

Outcome = Call | Answer | Exception
"""A call that is still to be carried out, its answer, or why it is refused."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request, and what belongs to it alone."""

    understand: Callable[[], Call]
    context: Context


class Loads:
    """Calls that begin with the pointer of a table, in the warehouses of a server."""

    def __init__(self, server: Server, threads: CapacityLimiter) -> None:
        self._server = server
        self._threads = threads
        # Not of the threads that read metadata: whoever has the table already does not wait for those. And not by `run_sync`,
        # whose scopes and limits cost more than all else of such an answer.
        self._asking = ThreadPoolExecutor(len(server.warehouses.all), thread_name_prefix="icefloe-pointers")
        # Each has its own: a database that does not answer holds up those alone who ask for it.
        self._gatherings = {
            warehouse.name: Gathering(self._ask_all)
            for warehouse in server.warehouses.all
            if warehouse.served.database is not None
        }

    async def answer(self, warehouse: Warehouse, understand: Callable[[], Call], watch: Stopwatch) -> Answer:
        """The answer to a request to that warehouse, which `understand` makes a call of."""
        gathering = self._gatherings.get(warehouse.name)
        if gathering is None:
            return await run_sync(lambda: self._server.run(understand()), limiter=self._threads)
        with watch.part("pointer"):
            outcome = await gathering.reply(_Asked(understand, copy_context()))
        match outcome:
            case Answer():
                return outcome
            case Exception():
                raise outcome
            case call:
                return await run_sync(partial(self._server.carry_out, call), limiter=self._threads)

    async def _ask_all(self, asked: Sequence[_Asked]) -> list[Outcome]:
        return await asyncio.get_running_loop().run_in_executor(self._asking, self._outcomes, asked)

    def _outcomes(self, asked: Sequence[_Asked]) -> list[Outcome]:
        outcomes = [each.context.run(self._let_in, each) for each in asked]
        _locate([outcome for outcome in outcomes if isinstance(outcome, Call)])
        return [_known(outcome) if isinstance(outcome, Call) else outcome for outcome in outcomes]

    def _let_in(self, asked: _Asked) -> Outcome:
        try:
            call = asked.understand()
            self._server.check(call)
        except Exception as error:  # noqa: BLE001 - it is the answer to this one, and the others go on
            return error
        return call


def _locate(calls: Sequence[Call]) -> None:
    """Ask once where the tables of all calls are. Whatever is wrong with one of them is found when it is carried out."""
    if not calls:
        return
    try:
        locations = calls[0].served.table_locations({call.identifier for call in calls})
    except Exception:  # noqa: BLE001 - each is asked for by itself then, and fails, or not, by itself
        return
    for call in calls:
        call.location = locations.get(call.identifier)


def _known(call: Call) -> Outcome:
    assert call.operation.if_unchanged is not None, "only such calls are asked together"
    try:
        unchanged = None if call.location is None else call.operation.if_unchanged(call, call.location)
    except Exception as error:  # noqa: BLE001 - as above
        return error
    return call if unchanged is None else unchanged
