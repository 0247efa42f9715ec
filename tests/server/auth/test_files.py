"""What principals get at in a store through a whole server: the files of tables that they may read, and no sibling's."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from icefloe.server.auth import Kind, Privilege, Target
from tests.server.auth.whole_server import OPEN, SECRET, WholeServer, whole_server
from tests.storage.servers import S3Server

NS = "/v1/lake/namespaces"
ROLE = "arn:aws:iam::123456789012:role/tables"
HEADER = {"X-Iceberg-Access-Delegation": "vended-credentials,remote-signing"}
SIBLINGS = ("t2", "t-x", "T", "t.t")


@pytest.fixture
def signing(strict_s3_server: S3Server, tmp_path: Path) -> Iterator[tuple[WholeServer, str, str]]:
    """A server that signs requests, the address of its store, and the bucket."""
    bucket = strict_s3_server.new_bucket()
    options = {"place": f"s3://{bucket}", "properties": strict_s3_server.properties(), "files": {"mode": "signed"}}
    with whole_server(tmp_path, **options) as server:  # type: ignore[arg-type]  # one value for each option
        for name in SIBLINGS:
            server.catalog.create_table((OPEN, name), "id long")
        yield server, strict_s3_server.endpoint, bucket


def test_signatures_are_for_what_a_principal_may(signing: tuple[WholeServer, str, str]) -> None:
    server, endpoint, bucket = signing
    server.principal("guest", (Privilege.READ, Target("lake", (OPEN,), "t", Kind.TABLE)))

    def sign(who: str, method: str, key: str, table: str = f"{OPEN}/tables/t") -> int:
        uri = f"{endpoint}/{bucket}/lake/{key}"
        body = {"region": "us-east-1", "uri": uri, "method": method, "headers": {}}
        return server.ask(who, "POST", f"{NS}/{table}/sign", body).status

    assert sign("reader", "GET", f"{OPEN}/t/data/x") == 200
    assert sign("reader", "PUT", f"{OPEN}/t/data/x") == 403
    assert sign("editor", "PUT", f"{OPEN}/t/data/x") == 200
    for who in ("reader", "editor", "owner"):
        for sibling in SIBLINGS:
            assert sign(who, "GET", f"{OPEN}/{sibling}/data/x") == 403
        for key in (f"{SECRET}/t/data/x", f"{OPEN}/t/../../{SECRET}/t/x", f"{OPEN}/t/%2E%2E/x", f"{OPEN}x/t/x", OPEN):
            assert sign(who, "GET", key) == 403, key
        assert sign(who, "GET", f"{SECRET}/t/data/x", f"{SECRET}/tables/t") == 404
    assert sign("guest", "GET", f"{OPEN}/t/data/x") == 200
    assert sign("guest", "GET", f"{OPEN}/t2/data/x", f"{OPEN}/tables/t2") == 404


def test_credentials_are_for_the_table_alone(s3_server: S3Server, tmp_path: Path) -> None:
    bucket = s3_server.new_bucket()
    files = {"mode": "vended", "role-arn": ROLE, "sts-endpoint": s3_server.endpoint}
    with whole_server(tmp_path, place=f"s3://{bucket}", properties=s3_server.properties(), files=files) as server:
        for sibling in SIBLINGS:
            server.catalog.create_table((OPEN, sibling), "id long")
        loaded = server.ask("reader", "GET", f"{NS}/{OPEN}/tables/t", **HEADER)
        prefixes = {entry["prefix"] for entry in loaded.json["storage-credentials"]}
        assert prefixes == {f"s3://{bucket}/lake/{OPEN}/t/"}
        hidden = server.ask("reader", "GET", f"{NS}/{SECRET}/tables/t/credentials", **HEADER)
        assert hidden.status == 404
        secrets = [value for entry in loaded.json["storage-credentials"] for value in entry["config"].values()]
        recorded = json.dumps(server.records)
        assert not any(secret in recorded for secret in secrets if len(secret) > 15)
        assert not any(record["outcome"] == "denied" for record in server.records if record["principal"] == "reader")
