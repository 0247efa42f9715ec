"""Clients of a server get at the files of tables as its operator says, and say nothing of a store themselves."""

from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.catalog import Catalog, load_catalog
from icefloe.errors import InvalidPropertyError
from icefloe.server.access import access_settings
from icefloe.server.file_access import WarehouseFiles, access_to, files_of
from tests.server.running import SCHEMA, Client, serving
from tests.storage.servers import S3Server

ROLE = "arn:aws:iam::123456789012:role/tables"
HEADER = "X-Iceberg-Access-Delegation"
UNDERSTOOD = {"vended": "vended-credentials", "signed": "remote-signing", "static": "vended-credentials"}


def catalog_on(store: S3Server, folder: Path) -> Catalog:
    uri, warehouse = f"sqlite:///{folder}/lake.db", f"s3://{store.new_bucket()}/wh"
    return load_catalog("lake", type="sql", uri=uri, warehouse=warehouse, **store.properties())


@pytest.mark.parametrize("mode", UNDERSTOOD)
def test_rows_are_written_and_read_with_what_the_server_gives(
    mode: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    # The strict one knows one key alone, which is not one of those that are vended.
    store: S3Server = request.getfixturevalue("s3_server" if mode == "vended" else "strict_s3_server")
    catalog = catalog_on(store, tmp_path)
    keys = {key: text for key, text in store.properties().items() if "key" in key}
    given = {"mode": mode, "role-arn": ROLE, "sts-endpoint": store.endpoint, "static": keys}
    files = WarehouseFiles({"lake": access_to(catalog, access_settings(given))})
    with serving({"lake": catalog}, files=files) as server:
        server.done("POST", "namespaces", {"namespace": ["ns"]})
        properties = {f"header.{HEADER}": UNDERSTOOD[mode]}
        with load_catalog("there", type="rest", uri=server.url, warehouse="lake", **properties) as remote:
            table = remote.create_table("ns.t", "id bigint")
            table.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
            assert remote.load_table("ns.t").scan().to_arrow()["id"].to_pylist() == [1, 2]
        endpoints = server.http.get(f"{server.url}/v1/config").json()["endpoints"]
        assert any(each.endswith("/sign") for each in endpoints) is (mode == "signed")
        assert any(each.endswith("/credentials") for each in endpoints) is (mode != "signed")


def test_a_server_that_gives_nothing_says_so(lake: Client) -> None:
    lake.create()
    assert lake.ask("GET", "namespaces/ns/tables/t", headers={HEADER: "vended-credentials"}).json()["config"] == {}
    lake.refused(406, "UnsupportedOperationException", "GET", "namespaces/ns/tables/t/credentials")


def test_settings_are_for_a_catalog(s3_server: S3Server, tmp_path: Path) -> None:
    catalog = catalog_on(s3_server, tmp_path)
    assert files_of({}, {"lake": catalog}).modes("lake") == ()
    assert [mode.value for mode in files_of({"access": {"lake": {"mode": "none"}}}, {"lake": catalog}).modes("lake")]
    refused: tuple[dict[str, object], ...] = ({"access": 1}, {"access": {"sea": {}}}, {"access": {"lake": 1}})
    for wrong in refused:
        with pytest.raises(InvalidPropertyError, match="access"):
            files_of(wrong, {"lake": catalog})


def test_nothing_is_created_if_no_access_can_be_given(s3_server: S3Server, tmp_path: Path) -> None:
    catalog = catalog_on(s3_server, tmp_path)
    given = {"mode": "vended", "role-arn": ROLE, "sts-endpoint": "http://127.0.0.1:1"}
    files = WarehouseFiles({"lake": access_to(catalog, access_settings(given))})
    with serving({"lake": catalog}, files=files) as server:
        server.done("POST", "namespaces", {"namespace": ["ns"]})
        body = {"name": "t", "schema": SCHEMA}
        answer = server.ask("POST", "namespaces/ns/tables", body, {HEADER: "vended-credentials"})
        assert answer.status_code == 503
        assert server.done("GET", "namespaces/ns/tables")["identifiers"] == []
