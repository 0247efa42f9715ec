"""How clients get at files, from both ends: what the server gives, and a real store reached with it."""

import json
import logging
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from moto.sts.models import sts_backends

from icefloe import load_catalog
from icefloe.catalog import ServedCatalog
from icefloe.errors import (
    ForbiddenError,
    InvalidPropertyError,
    ServiceUnavailableError,
    StorageError,
    UnsupportedOperationError,
)
from icefloe.server.access import (
    AccessSettings,
    Asking,
    Endpoints,
    Mode,
    Territory,
    WarehouseAccess,
    access_settings,
    delegations,
)
from icefloe.storage import SignedRequest, SignRequest, Storage, VendedCredentials
from tests.server.access.test_places import table_at
from tests.storage.servers import ACCESS_KEY, SECRET, S3Server

VENDED, SIGNING = delegations("vended-credentials"), delegations("remote-signing")
ENDPOINTS = Endpoints("v1/wh/namespaces/db/tables/t1/credentials", "v1/wh/namespaces/db/tables/t1/sign")
ROLE = "arn:aws:iam::123456789012:role/tables"


@pytest.fixture
def bucket(strict_s3_server: S3Server) -> str:
    return strict_s3_server.new_bucket()


def access_to(server: S3Server, bucket: str, **settings: Any) -> WarehouseAccess:
    territory = Territory(
        lambda namespace: f"s3://{bucket}/wh/{'/'.join(namespace)}", lambda name: None, lambda name: False
    )
    given = access_settings({"role-arn": ROLE, "sts-endpoint": server.endpoint, **settings})
    return WarehouseAccess(given, server.properties(), territory)


def asking(bucket: str, understands: frozenset[str] = VENDED, **changes: Any) -> Asking:
    return replace(Asking(("db", "t1"), table_at(f"s3://{bucket}/wh/db/t1"), "ann", True, understands), **changes)


def policies() -> list[dict[str, Any]]:
    backend = sts_backends["123456789012"]["aws"]
    return [json.loads(role.policy) for role in backend.assumed_roles]


def test_the_operators_order_decides_among_what_the_client_understands(strict_s3_server: S3Server, bucket: str) -> None:
    both = VENDED | SIGNING
    for modes, understands, expected in (
        (["none"], both, Mode.NONE),
        (["vended", "signed"], both, Mode.VENDED),
        (["signed", "vended"], both, Mode.SIGNED),
        (["signed", "vended"], VENDED, Mode.VENDED),
        (["vended"], SIGNING, Mode.NONE),
        (["vended", "signed"], frozenset(), Mode.NONE),
        (["static"], VENDED, Mode.STATIC),
    ):
        access = access_to(strict_s3_server, bucket, modes=modes, static={"s3.access-key-id": "k"})
        assert access.mode(asking(bucket, understands)) is expected
    assert delegations(" Vended-Credentials , remote-signing,") == both
    assert delegations(None) == frozenset()


def test_static_properties_are_handed_on(strict_s3_server: S3Server, bucket: str) -> None:
    static = {"s3": {"access-key-id": ACCESS_KEY, "secret-access-key": SECRET}}
    access = access_to(strict_s3_server, bucket, mode="static", static=static, client={"s3.endpoint": "http://outside"})
    config = access.surplus(asking(bucket), ENDPOINTS).config
    assert config["s3.secret-access-key"] == SECRET
    assert config["s3.endpoint"] == "http://outside"
    assert config["s3.path-style-access"] == "true"
    assert access.credentials(asking(bucket))[0].prefix == f"s3://{bucket}/wh/db/t1/"
    assert access.surplus(asking(bucket, frozenset()), ENDPOINTS).config == {}
    with pytest.raises(UnsupportedOperationError):
        access.sign(asking(bucket), SignRequest("GET", "r", "http://x/", {}))


def test_vended_credentials_are_for_the_table_and_the_privilege(s3_server: S3Server) -> None:
    bucket = s3_server.new_bucket()
    access = access_to(s3_server, bucket, mode="vended")
    before = len(policies())
    surplus = access.surplus(asking(bucket, principal="user:ann smith"), ENDPOINTS)
    credential = surplus.credentials[0]
    assert credential.prefix == f"s3://{bucket}/wh/db/t1/"
    assert surplus.config["client.refresh-credentials-endpoint"] == ENDPOINTS.credentials
    assert surplus.config["s3.session-token"] == credential.config["s3.session-token"]
    assert 3500 < credential.expires_at - time.time() < 3700
    reader = access.credentials(asking(bucket, may_write=False))[0]
    assert reader.config != credential.config
    write, read = policies()[before:]
    assert write["Statement"][0]["Resource"] == [f"arn:aws:s3:::{bucket}/wh/db/t1/*"]
    assert "s3:PutObject" in write["Statement"][0]["Action"]
    assert not any(re.search("Put|Delete|Abort", action) for one in read["Statement"] for action in one["Action"])
    storage = Storage({"s3.endpoint": s3_server.endpoint}, VendedCredentials(surplus.credentials))
    storage.write(f"s3://{bucket}/wh/db/t1/x", b"x")
    assert s3_server.requests[-1][2] == credential.config["s3.session-token"]


def test_credentials_are_used_again_for_half_of_their_life(s3_server: S3Server) -> None:
    bucket = s3_server.new_bucket()
    access = access_to(s3_server, bucket, mode="vended")
    before = len(policies())
    with ThreadPoolExecutor(8) as pool:
        tokens = {
            one[0].config["s3.session-token"]
            for one in pool.map(lambda _: access.credentials(asking(bucket)), range(16))
        }
    assert len(tokens) == len(policies()) - before == 1
    access.credentials(asking(bucket, principal="bob"))
    access.credentials(asking(bucket, may_write=False))
    assert len(policies()) - before == 3
    key = next(iter(access._issued._entries))
    until, issued = access._issued.find(key) or (0, None)
    assert 1700 < until - time.time() < 1801
    assert issued is not None
    access._issued.keep(key, (time.time() - 1, issued))
    assert access.credentials(asking(bucket))[0].config["s3.session-token"] not in tokens


def test_nothing_is_vended_for_places_that_are_not_the_tables(
    s3_server: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    bucket = s3_server.new_bucket()
    access = access_to(s3_server, bucket, mode="vended")
    elsewhere = asking(bucket, metadata=table_at(f"s3://{bucket}/wh/other/t1"))
    assert access.credentials(elsewhere) == ()
    assert access.surplus(elsewhere, ENDPOINTS).config == {}
    assert "may not have files there" in caplog.text
    two = table_at(f"s3://{bucket}/wh/db/t1", {"write.data.path": f"s3://{bucket}/wh/db/t1-data"})
    assert access.credentials(asking(bucket, metadata=two))[0].prefix == f"s3://{bucket}/wh/db/t1"


def test_a_token_service_that_fails_is_told_without_its_secrets(bucket: str, strict_s3_server: S3Server) -> None:
    access = access_to(strict_s3_server, bucket, mode="vended", **{"sts-endpoint": "http://127.0.0.1:1"})
    access._identity._client().meta.config.connect_timeout = 1
    with pytest.raises(ServiceUnavailableError, match=r"EndpointConnectionError|ConnectTimeoutError") as caught:
        access.credentials(asking(bucket))
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.fixture
def signed_access(strict_s3_server: S3Server, bucket: str) -> WarehouseAccess:
    return access_to(strict_s3_server, bucket, mode="signed")


def client_of(access: WarehouseAccess, who: Asking) -> Storage:
    """The storage of a client, with what the server says and nothing else."""
    return Storage(access.surplus(who, ENDPOINTS).config, sign=lambda request: access.sign(who, request))


def test_signed_access_reads_writes_lists_and_deletes_the_tables_files(
    signed_access: WarehouseAccess, strict_s3_server: S3Server, bucket: str
) -> None:
    surplus = signed_access.surplus(asking(bucket, SIGNING), ENDPOINTS)
    assert surplus.config["s3.signer.endpoint"] == surplus.config["signer.endpoint"] == ENDPOINTS.sign
    assert not any(secret in str(surplus.config) for secret in (SECRET, ACCESS_KEY))
    storage = client_of(signed_access, asking(bucket, SIGNING))
    home = f"s3://{bucket}/wh/db/t1"
    for name in ("a b", "ä+%", "deep/er/x=1"):
        storage.write(f"{home}/{name}", name.encode())
        assert storage.read(f"{home}/{name}") == name.encode()
    storage.create_exclusive(f"{home}/once", b"1")
    with storage.open_output(f"{home}/large") as output:
        output.write(bytes(20 << 20))
    assert storage.stat(f"{home}/large").size == 20 << 20
    assert len(list(storage.list_prefix(home))) == 5
    assert storage.delete([info.location for info in storage.list_prefix(home)]) == []
    assert list(storage.list_prefix(home)) == []


def test_signed_access_reaches_nothing_else(
    signed_access: WarehouseAccess, strict_s3_server: S3Server, bucket: str
) -> None:
    others = f"s3://{bucket}/wh/db/t10/x"
    strict_s3_server.storage().write(others, b"secret")
    storage = client_of(signed_access, asking(bucket, SIGNING))
    for ask in (
        lambda: storage.read(others),
        lambda: storage.stat(others),
        lambda: storage.write(others, b""),
        lambda: list(storage.list_prefix(f"s3://{bucket}/wh/db")),
        lambda: list(storage.list_prefix(f"s3://{bucket}")),
        lambda: storage.read(f"s3://{strict_s3_server.new_bucket()}/wh/db/t1/x"),
    ):
        with pytest.raises(StorageError, match="did not sign"):
            ask()
    assert len(storage.delete([others, f"s3://{bucket}/wh/db/t1/x"])) == 1
    assert strict_s3_server.storage().read(others) == b"secret"


def test_readers_get_no_signature_for_changes(signed_access: WarehouseAccess, bucket: str) -> None:
    writer, reader = asking(bucket, SIGNING), asking(bucket, SIGNING, may_write=False)
    location = f"s3://{bucket}/wh/db/t1/x"
    client_of(signed_access, writer).write(location, b"x")
    storage = client_of(signed_access, reader)
    assert storage.read(location) == b"x"
    assert [info.location for info in storage.list_prefix(f"s3://{bucket}/wh/db/t1")] == [location]
    with pytest.raises(StorageError, match="may be read, but not changed"):
        storage.write(location, b"y")
    with pytest.raises(StorageError, match="may be read, but not changed"):
        storage.open_output(location).close()
    assert len(storage.delete([location])) == 1
    with pytest.raises(ForbiddenError):
        signed_access.sign(
            reader, SignRequest("POST", "r", f"{signed_access._endpoint}/{bucket}/wh/db/t1/x?uploads", {})
        )


def test_a_table_is_written_and_read_through_signed_requests(
    strict_s3_server: S3Server, bucket: str, tmp_path: Path
) -> None:
    catalog = load_catalog(
        type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"s3://{bucket}/wh", **strict_s3_server.properties()
    )
    served = ServedCatalog(catalog)
    territory = Territory(served.namespace_folder, served.table_location, served.namespace_exists)
    access = WarehouseAccess(access_settings({"mode": "signed"}), strict_s3_server.properties(), territory)
    catalog.create_namespace("db")
    rows = pa.table({"a": pa.array(range(1000)), "b": [f"row {number}" for number in range(1000)]})
    who = Asking(("db", "t1"), catalog.create_table("db.t1", rows.schema).metadata, "ann", True, SIGNING)
    asked: list[str] = []

    def sign(request: SignRequest) -> SignedRequest:
        asked.append(request.method)
        return access.sign(who, request)

    # From here on no key is at hand.
    catalog._storage = Storage(access.surplus(who, ENDPOINTS).config, sign=sign)
    table = catalog.load_table("db.t1")
    table.append(rows)
    table.delete("a < 500")
    assert sorted(catalog.load_table("db.t1").scan().to_arrow()["a"].to_pylist()) == list(range(500, 1000))
    assert {"GET", "PUT"} <= set(asked)
    catalog.close()


def test_settings_are_read_strictly() -> None:
    settings = access_settings(
        {"modes": "vended, signed", "role-arn": ROLE, "lifetime-seconds": "900", "locations": ["s3://b"]}
    )
    assert settings.modes == (Mode.VENDED, Mode.SIGNED)
    assert (settings.lifetime_seconds, settings.locations) == (900, ("s3://b",))
    assert access_settings({}) == AccessSettings()
    for section, problem in (
        ({"mode": "vended"}, "role-arn"),
        ({"mode": "static"}, "static"),
        ({"mode": "all"}, "'all'; known are none, static"),
        ({"modes": 5}, "list of texts"),
        ({"rolearn": "x"}, "'rolearn', which means nothing"),
        ({"lifetime-seconds": 60}, "900 to 43200"),
        ({"client": "x"}, "table of texts"),
        ({"client": {"s3": {"region": 5}}}, "text is expected"),
    ):
        with pytest.raises(InvalidPropertyError, match=problem):
            access_settings(section)
    with pytest.raises(InvalidPropertyError, match="only useful together"):
        WarehouseAccess(
            access_settings({"identity": {"s3.access-key-id": "x"}}),
            {},
            Territory(lambda _: None, lambda _: None, lambda _: False),
        )


def test_no_secret_is_shown(strict_s3_server: S3Server, bucket: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    static = {"s3.secret-access-key": "of-the-static-ones", "s3.access-key-id": "x"}
    secret = {"external-id": "eXtErNaL", "identity": {"s3.access-key-id": ACCESS_KEY, "s3.secret-access-key": SECRET}}
    access = access_to(strict_s3_server, bucket, modes=["signed", "static"], static=static, **secret)
    texts = [repr(access), repr(access.settings), repr(access.surplus(asking(bucket), ENDPOINTS))]
    texts.append(repr(access.credentials(asking(bucket))))
    texts.append(
        repr(
            access.sign(asking(bucket), SignRequest("GET", "r", f"{strict_s3_server.endpoint}/{bucket}/wh/db/t1/x", {}))
        )
    )
    with pytest.raises(ForbiddenError) as caught:
        access.sign(
            asking(bucket), SignRequest("GET", "r", f"{strict_s3_server.endpoint}/{bucket}/x?X-Amz-Signature=zzz", {})
        )
    texts += [
        repr(caught.value),
        "\n".join(record.getMessage() for record in caplog.records if "icefloe" in record.name),
    ]
    for hidden in (SECRET, "of-the-static-ones", "eXtErNaL", "Signature=", "zzz"):
        assert not any(hidden in text for text in texts)
