"""Decides how questions that come at the same time are asked together: while some are being answered, the next ones gather."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Question = TypeVar("Question")
Reply = TypeVar("Reply")

_MOST = 64
"""How many questions go together at most."""


class Gathering(Generic[Question, Reply]):
    """Questions of one kind to one place, of one event loop.

    A question is never answered by what was asked before it came. `ask` gives a reply to each question, in their order.
    """

    def __init__(self, ask: Callable[[Sequence[Question]], Awaitable[Sequence[Reply]]]) -> None:
        self._ask = ask
        self._waiting: list[tuple[Question, asyncio.Future[Reply]]] = []
        self._asking: asyncio.Task[None] | None = None

    async def reply(self, question: Question) -> Reply:
        """The reply to a question; others that wait at this moment are asked with it."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, future))
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_all())
        return await future

    async def _ask_all(self) -> None:
        try:
            while self._waiting:
                together, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
                await self._ask_together(together)
        finally:
            self._asking = None
            for _, future in self._waiting:
                future.cancel()

    async def _ask_together(self, together: Sequence[tuple[Question, asyncio.Future[Reply]]]) -> None:
        futures = [future for _, future in together]
        try:
            replies = await self._ask([question for question, _ in together])
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            for future in futures:
                if not future.done():
                    future.set_exception(error)
            return
        except BaseException:
            for future in futures:
                future.cancel()
            raise
        for future, reply in zip(futures, replies, strict=True):
            # Whoever went away meanwhile has cancelled it.
            if not future.done():
                future.set_result(reply)
