"""Encrypted tables of REST catalogs: clients have the keys, the server keeps what it must, and no client gets past its rules."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

import icefloe
from icefloe.catalog import Catalog
from icefloe.errors import EncryptionError, IcefloeError
from icefloe.storage import Storage
from tests.encryption.keys import key_file
from tests.encryption.test_tables import check_sealed, created, found, rows
from tests.server.running import Client, commit, serving


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    return {"encryption.kms-type": "file", "encryption.kms-file": str(key_file(tmp_path))}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Client]:
    """A server that has no KMS itself."""
    database = f"sqlite:///{tmp_path}/catalog.db"
    with (
        icefloe.load_catalog("lake", type="sql", uri=database, warehouse=str(tmp_path / "files")) as catalog,
        serving({"lake": catalog}) as client,
    ):
        yield client


@pytest.fixture
def lake(server: Client, keys: dict[str, str]) -> Iterator[Catalog]:
    with icefloe.load_catalog("lake", type="rest", uri=server.url, **keys) as catalog:
        catalog.create_namespace("n")
        yield catalog


def test_servers_plan_if_they_have_the_keys(tmp_path: Path, keys: dict[str, str]) -> None:
    for number, of_server in enumerate((keys, {})):
        database, files = f"sqlite:///{tmp_path}/{number}.db", str(tmp_path / f"files{number}")
        with (
            icefloe.load_catalog("lake", type="sql", uri=database, warehouse=files, **of_server) as catalog,
            serving({"lake": catalog}) as server,
            icefloe.load_catalog("lake", type="rest", uri=server.url, **keys) as plain,
        ):
            plain.create_namespace("n")
            table = created(plain, 3, write__delete__mode="merge-on-read")
            table.append(rows(*range(8)))
            table.delete("id = 3")
            # A server with the KMS gives the keys of files with its plan, also to clients that have none.
            for of_client in (keys, {}):
                settings = {"scan-planning-mode": "server", **of_client}
                with icefloe.load_catalog("lake", type="rest", uri=server.url, **settings) as lake:
                    table = lake.load_table("n.t")
                    assert table.scan().is_planned_elsewhere
                    if of_server:
                        assert found(table) == [0, 1, 2, 4, 5, 6, 7]
                        continue
                    with pytest.raises(IcefloeError, match="is encrypted, but the catalog has no KMS"):
                        table.scan().to_arrow()


@pytest.mark.parametrize("version", [3, 4])
def test_changes_and_reads(lake: Catalog, version: int) -> None:
    table = created(lake, version, write__delete__mode="merge-on-read")
    table.append(rows(*range(8)))
    table.delete("id = 3")
    again = lake.load_table("n.t")
    assert found(again) == [0, 1, 2, 4, 5, 6, 7]
    check_sealed(again)


def test_the_server_keeps_the_rules(lake: Catalog, server: Client) -> None:
    table = created(lake, 3)
    table.append(rows(1))
    for properties in ({"encryption.key-id": "k2"}, {"encryption.data-key-length": "32"}):
        answer = server.ask("POST", "namespaces/n/tables/t", commit(properties))
        assert answer.status_code >= 400, answer.text
        assert "is permanent" in answer.json()["error"]["message"]
    removal = {"requirements": [], "updates": [{"action": "remove-properties", "removals": ["encryption.key-id"]}]}
    assert server.ask("POST", "namespaces/n/tables/t", removal).status_code >= 400
    assert found(lake.load_table("n.t")) == [1]


def test_metadata_that_was_changed_is_not_served(lake: Catalog, tmp_path: Path) -> None:
    table = created(lake, 3)
    table.append(rows(1))
    path = Path(str(table.metadata_location).removeprefix("file://"))
    path.write_bytes(path.read_bytes().replace(b'"encryption.key-id"', b'"encryption_key_id"'))
    database = f"sqlite:///{tmp_path}/catalog.db"
    with (
        icefloe.load_catalog("lake", type="sql", uri=database, warehouse=str(tmp_path / "files")) as fresh,
        serving({"lake": fresh}) as client,
    ):
        answer = client.ask("GET", "namespaces/n/tables/t")
        assert answer.status_code >= 400
        assert "key-id" not in answer.text


def test_clients_without_a_kms(lake: Catalog, server: Client) -> None:
    created(lake, 3).append(rows(1))
    with icefloe.load_catalog("lake", type="rest", uri=server.url) as keyless:
        with pytest.raises(EncryptionError, match="no KMS"):
            keyless.load_table("n.t").scan().to_arrow()
        with pytest.raises(IcefloeError, match="no KMS"):
            created(keyless, 3, "n.other")


def test_other_processes_get_no_way_to_the_kms(lake: Catalog, keys: dict[str, str]) -> None:
    storage = created(lake, 3).storage
    assert isinstance(storage, Storage)
    assert storage.keyring is not None
    sent = pickle.dumps(storage)
    assert keys["encryption.kms-file"].encode() not in sent
    assert pickle.loads(sent).keyring is None
