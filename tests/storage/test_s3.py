"""How S3 is spoken to: with which requests, which identity, and which promises."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from icefloe.errors import (
    InvalidLocationError,
    InvalidPropertyError,
    LocationExistsError,
    LocationNotFoundError,
    StorageError,
)
from icefloe.storage import Storage
from icefloe.storage.s3 import _bucket_url, open_bucket
from icefloe.storage.streams import RangedInput
from tests.storage.servers import S3Server


@pytest.fixture(autouse=True)
def _no_identity_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)


def test_nothing_costs_more_than_one_request(s3_server: S3Server) -> None:
    storage, bucket = s3_server.storage(), s3_server.new_bucket()
    small, large = f"s3://{bucket}/small", f"s3://{bucket}/large"
    storage.write(small, b"s" * 1000)
    storage.write(large, b"l" * (3 << 20))

    def spent(*requests: tuple[str, str]) -> bool:
        found = [(method, range_) for method, range_, _ in s3_server.requests]
        s3_server.requests.clear()
        return found == list(requests)

    s3_server.requests.clear()
    storage.read(small)
    assert spent(("GET", ""))
    storage.read_range(large, 10, 20)
    assert spent(("GET", "bytes=10-29"))
    storage.read_tail(large, 8)
    assert spent(("GET", "bytes=-8"))
    storage.stat(small)
    assert spent(("HEAD", ""))
    storage.write(small, b"again")
    assert spent(("PUT", ""))
    storage.write(large, b"l" * (20 << 20))
    assert spent(("PUT", ""))
    storage.open_input(small).read()
    assert spent(("GET", "bytes=-262144"))
    storage.open_input(small, size=5).read()
    assert spent(("GET", ""))
    handle = storage.open_input(large, size=20 << 20)
    assert isinstance(handle, RangedInput)
    assert spent()
    handle.seek(-64 << 10, 2)
    handle.read(64 << 10)
    handle.seek(-1000, 2)
    handle.read(8)
    assert spent(("GET", f"bytes={(20 << 20) - (256 << 10)}-{(20 << 20) - 1}"))
    handle.prefetch([(0, 100), (200, 100), (1 << 20, 100)])
    assert sorted(s3_server.requests) == [("GET", "bytes=0-299", ""), ("GET", "bytes=1048576-1048675", "")]
    s3_server.requests.clear()
    assert handle.read_at(250, 50) == b"l" * 50
    assert spent()


def test_many_files_are_deleted_in_one_request(s3_server: S3Server) -> None:
    storage, bucket = s3_server.storage(), s3_server.new_bucket()
    locations = [f"s3://{bucket}/{number}" for number in range(50)]
    for location in locations:
        storage.write(location, b"")
    s3_server.requests.clear()
    assert storage.delete(locations) == []
    assert [method for method, _, _ in s3_server.requests] == ["POST"]
    assert list(storage.list_prefix(f"s3://{bucket}")) == []


def test_many_files_that_were_too_many_are_deleted_a_little_later(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icefloe.storage.objects._WAITS_WHEN_TOO_FAST", (0.01, 0.01))
    storage, bucket = s3_server.storage(), s3_server.new_bucket()
    locations = [f"s3://{bucket}/{number}" for number in range(20)]
    for slow_downs in (1, 2):
        for location in locations:
            storage.write(location, b"")
        s3_server.requests.clear()
        s3_server.deletes_to_slow_down = slow_downs
        assert storage.delete(locations) == []
        assert [method for method, _, _ in s3_server.requests] == ["POST"] * (slow_downs + 1)
    assert list(storage.list_prefix(f"s3://{bucket}")) == []


def test_failures_of_a_deletion_are_told_one_by_one(s3_server: S3Server) -> None:
    storage, bucket = s3_server.storage(), s3_server.new_bucket()
    good, folder, nowhere = f"s3://{bucket}/good", f"s3://{bucket}/folder/", f"s3://{bucket}/a/../b"
    storage.write(good, b"")
    failures = storage.delete([good, folder, nowhere])
    assert {failure.location for failure in failures} == {folder, nowhere}
    assert not storage.exists(good)


@pytest.mark.parametrize("key", ["db/table//data/0.parquet", "/leading", "//two", "a//b//c d#%?é", "a///b"])
def test_keys_with_empty_names_are_reached(s3_server: S3Server, key: str) -> None:
    storage, bucket = s3_server.storage(), s3_server.new_bucket()
    location = f"s3://{bucket}/{key}"
    storage.create_exclusive(location, b"x")
    with s3_server.client() as client:
        assert client.get_object(Bucket=bucket, Key=key)["Body"].read() == b"x"
    with pytest.raises(LocationExistsError):
        storage.create_exclusive(location, b"y")
    with storage.open_output(location) as output:
        output.write(b"0123456789")
    assert storage.read_tail(location, 2).data == b"89"
    assert storage.stat(location).size == 10
    assert storage.delete([location, f"s3://{bucket}/other"]) == []
    assert not storage.exists(location)


def test_a_listing_that_would_miss_a_key_with_an_empty_name_fails(s3_server: S3Server) -> None:
    storage, bucket = s3_server.storage(), s3_server.new_bucket()
    storage.write(f"s3://{bucket}/table//data/0.parquet", b"x")
    with pytest.raises(StorageError, match="cannot be listed"):
        list(storage.list_prefix(f"s3://{bucket}/table/"))


@pytest.mark.parametrize("key", ["", "folder/", "a/./b", "a/../b", "..", "a\nb"])
def test_keys_that_cannot_be_reached_are_refused(s3_server: S3Server, key: str) -> None:
    with pytest.raises(InvalidLocationError):
        s3_server.storage().write(f"s3://some-bucket/{key}", b"x")


def test_a_missing_bucket_is_told(s3_server: S3Server) -> None:
    with pytest.raises(LocationNotFoundError, match="no such bucket"):
        s3_server.storage().read("s3://never-made/x")
    with pytest.raises(LocationNotFoundError, match="no such bucket"):
        s3_server.storage().write("s3://never-made/x", b"")


def test_a_store_that_ignores_conditions_is_found_out(s3_server: S3Server) -> None:
    bucket = s3_server.new_bucket()
    location = f"s3://{bucket}/table/metadata/v1.metadata.json"
    s3_server.ignores_conditions = True
    try:
        storage = s3_server.storage()
        assert not storage.supports_exclusive_create(location)
        with pytest.raises(StorageError, match="exclusively"):
            storage.create_exclusive(location, b"x")
        assert list(storage.list_prefix(f"s3://{bucket}")) == []
    finally:
        s3_server.ignores_conditions = False
    assert s3_server.storage().supports_exclusive_create(location)
    assert list(storage.list_prefix(f"s3://{bucket}")) == []


def test_a_create_whose_answer_is_lost_is_not_taken_for_anothers(s3_server: S3Server) -> None:
    storage, location = s3_server.storage(), f"s3://{s3_server.new_bucket()}/v1"
    assert storage.supports_exclusive_create(location)
    s3_server.requests.clear()
    s3_server.answers_to_lose = 1
    with pytest.raises(StorageError) as caught:
        storage.create_exclusive(location, b"ours")
    assert not isinstance(caught.value, LocationExistsError)
    assert [method for method, _, _ in s3_server.requests] == ["PUT"]
    assert storage.read(location) == b"ours"


def test_other_requests_are_tried_again(s3_server: S3Server) -> None:
    storage, location = s3_server.storage(), f"s3://{s3_server.new_bucket()}/x"
    s3_server.answers_to_lose = 2
    storage.write(location, b"x")
    s3_server.answers_to_lose = 2
    assert storage.read(location) == b"x"
    assert s3_server.answers_to_lose == 0


def test_an_aborted_upload_leaves_no_parts(s3_server: S3Server) -> None:
    storage, bucket = s3_server.storage(), s3_server.new_bucket()
    output = storage.open_output(f"s3://{bucket}/big")
    for _ in range(5):
        output.write(b"x" * (8 << 20))
    with s3_server.client() as client:
        assert len(client.list_multipart_uploads(Bucket=bucket)["Uploads"]) == 1
        output.abort()
        assert "Uploads" not in client.list_multipart_uploads(Bucket=bucket)


RACER = """
import sys, time
from icefloe.errors import LocationExistsError
from icefloe.storage import Storage
properties, location, me, start = eval(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4])
storage = Storage(properties)
storage.supports_exclusive_create(location)
time.sleep(max(0, start - time.time()))
for turn in range(20):
    try:
        storage.create_exclusive(f"{location}/{turn}", me.encode() * 10000)
        print(turn)
    except LocationExistsError:
        pass
"""


@pytest.mark.parametrize("kind", ["local", "s3"])
def test_processes_race_and_one_wins(kind: str, s3_server: S3Server, tmp_path: Path) -> None:
    properties = s3_server.properties() if kind == "s3" else {}
    location = f"s3://{s3_server.new_bucket()}/race" if kind == "s3" else f"file://{tmp_path}/race"
    start = time.time() + 3
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, repr(properties), location, str(number), str(start)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    won = {number: racer.communicate(timeout=60)[0].split() for number, racer in enumerate(racers)}
    assert [racer.returncode for racer in racers] == [0] * 4
    assert sorted(turn for turns in won.values() for turn in turns) == sorted(str(turn) for turn in range(20))
    storage = Storage(properties)
    for number, turns in won.items():
        for turn in turns:
            assert storage.read(f"{location}/{turn}") == str(number).encode() * 10000


FORKER = """
import os, sys
from icefloe.errors import StorageError
from icefloe.storage import Storage
storage, location = Storage(eval(sys.argv[1])), sys.argv[2]
storage.read(location)
child = os.fork()
if child == 0:
    try:
        storage.read(location)
    except StorageError as error:
        os._exit(7 if "forked" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_is_told_instead_of_left_waiting(s3_server: S3Server) -> None:
    location = f"s3://{s3_server.new_bucket()}/x"
    s3_server.storage().write(location, b"")
    command = [sys.executable, "-c", FORKER, repr(s3_server.properties()), location]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip() == "7"


def test_given_keys_do_not_mix_with_a_token_of_the_environment(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "another identity's token")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    bucket = s3_server.new_bucket()
    s3_server.requests.clear()
    s3_server.storage().write(f"s3://{bucket}/x", b"")
    Storage({**s3_server.properties(), "s3.session-token": "own"}).write(f"s3://{bucket}/x", b"")
    assert [token for _, _, token in s3_server.requests] == ["", "own"]


def test_keys_and_region_of_a_profile(s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = a\naws_secret_access_key = b\n"
        "[work]\naws_access_key_id = c\naws_secret_access_key = d\naws_session_token = from-profile\n"
    )
    bucket = s3_server.new_bucket()
    s3_server.requests.clear()
    Storage({"s3.endpoint": s3_server.endpoint}).write(f"s3://{bucket}/x", b"")
    Storage({"s3.endpoint": s3_server.endpoint, "s3.profile-name": "work"}).write(f"s3://{bucket}/x", b"")
    monkeypatch.setenv("AWS_PROFILE", "work")
    Storage({"s3.endpoint": s3_server.endpoint}).write(f"s3://{bucket}/x", b"")
    assert [token for _, _, token in s3_server.requests] == ["", "from-profile", "from-profile"]
    with pytest.raises(InvalidPropertyError, match="'other' has no aws_access_key_id"):
        Storage({"s3.profile-name": "other"}).read(f"s3://{bucket}/x")


def test_without_any_identity_the_error_says_what_to_set(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    storage = Storage({"s3.endpoint": s3_server.endpoint, "s3.retry.num-retries": "1"})
    with pytest.raises(StorageError, match=r"s3\.access-key-id.*AWS_"):
        storage.read("s3://bucket1/x")


def test_an_unreachable_endpoint_fails_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        storage = Storage(
            {
                "s3.endpoint": f"http://127.0.0.1:{port}",
                "s3.access-key-id": "a",
                "s3.secret-access-key": "bcdefgh",
                "s3.retry.num-retries": "2",
                "s3.connect-timeout": "1",
            }
        )
        started = time.monotonic()
        with pytest.raises(StorageError, match="s3://bucket1/x"):
            storage.read("s3://bucket1/x")
        assert time.monotonic() - started < 30


def test_a_silent_server_is_given_up_on() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        storage = Storage(
            {
                "s3.endpoint": f"http://127.0.0.1:{silent.getsockname()[1]}",
                "s3.access-key-id": "a",
                "s3.secret-access-key": "bcdefgh",
                "s3.retry.num-retries": "0",
                "s3.request-timeout": "0.5",
            }
        )
        started = time.monotonic()
        with pytest.raises(StorageError):
            storage.read("s3://bucket1/x")
        assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"s3.remote-signing-enabled": "true"}, "remote signing"),
        ({"s3.signer": "S3V4RestSigner"}, "remote signing"),
        ({"s3.role-arn": "arn:aws:iam::1:role/x"}, "assuming a role"),
        ({"s3.access-key-id": "a"}, "only useful together"),
        ({"s3.endpoint": "localhost:9000"}, "http:// or https://"),
        ({"s3.path-style-access": "perhaps"}, "true or false"),
        ({"s3.multipart.part-size-bytes": "100"}, "integer >= 5242880"),
        ({"s3.request-timeout": "soon"}, "seconds"),
    ],
)
def test_settings_that_mean_nothing_are_refused(properties: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidPropertyError, match=problem):
        Storage(properties).read("s3://bucket1/x")


@pytest.mark.parametrize(
    ("endpoint", "properties", "bucket", "url"),
    [
        (None, {}, "b", "https://b.s3.eu-west-1.amazonaws.com"),
        (None, {}, "b.c", "https://s3.eu-west-1.amazonaws.com/b.c"),
        (None, {"s3.path-style-access": "true"}, "b", "https://s3.eu-west-1.amazonaws.com/b"),
        ("http://h:9000", {}, "b", "http://h:9000/b"),
        ("http://h:9000", {"s3.path-style-access": "true"}, "b", "http://h:9000/b"),
        ("https://h", {"s3.path-style-access": "false"}, "b", "https://b.h"),
        ("https://h", {"s3.force-virtual-addressing": "true"}, "b", "https://b.h"),
    ],
)
def test_where_a_bucket_answers(endpoint: str | None, properties: dict[str, str], bucket: str, url: str) -> None:
    assert _bucket_url(bucket, endpoint, "eu-west-1", properties) == url


def test_amazons_own_conditions_are_trusted_and_others_tried() -> None:
    keys = {"s3.access-key-id": "a", "s3.secret-access-key": "b"}
    assert open_bucket("b", keys).known_conditional
    assert open_bucket("b", {**keys, "s3.endpoint": "https://s3.eu-west-1.amazonaws.com"}).known_conditional
    assert not open_bucket("b", {**keys, "s3.endpoint": "https://minio.example"}).known_conditional
    assert not open_bucket("b", {**keys, "s3.endpoint": "https://evil.example/.amazonaws.com"}).known_conditional
