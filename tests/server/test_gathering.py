"""Questions that come at the same time are asked together, and each gets its own reply, which is never older than itself."""

import asyncio
from collections.abc import Sequence

import pytest

from icefloe.server.gathering import Gathering


def test_those_who_wait_are_asked_together() -> None:
    asked: list[list[int]] = []

    async def run() -> list[int]:
        free = asyncio.Event()

        async def ask(questions: Sequence[int]) -> list[int]:
            asked.append(list(questions))
            await free.wait()
            return [question * 10 for question in questions]

        gathering = Gathering(ask)
        first = asyncio.create_task(gathering.reply(0))
        while not asked:
            await asyncio.sleep(0)
        others = [asyncio.create_task(gathering.reply(number)) for number in range(1, 151)]
        await asyncio.sleep(0)
        others[2].cancel()
        free.set()
        replies = await asyncio.gather(first, *others, return_exceptions=True)
        assert isinstance(replies[3], asyncio.CancelledError)
        return [reply for reply in replies if isinstance(reply, int)]

    assert asyncio.run(run()) == [number * 10 for number in range(151) if number != 3]
    # The first was under way when the others came, and is no answer to them.
    assert [len(each) for each in asked] == [1, 64, 64, 22]


def test_what_fails_is_told_to_all_of_them_and_the_next_are_asked_again() -> None:
    async def ask(questions: Sequence[int]) -> list[int]:
        if 13 in questions:
            raise ValueError("unlucky")
        return list(questions)

    async def run() -> None:
        gathering = Gathering(ask)
        together = await asyncio.gather(*map(gathering.reply, (12, 13)), return_exceptions=True)
        assert [type(each) for each in together] == [ValueError, ValueError]
        assert await gathering.reply(14) == 14

    asyncio.run(run())


def test_nobody_waits_for_ever_when_the_work_is_cancelled() -> None:
    async def run() -> None:
        begun = asyncio.Event()

        async def ask(questions: Sequence[int]) -> list[int]:
            begun.set()
            await asyncio.sleep(3600)
            return list(questions)

        gathering = Gathering(ask)
        waiting = [asyncio.create_task(gathering.reply(1))]
        await begun.wait()
        waiting.append(asyncio.create_task(gathering.reply(2)))
        await asyncio.sleep(0)
        assert gathering._asking is not None
        gathering._asking.cancel()
        for each in waiting:
            with pytest.raises(asyncio.CancelledError):
                await each

    asyncio.run(run())
