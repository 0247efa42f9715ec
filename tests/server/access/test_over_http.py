"""Storage access over HTTP: our client at our server, with a store that checks every signature and a real token service."""

import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe import load_catalog
from icefloe.catalog import Catalog
from icefloe.errors import InvalidPropertyError, StorageError
from icefloe.server import auth
from icefloe.server.access import WarehouseAccess
from icefloe.server.auth.credentials import new_credential
from icefloe.server.file_access import files_of
from icefloe.server.settings import ServerSettings
from tests.server.access.test_access import ROLE, policies
from tests.server.running import SCHEMA, Client, serving
from tests.storage.servers import ACCESS_KEY, SECRET, S3Server

ROWS = pa.table({"a": pa.array(range(100)), "b": [f"row {number}" for number in range(100)]})
DELEGATION = "header.X-Iceberg-Access-Delegation"


@contextmanager
def lakehouse(
    server: S3Server, tmp_path: Path, section: dict[str, Any], access: auth.Access | None = None
) -> Iterator[tuple[Client, WarehouseAccess]]:
    """A server whose catalog alone has the keys of the store."""
    place = f"s3://{server.new_bucket()}/wh"
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=place, **server.properties())
    files = files_of({"access": {"lake": section}}, {"lake": catalog})
    with serving({"lake": catalog}, ServerSettings(), access, files) as client:
        yield client, files.by_warehouse["lake"]


def client_of(client: Client, delegation: str, **more: str) -> Catalog:
    return load_catalog("rest", type="rest", uri=client.url, warehouse="lake", **{DELEGATION: delegation, **more})


@pytest.fixture(autouse=True)
def _no_identity_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_tables_through_a_server_that_signs(strict_s3_server: S3Server, tmp_path: Path) -> None:
    with lakehouse(strict_s3_server, tmp_path, {"mode": "signed"}) as (server, _):
        catalog = client_of(server, "remote-signing")
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", ROWS.schema)
        table.append(ROWS)
        table.delete("a < 50")
        assert catalog.load_table("db.t").scan().to_arrow().num_rows == 50
        copy = pickle.loads(pickle.dumps(catalog.load_table("db.t").storage))
        assert copy.exists(table.metadata_location)
        copy._sign.catalog.close()
        assert not any(key in str(dict(table.storage.properties)) for key in (SECRET, ACCESS_KEY))
        table.maintenance.expire_snapshots(older_than=int(time.time() * 1000), retain_last=1)
        catalog.drop_table("db.t")
        catalog.close()


REFRESHER = """
import pickle, sys, time
storage, location = pickle.load(open(sys.argv[1], "rb")), sys.argv[2]
credentials = storage._credentials
before = storage.vended(location).config["s3.session-token"]
credentials._current.due = 0
assert storage.read(location)
after = storage.vended(location).config["s3.session-token"]
print(before != after)
"""


def test_tables_through_a_server_that_vends(s3_server: S3Server, tmp_path: Path) -> None:
    section = {"mode": "vended", "role-arn": ROLE, "sts-endpoint": s3_server.endpoint}
    with lakehouse(s3_server, tmp_path, section) as (server, access):
        catalog = client_of(server, "vended-credentials")
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", ROWS.schema)
        s3_server.requests.clear()
        table.append(ROWS)
        credential = table.storage.vended(str(table.location()))
        assert credential is not None
        assert credential.prefix == f"{table.location()}/"
        token = credential.config["s3.session-token"]
        assert token in {sent for _, _, sent in s3_server.requests}
        # The server gives the same until half of its time has passed.
        answer = server.ask("GET", "namespaces/db/tables/t/credentials")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.json()["storage-credentials"][0]["config"]["s3.session-token"] == token
        (tmp_path / "pickle").write_bytes(pickle.dumps(table.storage))
        access._issued.clear()
        command = [sys.executable, "-c", REFRESHER, str(tmp_path / "pickle"), str(table.metadata_location)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.stdout.strip() == "True", done.stderr
        catalog.close()
        # Who does not ask for credentials gets none.
        plain = server.done("GET", "namespaces/db/tables/t")
        assert "storage-credentials" not in plain
        assert not plain.get("config")


def test_pyiceberg_writes_and_reads_with_vended_credentials(s3_server: S3Server, tmp_path: Path) -> None:
    from pyiceberg.catalog import load_catalog as load_pyiceberg

    section = {"mode": "vended", "role-arn": ROLE, "sts-endpoint": s3_server.endpoint}
    with lakehouse(s3_server, tmp_path, section) as (server, _):
        theirs = load_pyiceberg("theirs", type="rest", uri=server.url, warehouse="lake")
        theirs.create_namespace("db")
        table = theirs.create_table("db.t", ROWS.schema)
        s3_server.requests.clear()
        table.append(ROWS)
        # The server writes metadata with its own keys, and the client the rest with those that it was given.
        assert {bool(token) for method, _, token in s3_server.requests if method == "PUT"} == {True, False}
        assert theirs.load_table("db.t").scan().to_arrow().num_rows == 100
        ours = client_of(server, "vended-credentials")
        assert ours.load_table("db.t").scan().to_arrow().num_rows == 100
        ours.close()


def test_a_staged_table_is_written_before_it_is_there(strict_s3_server: S3Server, tmp_path: Path) -> None:
    grants: list[dict[str, Any]] = [
        {"to": "principal:writer", "privileges": "manage", "warehouse": "lake"},
        {"to": "principal:reader", "privileges": ["list", "create"], "warehouse": "lake"},
    ]
    access, tokens = guarded(grants)
    with lakehouse(strict_s3_server, tmp_path, {"mode": "signed"}, access) as (server, _):
        creator = client_of(server, "remote-signing", token=tokens["reader"])
        owner = client_of(server, "remote-signing", token=tokens["writer"])
        owner.create_namespace("db")
        with creator.create_table_transaction("db.t", ROWS.schema) as transaction:
            transaction.append(ROWS)
        assert owner.load_table("db.t").scan().to_arrow().num_rows == 100
        staging = {"name": "s", "schema": SCHEMA, "stage-create": True}
        heads = {who: {"Authorization": f"Bearer {token}"} for who, token in tokens.items()}
        asks = {"X-Iceberg-Access-Delegation": "remote-signing"}
        staged = server.done("POST", "namespaces/db/tables", staging, heads["reader"] | asks)
        properties = staged["remote-signing-config"]["properties"]
        place = staged["metadata"]["location"].removeprefix("s3://")

        def status(who: str, name: str, key: str, passed: dict[str, str]) -> int:
            uri = f"{strict_s3_server.endpoint}/{key}"
            body = {"region": "r", "method": "PUT", "uri": uri, "headers": {}, "properties": passed}
            return server.ask("POST", f"namespaces/db/tables/{name}/sign", body, heads[who]).status_code

        assert status("reader", "s", f"{place}/x", properties) == 200
        assert status("reader", "s", f"{place}0/x", properties) == 403
        assert status("reader", "s", f"{place}/x", {}) == 403
        assert status("reader", "other", f"{place}/x", properties) == 403
        assert status("writer", "s", f"{place}/x", properties) == 403
        assert status("writer", "s", f"{place}/x", {}) == 404
        assert status("reader", "s", f"{place}/x", dict.fromkeys(properties, "AAAA")) == 403
        # What is there counts by its own grants.
        assert status("reader", "t", f"{place}/x", properties) == 403
        creator.close()
        owner.close()


def guarded(grants: list[dict[str, Any]]) -> tuple[auth.Access, dict[str, str]]:
    """Access control with a reader and a writer, and their tokens."""
    made = {name: new_credential(name, "", None) for name in ("reader", "writer")}
    principals = {name: {"tokens": [f"{one.id}:{one.secret_sha256}"]} for name, (one, _) in made.items()}
    settings = auth.auth_settings({"principals": principals, "grants": grants})
    return auth.guarded_access(settings, None), {name: token for name, (_, token) in made.items()}


def test_privileges_decide_what_is_signed(strict_s3_server: S3Server, tmp_path: Path) -> None:
    grants: list[dict[str, Any]] = [
        {"to": "principal:writer", "privileges": "manage", "warehouse": "lake"},
        {"to": "principal:reader", "privileges": "read", "warehouse": "lake", "namespace": "db", "table": "t"},
    ]
    access, tokens = guarded(grants)
    with lakehouse(strict_s3_server, tmp_path, {"mode": "signed"}, access) as (server, _):
        writer = client_of(server, "remote-signing", token=tokens["writer"])
        writer.create_namespace("db")
        for name in ("t", "t10"):
            writer.create_table(f"db.{name}", ROWS.schema).append(ROWS)
        location = writer.load_table("db.t").location()
        reader = client_of(server, "remote-signing", token=tokens["reader"])
        table = reader.load_table("db.t")
        assert table.scan().to_arrow().num_rows == 100
        with pytest.raises(StorageError, match="may be read, but not changed"):
            table.storage.write(f"{location}/data/x", b"")
        with pytest.raises(StorageError, match="not about files of table"):
            list(table.storage.list_prefix(f"{location}0"))
        bearer = {"Authorization": f"Bearer {tokens['reader']}"}
        body = {"region": "r", "method": "GET", "uri": f"{strict_s3_server.endpoint}/x", "headers": {}}
        for path, status in (("db/tables/t10", 404), ("db/tables/t", 403), ("db/tables/none", 404)):
            assert server.ask("POST", f"namespaces/{path}/sign", body, bearer).status_code == status
        assert server.ask("POST", "namespaces/db/tables/t/sign", body).status_code == 401
        assert server.ask("GET", "namespaces/db/tables/t10/credentials", None, bearer).status_code == 404
        odd = {**body, "uri": f"{strict_s3_server.endpoint}/b/../x"}
        assert server.ask("POST", "namespaces/db/tables/t/sign", odd, bearer).status_code == 403
        assert server.ask("POST", "namespaces/db/tables/t/sign", b"{", bearer).status_code == 400
        reader.close()
        writer.close()


def test_vended_policies_follow_privileges(s3_server: S3Server, tmp_path: Path) -> None:
    grants: list[dict[str, Any]] = [
        {"to": "principal:writer", "privileges": "manage", "warehouse": "lake"},
        {"to": "principal:reader", "privileges": "read", "warehouse": "lake"},
    ]
    access, tokens = guarded(grants)
    section = {"mode": "vended", "role-arn": ROLE, "sts-endpoint": s3_server.endpoint}
    with lakehouse(s3_server, tmp_path, section, access) as (server, _):
        writer = client_of(server, "vended-credentials", token=tokens["writer"])
        writer.create_namespace("db")
        before = len(policies())
        writer.create_table("db.t", ROWS.schema)
        reader = client_of(server, "vended-credentials", token=tokens["reader"])
        reader.load_table("db.t")
        reader.close()
        writer.close()
        actions = [policy["Statement"][0]["Action"] for policy in policies()[before:]]
        assert ["s3:PutObject" in one for one in actions] == [True, False]


def test_sections_of_the_configuration(tmp_path: Path) -> None:
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    for content, problem in (
        ({"access": 5}, "table like"),
        ({"access": {"sea": {}}}, r"\[access.sea\] is for no catalog; known are lake"),
        ({"access": {"lake": {"mode": "vended"}}}, r"access\.lake\.role-arn"),
    ):
        with pytest.raises(InvalidPropertyError, match=problem):
            files_of(content, {"lake": catalog})
    with serving({"lake": catalog}) as client:
        client.done("POST", "namespaces", {"namespace": ["ns"]})
        client.create()
        client.refused(406, "UnsupportedOperationException", "GET", "namespaces/ns/tables/t/credentials")
        body = {"region": "r", "method": "GET", "uri": "http://h/", "headers": {}}
        client.refused(406, "UnsupportedOperationException", "POST", "namespaces/ns/tables/t/sign", body)
