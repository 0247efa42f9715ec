"""Loads of tables that come at the same time: the database is asked once, and each is let in and answered by itself."""

import threading
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from icefloe.catalog import Identifier, ServedCatalog
from icefloe.errors import StorageError
from icefloe.server.gathering import Gathering
from tests.server.auth.whole_server import ABSENT, OPEN, SECRET, Reply, whole_server
from tests.server.running import Client


class Together:
    """Holds the first question to the database until so many requests wait behind it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
        self.asked: list[set[Identifier]] = []
        self.fails = False
        self._left = count + 1
        self._all_came = threading.Event()
        ask, reply = ServedCatalog.table_locations, Gathering.reply

        def held(served: ServedCatalog, identifiers: Collection[Identifier]) -> Mapping[Identifier, str]:
            self.asked.append(set(identifiers))
            assert self._all_came.wait(30)
            if self.fails:
                raise StorageError("database", "the name has a letter that it does not take")
            return ask(served, identifiers)

        async def counted(gathering: "Gathering[Any, Any]", question: Any) -> Any:
            self._left -= 1
            if not self._left:
                self._all_came.set()
            return await reply(gathering, question)

        monkeypatch.setattr(ServedCatalog, "table_locations", held)
        monkeypatch.setattr(Gathering, "reply", counted)

    def wait_for_first(self) -> None:
        while not self.asked:
            time.sleep(0.001)


def path(namespace: str, name: str = "t", more: str = "") -> str:
    return f"/v1/lake/namespaces/{namespace}/tables/{name}{more}"


def test_each_is_let_in_and_answered_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with whole_server(tmp_path) as server:
        public, hidden = (server.ask("admin", "GET", path(place)).headers["etag"] for place in (OPEN, SECRET))
        server.catalog.create_table((OPEN, "other"), "id long")
        requests: list[tuple[str, str, dict[str, str]]] = [
            ("reader", path(OPEN), {"If-None-Match": public}),
            ("reader", path(OPEN), {"If-None-Match": '"an-old-one"'}),
            ("reader", path(OPEN), {}),
            ("reader", path(SECRET), {"If-None-Match": hidden}),
            ("reader", path(ABSENT), {"If-None-Match": "*"}),
            ("admin", path(SECRET), {"If-None-Match": hidden}),
            ("nobody", path(OPEN), {"If-None-Match": public}),
            ("reader", path(OPEN, "absent"), {}),
            ("reader", path(OPEN, "other"), {"If-None-Match": public}),
            ("reader", path(OPEN, more="?snapshots=some"), {"If-None-Match": "*"}),
        ]
        expected = [304, 200, 200, 404, 404, 304, 404, 404, 200, 400]
        # One by one, then together: that is no difference to anybody, and both are recorded.
        server.records.clear()
        alone = [server.ask(who, "GET", where, **headers) for who, where, headers in requests]
        recorded = _decisions(server.records)
        server.records.clear()
        together = Together(monkeypatch, len(requests))
        with ThreadPoolExecutor(len(requests) + 1) as pool:
            first = pool.submit(server.ask, "admin", "GET", path(OPEN), **{"If-None-Match": public})
            together.wait_for_first()
            replies = [pool.submit(server.ask, who, "GET", where, **headers) for who, where, headers in requests]
            assert first.result().status == 304
            answers = [each.result() for each in replies]
        assert [each.status for each in alone] == [each.status for each in answers] == expected
        assert [_told(each) for each in answers] == [_told(each) for each in alone]
        assert _decisions(server.records)[1:] == recorded
        # Whoever may not see a table causes no question about it.
        assert together.asked[1:] == [{(OPEN, "t"), (OPEN, "absent"), (OPEN, "other"), (SECRET, "t")}]


def _told(reply: Reply) -> tuple[bytes, str | None]:
    return reply.body, reply.headers.get("etag")


def _decisions(records: list[Mapping[str, object]]) -> list[tuple[str, str, str]]:
    shown = ((str(each["principal"]), str(each["outcome"]), str(each["path"])) for each in records)
    return sorted(shown)


def test_a_question_that_fails_for_all_is_asked_for_each(lake: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.create()
    tag = lake.ask("GET", "namespaces/ns/tables/t").headers["etag"]
    together = Together(monkeypatch, 0)
    together.fails = True
    assert lake.ask("GET", "namespaces/ns/tables/t", headers={"If-None-Match": tag}).status_code == 304
    assert lake.ask("GET", "namespaces/ns/tables/absent").status_code == 404
    assert len(together.asked) == 2


def test_what_was_committed_is_seen_by_whoever_asks_next(client: Client) -> None:
    client.create()
    tag = client.ask("GET", "namespaces/ns/tables/t").headers["etag"]
    for step in range(5):
        client.set_property("t", "step", str(step))
        answer = client.ask("GET", "namespaces/ns/tables/t", headers={"If-None-Match": tag})
        assert (answer.status_code, answer.json()["metadata"]["properties"]["step"]) == (200, str(step))
        tag = answer.headers["etag"]
        assert client.ask("GET", "namespaces/ns/tables/t", headers={"If-None-Match": tag}).status_code == 304
