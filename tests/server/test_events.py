"""Events reach the webhook, each at least once, for changes that happened and for no others."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from icefloe.catalog import Database
from icefloe.server.events_codec import SIGNATURE, TIMESTAMP, signature
from icefloe.server.settings import ServerSettings
from icefloe.server.tables import EVENTS
from icefloe.server.webhook import Webhook
from tests.catalog.rest.loopback import LoopbackServer
from tests.server.running import Client, Maker, commit, serving

SECRET = "between us"


class Receiver:
    """A webhook that may be out of order for a while."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.failures = 0
        self.app = Starlette(routes=[Route("/hook", self._take, methods=["POST"])])

    async def _take(self, request: Request) -> Response:
        body = await request.body()
        assert request.headers["content-type"] == "application/cloudevents+json"
        assert request.headers[SIGNATURE] == signature(SECRET, request.headers[TIMESTAMP], body)
        if self.failures:
            self.failures -= 1
            return Response(status_code=503)
        self.events.append(await request.json())
        return Response(status_code=204)

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        for _ in range(200):
            if len(self.events) >= count:
                break
            time.sleep(0.05)
        return self.events


@pytest.fixture
def receiver() -> Iterator[tuple[Receiver, str]]:
    receiver = Receiver()
    with LoopbackServer(receiver.app) as server:
        yield receiver, f"{server.url}/hook"


@pytest.fixture
def told(make_catalog: Maker, receiver: tuple[Receiver, str]) -> Iterator[Client]:
    with serving({"lake": make_catalog()}, ServerSettings(webhook=receiver[1], webhook_secret=SECRET)) as client:
        yield client


def test_changes_are_told_and_refusals_are_not(told: Client, receiver: tuple[Receiver, str]) -> None:
    told.done("POST", "namespaces", {"namespace": ["ns"]})
    location = told.create()["metadata-location"]
    told.refused(409, "CommitFailedException", "POST", "namespaces/ns/tables/t", commit({}, {"type": "assert-create"}))
    told.done("POST", "namespaces/ns/tables/t", commit({"p": "1"}))
    names = [{"namespace": ["ns"], "name": name} for name in "tu"]
    told.done("POST", "tables/rename", {"source": names[0], "destination": names[1]})
    change = {**commit({"p": "2"}), "identifier": names[1]}
    told.done("POST", "transactions/commit", {"table-changes": [change]})
    told.done("DELETE", "namespaces/ns/tables/u")
    events = receiver[0].wait_for(6)
    assert [event["type"] for event in sorted(events, key=lambda event: str(event["time"]))] == [
        "icefloe.namespace.created",
        "icefloe.table.created",
        "icefloe.table.committed",
        "icefloe.table.renamed",
        "icefloe.transaction.committed",
        "icefloe.table.dropped",
    ]
    by_type = {event["type"]: event for event in events}
    assert by_type["icefloe.table.created"]["data"]["metadata-location"] == location
    assert by_type["icefloe.table.created"]["subject"] == "ns.t"
    assert by_type["icefloe.table.renamed"]["data"]["destination"] == names[1]
    assert by_type["icefloe.transaction.committed"]["data"]["tables"] == [names[1]]
    assert len({event["id"] for event in events}) == 6


def test_a_webhook_that_is_away_gets_its_events_later(told: Client, receiver: tuple[Receiver, str]) -> None:
    receiver[0].failures = 1
    told.done("POST", "namespaces", {"namespace": ["ns"]})
    [event] = receiver[0].wait_for(1)
    assert event["data"]["namespace"] == ["ns"]


def test_an_event_that_nobody_takes_stays(tmp_path: Path) -> None:
    database = Database("lake", f"sqlite:///{tmp_path}/events.db")
    database.create_tables(EVENTS.metadata)
    row = {"id": "1", "warehouse": "lake", "body": "{}", "attempts": 23, "next_attempt_at_ms": 0, "created_at_ms": 0}
    database.write(lambda connection: connection.execute(sa.insert(EVENTS).values(row)))
    hook = Webhook(database, "http://127.0.0.1:1/", SECRET)
    assert hook.deliver() == 0
    assert hook.deliver() == 0
    [left] = database.read(sa.select(EVENTS))
    assert left.attempts == 24
    assert left.next_attempt_at_ms > 2**61
    assert SECRET not in repr(hook)
    database.close()
