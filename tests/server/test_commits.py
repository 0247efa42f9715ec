"""Commits through servers: all or none, none lost, none doubled, and every outcome told truly."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from sqlalchemy.engine import Connection

from icefloe import errors
from icefloe.catalog import Catalog, load_catalog
from icefloe.catalog.sql import SqlPointers
from icefloe.catalog.sql_database import Database
from icefloe.server.settings import ServerSettings
from tests.server.running import Client, Maker, commit, serving

T = "namespaces/ns/tables/t"
KEY = "Idempotency-Key"


def change(name: str, value: str, *requirements: object) -> dict[str, object]:
    return {**commit({"p": value}, *requirements), "identifier": {"namespace": ["ns"], "name": name}}


def value(client: Client, name: str) -> str | None:
    properties: dict[str, str] = client.done("GET", f"namespaces/ns/tables/{name}")["metadata"].get("properties", {})
    return properties.get("p")


def test_several_tables_change_together_or_not_at_all(client: Client) -> None:
    for name in ("one", "two"):
        client.create(name)
    done = client.ask("POST", "transactions/commit", {"table-changes": [change("one", "1"), change("two", "1")]})
    assert (done.status_code, done.content) == (204, b"")
    wrong = {"type": "assert-table-uuid", "uuid": "9"}
    body = {"table-changes": [change("one", "2"), change("two", "2", wrong)]}
    client.refused(409, "CommitFailedException", "POST", "transactions/commit", body)
    body = {"table-changes": [change("one", "2"), change("absent", "2")]}
    client.refused(404, "NoSuchTableException", "POST", "transactions/commit", body)
    body = {"table-changes": [change("one", "2"), change("one", "3")]}
    client.refused(400, "IllegalArgumentException", "POST", "transactions/commit", body)
    assert (value(client, "one"), value(client, "two")) == ("1", "1")
    assert client.ask("POST", "transactions/commit", {"table-changes": []}).status_code == 204


def test_transactions_of_several_writers(client: Client) -> None:
    """Each writes one number into both tables: whatever order they take, both hold the same one."""
    for name in ("one", "two"):
        client.create(name)
    problems: list[str] = []

    def write(number: int) -> None:
        names = ("one", "two") if number % 2 else ("two", "one")
        for step in range(4):
            changes = [change(name, f"{number}-{step}") for name in names]
            answer = client.ask("POST", "transactions/commit", {"table-changes": changes})
            if answer.status_code not in (204, 409):
                problems.append(answer.text)

    run_all([threading.Thread(target=write, args=(number,)) for number in range(4)])
    assert problems == []
    assert value(client, "one") == value(client, "two") is not None


def run_all(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def test_lost_races_are_tried_again_by_the_server(make_catalog: Maker) -> None:
    """Changes that ask for nothing of the table's state all happen, though all writers begin at the same one."""
    writers, commits = 6, 4
    settings = ServerSettings(commit_attempts=100)
    with serving({"lake": make_catalog()}, settings) as one, serving({"lake": make_catalog()}, settings) as other:
        one.done("POST", "namespaces", {"namespace": ["ns"]})
        one.create()
        statuses: list[int] = []

        def write(number: int) -> None:
            for step in range(commits):
                client = (one, other)[step % 2]
                statuses.append(client.set_property("t", f"w{number}-{step}", "1").status_code)

        run_all([threading.Thread(target=write, args=(number,)) for number in range(writers)])
        assert statuses == [200] * (writers * commits)
        metadata = one.done("GET", T)["metadata"]
        assert sum(key.startswith("w") for key in metadata["properties"]) == writers * commits
        assert len(metadata["metadata-log"]) == writers * commits


@pytest.fixture
def sqlite(tmp_path: Path) -> Catalog:
    return load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=str(tmp_path / "warehouse"))


@pytest.fixture
def faulty(sqlite: Catalog) -> Iterator[Client]:
    with serving({"lake": sqlite}) as client:
        client.done("POST", "namespaces", {"namespace": ["ns"]})
        client.create()
        yield client


def test_an_open_outcome_is_never_told_as_a_failure(faulty: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    writing = Database.writing

    @contextmanager
    def lose_the_answer(self: Database) -> Iterator[Connection]:
        with writing(self) as connection:
            yield connection
        raise errors.CommitStateUnknown("the connection was lost")

    def cannot_see(self: SqlPointers, identifier: object) -> None:
        raise errors.StorageError("database", "is away")

    monkeypatch.setattr(Database, "writing", lose_the_answer)
    # What can be read back is known to have happened.
    assert faulty.set_property("t", "p", "1").status_code == 200
    monkeypatch.setattr(SqlPointers, "seen", lambda *_: None)
    message = faulty.refused(500, "CommitStateUnknownException", "POST", T, commit({"p": "2"}))
    assert "unknown" in message or "lost" in message
    body = {"table-changes": [change("t", "3"), change("u", "3")]}
    monkeypatch.undo()
    faulty.create("u")
    monkeypatch.setattr(Database, "writing", lose_the_answer)
    monkeypatch.setattr(SqlPointers, "seen", lambda *_: None)
    faulty.refused(500, "CommitStateUnknownException", "POST", "transactions/commit", body)
    monkeypatch.undo()
    assert (value(faulty, "t"), value(faulty, "u")) == ("3", "3")


def test_a_database_that_is_away_is_told_as_certain(faulty: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Database) -> AbstractContextManager[Connection]:
        raise errors.StorageError("database", "is away")

    monkeypatch.setattr(Database, "writing", fail)
    faulty.refused(409, "CommitFailedException", "POST", T, commit({"p": "1"}))
    monkeypatch.undo()
    assert value(faulty, "t") is None


def snapshot_commit(metadata: dict[str, object], number: int, parent: int | None = None) -> dict[str, object]:
    snapshot = {
        "snapshot-id": number,
        "parent-snapshot-id": parent,
        "sequence-number": 1,
        "timestamp-ms": int(str(metadata["last-updated-ms"])) + 1,
        "manifest-list": f"{metadata['location']}/metadata/snap-{number}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number},
        ],
    }


def test_a_commit_that_is_sent_twice_is_no_lost_race(client: Client) -> None:
    """Something on the way sent it again: told as a conflict, the client would delete the files of its own commit."""
    body = snapshot_commit(client.create()["metadata"], 77)
    first = client.done("POST", T, body)
    assert client.done("POST", T, body) == first
    other = snapshot_commit(first["metadata"], 78)
    client.refused(409, "CommitFailedException", "POST", T, other)
    assert len(client.done("GET", T)["metadata"]["snapshots"]) == 1


def test_a_stale_sequence_number_is_a_conflict(client: Client) -> None:
    body = snapshot_commit(client.create()["metadata"], 77)
    client.done("POST", T, body)
    late = {**snapshot_commit(client.done("GET", T)["metadata"], 78, parent=77), "requirements": []}
    message = client.refused(409, "CommitFailedException", "POST", T, late)
    assert message.startswith("Validation failed, please retry")


# Idempotency-Key


def keyed(key: str | None = None) -> dict[str, str]:
    return {KEY: key or str(uuid.uuid4())}


def test_requests_with_a_key_are_done_once(client: Client) -> None:
    requests = [
        ("POST", "namespaces", {"namespace": ["more"], "properties": {"a": "1"}}),
        ("POST", "namespaces/more/properties", {"removals": ["a"], "updates": {"b": "1"}}),
        ("POST", "namespaces/ns/tables", {"name": "t", "schema": {"type": "struct", "fields": []}}),
        ("POST", T, commit({"p": "1"})),
        ("POST", "transactions/commit", {"table-changes": [change("t", "2")]}),
        (
            "POST",
            "tables/rename",
            {"source": {"namespace": ["ns"], "name": "t"}, "destination": {"namespace": ["ns"], "name": "u"}},
        ),
        ("POST", "namespaces/ns/tables/u/unregister", None),
        ("DELETE", "namespaces/more", None),
    ]
    done = []
    for method, path, body in requests:
        key = keyed()
        first = client.ask(method, path, body, key)
        assert first.status_code in (200, 204), first.text
        done.append((method, path, body, key, first))
    # Much later, when nothing is as it was: the answers are the same, and nothing happens.
    tables = client.done("GET", "namespaces/ns/tables")
    for method, path, body, key, first in done:
        again = client.ask(method, path, body, key)
        assert (again.status_code, again.content) == (first.status_code, first.content), path
    assert client.done("GET", "namespaces/ns/tables") == tables
    assert client.done("GET", "namespaces")["namespaces"] == [["ns"]]


def test_refusals_with_a_key_are_told_again(client: Client) -> None:
    client.create()
    key, body = keyed(), {"name": "t", "schema": {"type": "struct", "fields": []}}
    first = client.ask("POST", "namespaces/ns/tables", body, key)
    assert first.status_code == 409
    client.done("DELETE", T)
    again = client.ask("POST", "namespaces/ns/tables", body, key)
    assert (again.status_code, again.content) == (409, first.content)
    assert client.ask("POST", "namespaces/ns/tables", body, keyed()).status_code == 200


def test_a_key_is_for_one_request(client: Client) -> None:
    client.create()
    key = keyed()
    assert client.ask("POST", T, commit({"p": "1"}), key).status_code == 200
    assert client.ask("POST", T, commit({"p": "2"}), key).status_code == 422
    assert client.ask("POST", T, commit({"p": "2"}), {KEY: "short"}).status_code == 400
    assert value(client, "t") == "1"


def test_one_key_at_the_same_time_on_two_servers(make_catalog: Maker) -> None:
    with serving({"lake": make_catalog()}) as one, serving({"lake": make_catalog()}) as other:
        one.done("POST", "namespaces", {"namespace": ["ns"]})
        one.create()
        uuid_ = {"type": "assert-table-uuid", "uuid": one.done("GET", T)["metadata"]["table-uuid"]}
        for number in range(5):
            key, answers = keyed(), list[tuple[int, bytes]]()

            def send(client: Client, key: dict[str, str] = key, number: int = number) -> None:
                answer = client.ask("POST", T, commit({f"k{number}": "1"}, uuid_), key)
                answers.append((answer.status_code, answer.content))  # noqa: B023 - read in this round

            run_all([threading.Thread(target=send, args=(client,)) for client in (one, other, one, other)])
            assert len(answers) == 4
            assert set(answers) == {answers[0]}
            assert answers[0][0] == 200
        assert len(one.done("GET", T)["metadata"]["metadata-log"]) == 5


def test_a_key_is_not_used_up_by_an_open_outcome(faulty: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was written: the same key may be tried again, and then it is done, once."""
    writing, key = Database.writing, keyed()

    def lose_the_request(self: Database) -> AbstractContextManager[Connection]:
        raise errors.CommitStateUnknown("the connection was lost")

    monkeypatch.setattr(Database, "writing", lose_the_request)
    assert faulty.ask("POST", T, commit({"p": "1"}), key).status_code == 500
    monkeypatch.setattr(Database, "writing", writing)
    assert faulty.ask("POST", T, commit({"p": "1"}), key).status_code == 200
    assert faulty.ask("POST", T, commit({"p": "1"}), key).status_code == 200
    assert len(faulty.done("GET", T)["metadata"]["metadata-log"]) == 1
