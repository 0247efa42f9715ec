"""Dropped tables come back for as long as the operator says, files go only after that, and what is protected stays."""

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from icefloe.server.settings import ServerSettings
from tests.server.running import Client, Maker, serving

T = "namespaces/ns/tables/t"


@pytest.fixture
def held(make_catalog: Maker) -> Iterator[Client]:
    with serving({"lake": make_catalog()}, ServerSettings(undrop_hold=timedelta(days=1))) as client:
        client.done("POST", "namespaces", {"namespace": ["ns"]})
        yield client


def manage(client: Client, method: str, path: str, body: object = None) -> tuple[int, object]:
    answer = client.http.request(method, f"{client.url}/management/v1/{client.prefix}/{path}", json=body)
    return answer.status_code, answer.json() if answer.content else None


def dropped(client: Client) -> list[dict[str, object]]:
    status, content = manage(client, "GET", "dropped")
    assert status == 200
    assert isinstance(content, dict)
    return list(content["dropped"])


def test_a_dropped_table_comes_back(held: Client) -> None:
    created = held.create()
    held.done("DELETE", f"{T}?purgeRequested=true")
    [table] = dropped(held)
    assert table["identifier"] == {"namespace": ["ns"], "name": "t"}
    assert (table["purge"], table["metadata-location"]) == (True, created["metadata-location"])
    held.create()
    assert manage(held, "POST", "undrop", {"id": table["id"]})[0] == 409
    other = {"namespace": ["ns"], "name": "again"}
    assert manage(held, "POST", "undrop", {"id": table["id"], "name": other})[0] == 204
    assert held.done("GET", "namespaces/ns/tables/again")["metadata"] == created["metadata"]
    assert dropped(held) == []
    assert manage(held, "POST", "undrop", {"id": table["id"]})[0] == 400
    assert manage(held, "POST", "undrop", {"id": "x", "name": {"namespace": [], "name": "t"}})[0] == 400


def test_a_table_that_is_unregistered_is_not_held(held: Client) -> None:
    held.create()
    held.done("POST", f"{T}/unregister")
    assert dropped(held) == []


def test_files_go_when_the_time_is_over(make_catalog: Maker, tmp_path: Path) -> None:
    with serving({"lake": make_catalog()}, ServerSettings(undrop_hold=timedelta(days=1))) as client:
        client.done("POST", "namespaces", {"namespace": ["ns"]})
        for name in ("purged", "dropped", "back"):
            client.create(name)
        for name in ("purged", "back"):
            client.done("DELETE", f"namespaces/ns/tables/{name}?purgeRequested=true")
        client.done("DELETE", "namespaces/ns/tables/dropped")
        # One of them has a name again by other means: its files are needed.
        [location] = [
            str(each["metadata-location"]) for each in dropped(client) if "back" in str(each["metadata-location"])
        ]
        client.done("POST", "namespaces/ns/register", {"name": "back", "metadata-location": location})
        assert len(metadata_files(tmp_path)) == 3
    time.sleep(0.02)
    with serving({"lake": make_catalog()}, ServerSettings(undrop_hold=timedelta(milliseconds=1))) as client:
        for _ in range(100):
            if not dropped(client) and len(metadata_files(tmp_path)) == 2:
                break
            time.sleep(0.05)
        assert {path.parent.parent.name for path in metadata_files(tmp_path)} == {"dropped", "back"}
        client.done("GET", "namespaces/ns/tables/back")


def metadata_files(folder: Path) -> list[Path]:
    return list((folder / "warehouse").rglob("*.metadata.json"))


def test_protected_tables_views_and_namespaces_stay(client: Client) -> None:
    client.create()
    table, namespace = f"{T}/protection", "namespaces/ns/protection"
    assert manage(client, "GET", table) == (200, {"protected": False})
    for path in (table, table, namespace):
        assert manage(client, "POST", path)[0] == 204
    assert manage(client, "GET", table) == (200, {"protected": True})
    for path in (T, f"{T}?purgeRequested=true"):
        assert "protected from drops" in client.refused(403, "ForbiddenException", "DELETE", path)
    client.refused(403, "ForbiddenException", "POST", f"{T}/unregister")
    names = [{"namespace": ["ns"], "name": name} for name in ("t", "u")]
    client.done("POST", "tables/rename", {"source": names[0], "destination": names[1]})
    client.refused(403, "ForbiddenException", "DELETE", "namespaces/ns/tables/u")
    assert manage(client, "DELETE", "namespaces/ns/tables/u/protection")[0] == 204
    client.done("DELETE", "namespaces/ns/tables/u")
    client.refused(403, "ForbiddenException", "DELETE", "namespaces/ns")
    assert manage(client, "DELETE", namespace)[0] == 204
    client.done("DELETE", "namespaces/ns")
    assert manage(client, "POST", "namespaces/gone/protection")[0] == 404
    assert manage(client, "POST", table)[0] == 404
