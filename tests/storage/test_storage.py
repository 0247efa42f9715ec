"""One Storage serves many stores and threads, and carries its credentials to no other."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from icefloe.errors import InvalidLocationError, InvalidPropertyError, NotInstalledError
from icefloe.storage import Storage
from icefloe.storage.azure import open_container
from icefloe.storage.gcs import open_bucket
from tests.storage.servers import S3Server


def test_one_call_may_reach_several_stores(s3_server: S3Server, tmp_path: Path) -> None:
    storage = s3_server.storage()
    locations = [f"{tmp_path}/a", "memory://several/a", f"s3://{s3_server.new_bucket()}/a", f"file:{tmp_path}/b"]
    for location in locations:
        storage.write(location, location.encode())
    assert [storage.read(location).decode() for location in locations] == locations
    assert storage.delete(locations) == []
    assert not any(storage.exists(location) for location in locations)


def test_an_alias_of_a_scheme_reaches_the_same_file_and_keeps_its_spelling(s3_server: S3Server) -> None:
    storage, bucket = s3_server.storage(), s3_server.new_bucket()
    storage.write(f"s3a://{bucket}/x", b"1")
    assert storage.read(f"s3n://{bucket}/x") == b"1"
    assert [info.location for info in storage.list_prefix(f"s3a://{bucket}/")] == [f"s3a://{bucket}/x"]


def test_threads_share_it(s3_server: S3Server) -> None:
    storage, bucket = s3_server.storage(), s3_server.new_bucket()

    def work(number: int) -> bytes:
        storage.write(f"s3://{bucket}/{number}", str(number).encode())
        return storage.read(f"s3://{bucket}/{number}")

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(work, range(64))) == [str(number).encode() for number in range(64)]


def test_credentials_belong_to_one_object(s3_server: S3Server) -> None:
    bucket = s3_server.new_bucket()
    one = Storage({**s3_server.properties(), "s3.session-token": "one"})
    other = Storage({**s3_server.properties(), "s3.session-token": "other"})
    s3_server.requests.clear()
    for storage in (one, other, pickle.loads(pickle.dumps(one)), other):
        storage.write(f"s3://{bucket}/x", b"")
    assert [token for _, _, token in s3_server.requests] == ["one", "other", "one", "other"]


def test_properties_cannot_be_changed_from_outside() -> None:
    given = {"s3.region": "a"}
    storage = Storage(given)
    given["s3.region"] = "b"
    assert storage.properties["s3.region"] == "a"
    with pytest.raises(TypeError):
        storage.properties["s3.region"] = "c"  # type: ignore[index]  # on purpose
    assert storage == Storage({"s3.region": "a"})
    assert storage != Storage({"s3.region": "b"})
    assert len({storage, Storage({"s3.region": "a"})}) == 1


def test_an_unknown_scheme_names_the_known_ones() -> None:
    with pytest.raises(InvalidLocationError, match=r"'ftp'; known: .*s3a:.*abfss:.*hdfs:"):
        Storage().read("ftp://host/file")


def test_memory_is_shared_in_the_process_and_apart_by_name() -> None:
    Storage().write("memory://shared/x", b"1")
    assert Storage().read("memory://shared/x") == b"1"
    assert not Storage().exists("memory://not-shared/x")
    with pytest.raises(InvalidLocationError, match="folder"):
        Storage().write("memory://shared/x/", b"")
    Storage().delete(["memory://shared/x"])


def test_hdfs_without_hadoop_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_HOME", "ARROW_LIBHDFS_DIR", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NotInstalledError, match="HADOOP_HOME"):
        Storage().read("hdfs://namenode:8020/x")
    with pytest.raises(InvalidPropertyError, match="host:port"):
        Storage().read("hdfs://namenode:port/x")


HOST = "account.dfs.core.windows.net"


@pytest.mark.parametrize(
    ("authority", "properties", "expected"),
    [
        (
            f"c@{HOST}",
            {"adls.account-key": "a2V5"},
            {"account_name": "account", "container_name": "c", "account_key": "a2V5", "credential_type": "access_key"},
        ),
        ("c", {"adls.account-name": "acc", "adls.token": "t"}, {"account_name": "acc", "token": "t"}),
        (f"c@{HOST}", {f"adls.sas-token.{HOST}": "?sig=x"}, {"sas_key": "sig=x", "credential_type": "sas_token"}),
        (f"c@{HOST}", {"adls.sas-token.account": "sig=x", "adls.account-name": "other"}, {"sas_key": "sig=x"}),
        (
            f"c@{HOST}",
            {"adls.tenant-id": "t", "adls.client-id": "i", "adls.client-secret": "s"},
            {"tenant_id": "t", "client_id": "i", "client_secret": "s", "credential_type": "client_secret"},
        ),
        (
            "c@account.dfs.core.chinacloudapi.cn",
            {"adls.anon": "true"},
            {"endpoint": "https://account.blob.core.chinacloudapi.cn"},
        ),
        (
            "c",
            {"adls.connection-string": "AccountName=dev;AccountKey=a2V5Cg==;BlobEndpoint=http://127.0.0.1:10000/dev"},
            {"account_name": "dev", "account_key": "a2V5Cg==", "endpoint": "http://127.0.0.1:10000/dev"},
        ),
    ],
)
def test_azure_settings(authority: str, properties: dict[str, str], expected: dict[str, str]) -> None:
    config = dict(open_container(authority, properties).open_store(True, None).config)
    assert expected.items() <= config.items()


@pytest.mark.parametrize(
    ("authority", "properties", "problem"),
    [
        ("c", {}, "adls.account-name"),
        (f"c@{HOST}", {"adls.account-name": "other", "adls.account-key": "a2V5"}, "belongs to the account 'other'"),
        (f"c@{HOST}", {"adls.blob-storage-scheme": "ftp"}, "http or https"),
    ],
)
def test_azure_settings_that_are_refused(authority: str, properties: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidPropertyError, match=problem):
        open_container(authority, properties)


def test_gcs_settings() -> None:
    bucket = open_bucket("b", {"gcs.service.host": "http://127.0.0.1:4443/", "gcs.no-auth": "true"})
    config = dict(bucket.open_store(True, None).config)
    assert config["bucket"] == "b"
    assert config["base_url"] == "http://127.0.0.1:4443"
    assert not bucket.known_conditional
    assert open_bucket("b", {"gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "1690971805918"}).known_conditional
    with pytest.raises(InvalidPropertyError, match="http:// or https://"):
        open_bucket("b", {"gcs.service.host": "127.0.0.1:4443"})
