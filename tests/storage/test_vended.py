"""Credentials that a catalog vends: by longest prefix, refreshed in time by one thread, in every process, and never shown."""

import logging
import pickle
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from obstore.store import AzureStore, GCSStore

from icefloe.errors import NotAuthorizedError, StorageError
from icefloe.storage import Storage, StorageCredential, VendedCredentials, parse_location, vended
from icefloe.storage.azure import open_container
from icefloe.storage.gcs import open_bucket
from icefloe.storage.vended import Grant, with_credential
from tests.storage.servers import ACCESS_KEY, SECRET, RefusingServer, S3Server


def keys(prefix: str, token: str, seconds: float | None = None) -> StorageCredential:
    """Credentials of S3 that expire in some seconds, or never."""
    config = {"s3.access-key-id": ACCESS_KEY, "s3.secret-access-key": SECRET, "s3.session-token": token}
    if seconds is not None:
        config["s3.session-token-expires-at-ms"] = str(int((time.time() + seconds) * 1000))
    return StorageCredential(prefix, config)


@dataclass
class Issuer:
    """A catalog that vends tokens `t1`, `t2`, ... for a prefix."""

    prefix: str
    seconds: float | None = 3600
    issued: int = 0
    waits: float = 0
    failure: Exception | None = None
    tokens: list[str] = field(default_factory=list)

    def __call__(self) -> Sequence[StorageCredential]:
        time.sleep(self.waits)
        if self.failure is not None:
            raise self.failure
        self.issued += 1
        self.tokens.append(f"t{self.issued}")
        return [keys(self.prefix, self.tokens[-1], self.seconds)]


@pytest.fixture
def judged(s3_server: S3Server) -> Iterator[S3Server]:
    yield s3_server
    s3_server.judge = lambda path, token: None


def endpoint(server: S3Server) -> dict[str, str]:
    return {"s3.endpoint": server.endpoint, "s3.region": "us-east-1"}


def tokens_of(server: S3Server) -> list[str]:
    return [token for _, _, token in server.requests]


def test_several_prefixes_of_one_bucket_have_keys_of_their_own(judged: S3Server) -> None:
    bucket = judged.new_bucket()
    tokens = {"data": "for-data", "metadata": "for-metadata", "": "for-the-rest"}

    def judge(path: str, token: str) -> str | None:
        names = path.split("/")[2:]
        return "InvalidAccessKeyId" if names and tokens.get(names[0], tokens[""]) != token else None

    judged.judge = judge
    prefixes = {"data": f"s3a://{bucket}/data/", "metadata": f"s3://{bucket}/metadata", "": "s3"}
    storage = Storage(
        {**endpoint(judged), "s3.session-token": "of the catalog"},
        VendedCredentials([keys(prefix, tokens[name]) for name, prefix in prefixes.items()]),
    )
    locations = [f"s3://{bucket}/{name}" for name in ("data/a", "metadata/b", "other/c", "data/deep/d", "x")]
    for location in locations:
        storage.write(location, b"x")
        assert storage.read(location) == b"x"
    assert [info.location for info in storage.list_files(f"s3://{bucket}/data")] == [locations[0]]
    assert storage.delete(locations) == []
    with pytest.raises(StorageError, match="refused"):
        Storage(endpoint(judged), VendedCredentials([keys("s3", "for-data")])).write(locations[1], b"")


def test_outside_of_every_prefix_the_properties_count(s3_server: S3Server) -> None:
    bucket = s3_server.new_bucket()
    storage = Storage(
        {**s3_server.properties(), "s3.session-token": "own"}, VendedCredentials([keys(f"s3://{bucket}/t1/", "vended")])
    )
    s3_server.requests.clear()
    storage.write(f"s3://{bucket}/t1/x", b"")
    storage.write(f"s3://{bucket}/t10/x", b"")
    assert tokens_of(s3_server) == ["vended", "own"]


NAMES = st.lists(st.sampled_from(["a", "ab", "b", "a b", "ä", ""]), max_size=4)


@given(prefixes=st.lists(NAMES, min_size=1, max_size=5), names=NAMES, scheme=st.sampled_from(["s3", "s3a", "s3n"]))
def test_the_longest_prefix_wins(prefixes: list[list[str]], names: list[str], scheme: str) -> None:
    given_prefixes = [f"{scheme}://bucket/{'/'.join(prefix)}" for prefix in prefixes]
    location = f"s3://bucket/{'/'.join(names)}"
    chosen = VendedCredentials([StorageCredential(prefix, {}) for prefix in given_prefixes]).find(
        parse_location(location)
    )
    texts = [prefix.replace(f"{scheme}:", "s3:", 1) for prefix in given_prefixes]
    longest = max(
        (text for text in texts if location.startswith(text) or f"{location}/" == text), key=len, default=None
    )
    assert (chosen and chosen.prefix.replace(f"{scheme}:", "s3:", 1)) == longest


@pytest.mark.parametrize(
    ("prefix", "location"),
    [
        ("abfss://c@acc.dfs.core.windows.net/t", "wasbs://c@acc.blob.core.windows.net/t/x"),
        ("wasbs://c@ACC.blob.core.windows.net", "abfss://c@acc.dfs.core.windows.net/t/x"),
        ("gcs://b/t", "gs://b/t/x"),
        ("gs", "gs://b/t/x"),
        ("", "gs://b/t/x"),
    ],
)
def test_spellings_of_one_place_match(prefix: str, location: str) -> None:
    assert VendedCredentials([StorageCredential(prefix, {})]).find(parse_location(location)) is not None
    assert VendedCredentials([StorageCredential("s3://b", {})]).find(parse_location(location)) is None


def test_credentials_are_refreshed_five_minutes_ahead(s3_server: S3Server) -> None:
    bucket = s3_server.new_bucket()
    issuer = Issuer(f"s3://{bucket}", 3600)
    current = VendedCredentials([keys(f"s3://{bucket}", "t0", 3600)], issuer)
    storage = Storage(endpoint(s3_server), current)
    s3_server.requests.clear()
    storage.write(f"s3://{bucket}/x", b"")
    assert issuer.issued == 0
    assert 3290 < current._current.due - time.time() < 3301
    current._current.due = time.time()
    storage.write(f"s3://{bucket}/x", b"")
    storage.write(f"s3://{bucket}/x", b"")
    assert tokens_of(s3_server) == ["t0", "t1", "t1"]
    assert issuer.issued == 1


def test_a_short_life_is_used_to_its_half(s3_server: S3Server) -> None:
    bucket = s3_server.new_bucket()
    issuer = Issuer(f"s3://{bucket}", 1.0)
    storage = Storage(endpoint(s3_server), VendedCredentials(issuer(), issuer))
    s3_server.requests.clear()
    started = time.time()
    for _ in range(12):
        storage.write(f"s3://{bucket}/x", b"")
        time.sleep(0.1)
    assert 2 <= issuer.issued <= 2 + (time.time() - started) / 0.5
    assert set(tokens_of(s3_server)) <= set(issuer.tokens)


def test_an_upload_that_outlives_its_token_goes_on_with_the_next(judged: S3Server) -> None:
    bucket = judged.new_bucket()
    issuer = Issuer(f"s3://{bucket}", 3600)
    current = VendedCredentials(issuer(), issuer)
    storage = Storage(endpoint(judged), current)
    with storage.open_output(f"s3://{bucket}/large") as output:
        output.write(b"1" * (17 << 20))
        # The old token is worth nothing from now on.
        current._current.due = 0
        current.find(parse_location(f"s3://{bucket}/large"))
        judged.judge = lambda path, token: None if token == "t2" else "ExpiredToken"
        output.write(b"2" * (17 << 20))
    assert storage.stat(f"s3://{bucket}/large").size == 34 << 20


def test_many_threads_refresh_once_and_none_is_refused(judged: S3Server) -> None:
    bucket = judged.new_bucket()
    issuer = Issuer(f"s3://{bucket}", 4.0, waits=0.05)
    storage = Storage(endpoint(judged), VendedCredentials(issuer(), issuer))
    valid: dict[str, float] = {}
    judged.judge = lambda path, token: (
        None if time.time() < valid.setdefault(token, time.time() + 3.9) else "ExpiredToken"
    )
    until = time.time() + 5

    def work(number: int) -> int:
        done = 0
        while time.time() < until:
            storage.write(f"s3://{bucket}/{number}", b"x")
            assert storage.read(f"s3://{bucket}/{number}") == b"x"
            done += 1
        return done

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(work, range(12)))
    assert 3 <= issuer.issued <= 5


def test_threads_wait_for_one_refresh_if_the_old_credentials_are_of_no_use(s3_server: S3Server) -> None:
    issuer = Issuer("s3://b", 3600, waits=0.2)
    current = VendedCredentials([keys("s3://b", "old", -1)], issuer)
    with ThreadPoolExecutor(16) as pool:
        chosen = list(pool.map(lambda _: current.find(parse_location("s3://b/x")), range(16)))
    assert {one.config["s3.session-token"] for one in chosen if one is not None} == {"t1"}
    assert issuer.issued == 1


def test_a_refresh_that_fails_is_no_failure_while_the_old_credentials_are_good(
    caplog: pytest.LogCaptureFixture,
) -> None:
    issuer = Issuer("s3://b", failure=NotAuthorizedError("the catalog refused"))
    current = VendedCredentials([keys("s3://b", "old", 100)], issuer)
    current._current.due = 0
    credential = current.find(parse_location("s3://b/x"))
    assert credential is not None
    assert credential.config["s3.session-token"] == "old"
    assert "tried again" in caplog.text
    # Not at every request.
    assert current._current.due > time.time() + 5


def test_a_refresh_that_fails_after_expiry_is_told_to_all_threads() -> None:
    issuer = Issuer("s3://b", failure=NotAuthorizedError("the catalog refused"), waits=0.1)
    current = VendedCredentials([keys("s3://b", "old", -1)], issuer)
    started, failures = time.time(), []

    def work() -> None:
        try:
            current.find(parse_location("s3://b/x"))
        except NotAuthorizedError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failures) == 8
    assert time.time() - started < 0.6
    # What comes right after it fails at once, and later on it is tried again.
    with pytest.raises(NotAuthorizedError):
        current.find(parse_location("s3://b/x"))
    issuer.failure = None
    assert current._current.failure is not None
    current._current.failure = (time.time() - 3, current._current.failure[1])
    assert current.find(parse_location("s3://b/x")) is not None


def test_a_refused_token_without_an_expiry_is_replaced(judged: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vended, "_BETWEEN_REFUSALS", 0.0)
    bucket = judged.new_bucket()
    issuer = Issuer(f"s3://{bucket}", None)
    location = f"s3://{bucket}/x"
    for ask in (
        lambda storage: storage.write(location, b"x"),
        lambda storage: storage.read(location),
        lambda storage: storage.read_tail(location, 1),
        lambda storage: storage.stat(location),
        lambda storage: list(storage.list_prefix(f"s3://{bucket}")),
        lambda storage: list(storage.list_folders(f"s3://{bucket}")),
        lambda storage: storage.create_exclusive(f"{location}-new", b"x"),
        lambda storage: storage.delete([location]),
    ):
        judged.judge = lambda path, token: None if token == f"t{issuer.issued}" else "ExpiredToken"
        storage = Storage(endpoint(judged), VendedCredentials([keys(f"s3://{bucket}", "revoked")], issuer))
        before = issuer.issued
        ask(storage)
        assert issuer.issued == before + 1


def test_a_token_that_expires_on_its_way_is_replaced(judged: S3Server) -> None:
    bucket = judged.new_bucket()
    issuer = Issuer(f"s3://{bucket}", 3600)
    current = VendedCredentials([keys(f"s3://{bucket}", "t0", 3600)], issuer)
    storage = Storage(endpoint(judged), current)

    def judge(path: str, token: str) -> str | None:
        if token == "t0":
            current._current.due = time.time()
            return "ExpiredToken"
        return None

    judged.judge = judge
    storage.write(f"s3://{bucket}/x", b"x")
    assert issuer.tokens == ["t1"]


def test_a_store_that_refuses_everything_causes_few_refreshes(judged: S3Server) -> None:
    issuer = Issuer("s3://bucket1")
    judged.judge = lambda path, token: "AccessDenied"
    storage = Storage(endpoint(judged), VendedCredentials([keys("s3://bucket1", "t0")], issuer))
    for _ in range(5):
        with pytest.raises(StorageError, match="refused"):
            storage.read("s3://bucket1/x")
    assert issuer.issued == 0


OTHER_PROCESS = """
import pickle, sys, time
storage, location = pickle.load(open(sys.argv[1], "rb")), sys.argv[2]
copy = pickle.loads(pickle.dumps(storage))
assert copy == storage
until = time.time() + 2.5
while time.time() < until:
    copy.write(location, b"x")
    storage.read(location)
    time.sleep(0.05)
print(sum(one._credentials._refresh.issued - 1 for one in (copy, storage)))
"""


def test_another_process_refreshes_by_itself(judged: S3Server, tmp_path: Path) -> None:
    bucket = judged.new_bucket()
    issuer = Issuer(f"s3://{bucket}", 1.0)
    storage = Storage(endpoint(judged), VendedCredentials(issuer(), issuer))
    (tmp_path / "pickle").write_bytes(pickle.dumps(storage))
    judged.requests.clear()
    command = [sys.executable, "-c", OTHER_PROCESS, str(tmp_path / "pickle"), f"s3://{bucket}/x"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    # Every half second, and both copies in that process refresh as one.
    assert 2 <= int(done.stdout) <= 7


def test_a_pickle_with_newer_credentials_brings_them() -> None:
    current = VendedCredentials([keys("s3://b", "old", 100)])
    text = pickle.dumps(current)
    assert pickle.loads(text)._current is current._current
    newer = vended._restored(current._key, [keys("s3://b", "new", 1000)], None)
    assert newer == current
    credential = current.find(parse_location("s3://b/x"))
    assert credential is not None
    assert credential.config["s3.session-token"] == "new"
    assert hash(Storage({}, current)) == hash(Storage({}, newer))
    assert Storage({}, current) != Storage({})


def test_a_vended_identity_takes_the_place_of_every_other() -> None:
    properties = {
        "s3.access-key-id": "a",
        "s3.secret-access-key": "b",
        "s3.session-token": "c",
        "s3.profile-name": "d",
        "client.role-arn": "e",
        "s3.region": "f",
        "gcs.no-auth": "true",
        "adls.account-key": "g",
    }
    vended_keys = {"s3.access-key-id": "A", "s3.secret-access-key": "B"}
    assert with_credential(properties, vended_keys) == {
        **vended_keys,
        "s3.region": "f",
        "gcs.no-auth": "true",
        "adls.account-key": "g",
    }
    assert "gcs.no-auth" not in with_credential(properties, {"gcs.oauth2.token": "T"})
    assert "adls.account-key" not in with_credential(properties, {"adls.sas-token.account": "T"})
    assert with_credential(properties, {"s3.endpoint": "http://h"}) == {**properties, "s3.endpoint": "http://h"}


def test_stores_of_google_and_azure_ask_for_the_newest_token() -> None:
    location = parse_location("gs://b/x")
    tokens = VendedCredentials([StorageCredential("gs://b", {"gcs.oauth2.token": "one"})])
    grant = Grant({}, tokens, location)
    google = open_bucket("b", grant.settings(), grant).open_store(True, None)
    assert isinstance(google, GCSStore)
    assert google.credential_provider is not None
    tokens._current.put([StorageCredential("gs://b", {"gcs.oauth2.token": "two"})])
    answer = google.credential_provider()
    assert isinstance(answer, dict)
    assert answer["token"] == "two"
    assert isinstance(answer["expires_at"], datetime)

    location = parse_location("abfss://c@acc.dfs.core.windows.net/x")
    sas = VendedCredentials([StorageCredential("abfss://c@acc", {"adls.sas-token.acc": "?sig=one"})])
    grant = Grant({}, sas, location)
    azure = open_container("c@acc.dfs.core.windows.net", grant.settings(), grant).open_store(True, None)
    assert isinstance(azure, AzureStore)
    assert azure.credential_provider is not None
    sas._current.put([StorageCredential("abfss://c@acc", {"adls.sas-token.acc": "?sig=two"})])
    token = azure.credential_provider()
    assert isinstance(token, dict)
    assert token.get("sas_token") == "sig=two"


def test_google_is_asked_again_with_the_next_token(
    refusing_server: RefusingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vended, "_BETWEEN_REFUSALS", 0.0)
    tokens = iter(("two", "three"))
    first = StorageCredential("gs://b", {"gcs.oauth2.token": "one"})
    current = VendedCredentials([first], lambda: [StorageCredential("gs://b", {"gcs.oauth2.token": next(tokens)})])
    with pytest.raises(StorageError, match="refused"):
        Storage({"gcs.service.host": refusing_server.endpoint}, current).stat("gs://b/x")
    assert [headers["authorization"] for _, headers in refusing_server.seen] == ["Bearer one", "Bearer two"]


def test_no_credential_is_shown(
    judged: S3Server, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    issuer = Issuer("s3://bucket1", failure=RuntimeError(f"GET failed with {SECRET} and tOkEn-of-the-catalog"))
    current = VendedCredentials([keys("s3://bucket1", "tOkEn-vended", 100)], issuer)
    storage = Storage({**endpoint(judged), "s3.secret-access-key": "of-the-properties"}, current)
    judged.judge = lambda path, token: f"Denied {token}"
    seen = [repr(storage), repr(current), repr(current._current.credentials[0])]
    for is_expired in (False, True):
        if is_expired:
            current._current.put([keys("s3://bucket1", "tOkEn-next", -1)])
        current._current.due = 0
        with pytest.raises(StorageError) as caught:
            storage.read("s3://bucket1/x")
        seen += [repr(caught.value), str(caught.value), "".join(traceback.format_exception(caught.value))]
    seen += [caplog.text, *capfd.readouterr()]
    everything = "\n".join(seen)
    for secret in (SECRET, ACCESS_KEY, "tOkEn-vended", "tOkEn-next", "tOkEn-of-the-catalog", "of-the-properties"):
        assert secret not in everything
    assert "s3://bucket1" in everything
