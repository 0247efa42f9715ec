"""Settings are read strictly, and credentials stay out of everything that can be printed."""

import logging
import pickle
import traceback
from collections.abc import Callable

import pytest

from icefloe.errors import IcefloeError, InvalidPropertyError, StorageError
from icefloe.storage import Storage, redacted
from icefloe.storage.properties import checked_properties, flag, seconds, secrets_of, whole_number
from tests.storage.servers import ACCESS_KEY, SECRET, RefusingServer


def test_values_become_text() -> None:
    assert checked_properties({"a": True, "b": 3, "c": 1.5, "d": "x", "e": None}) == {
        "a": "true",
        "b": "3",
        "c": "1.5",
        "d": "x",
    }
    with pytest.raises(InvalidPropertyError, match="'a'"):
        checked_properties({"a": ["x"]})


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), ("1", True), ("off", False), ("", None)])
def test_flags(text: str, value: bool | None) -> None:
    assert flag({"s3.anonymous": text}, "s3.anonymous") is value


def test_wrong_values_are_told_with_what_would_be_right() -> None:
    with pytest.raises(InvalidPropertyError, match="'maybe'; true or false"):
        flag({"s3.anonymous": "maybe"}, "s3.anonymous")
    for text in ("x", "-1", "1.5"):
        with pytest.raises(InvalidPropertyError, match="integer >= 0"):
            whole_number({"s3.retry.num-retries": text}, "s3.retry.num-retries", 5)
    for text in ("x", "0", "-3", "nan", "inf"):
        with pytest.raises(InvalidPropertyError, match="seconds"):
            seconds({"s3.connect-timeout": text}, "s3.connect-timeout", 5)


def test_a_repr_shows_only_what_is_known_to_be_harmless() -> None:
    storage = Storage(
        {
            "s3.endpoint": "http://user:pa55word@localhost:9000",
            "s3.region": "eu-west-1",
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET,
            "a.key.nobody.knows": "0xdeadbeef",
        }
    )
    text = f"{storage!r} {storage} {[storage]}"
    for secret in (ACCESS_KEY, SECRET, "0xdeadbeef", "pa55word"):
        assert secret not in text
    assert "eu-west-1" in text
    assert "s3.secret-access-key" in text


def test_redaction_of_texts() -> None:
    secrets = secrets_of({"s3.secret-access-key": SECRET, "s3.region": "eu-west-1"})
    text = redacted(
        f"GET https://u:p4ss@acc.blob/x?sv=1&sig=abc%3D in eu-west-1 {SECRET} Authorization: Bearer ya29.xyz, Signature=0ff1ce",
        secrets,
    )
    assert text == "GET https://***@acc.blob/x in eu-west-1 *** Authorization: Bearer ***, Signature=***"


def test_credentials_of_the_environment_are_secrets_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "from-the-environment")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=zzz")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    secrets = secrets_of({})
    assert {"from-the-environment", "sv=1&sig=zzz"} <= set(secrets)
    assert "eu-west-1" not in secrets


TOKEN = "tOkEn-that-must-not-show"

STORES: dict[str, tuple[str, Callable[[str], dict[str, str]]]] = {
    "s3": ("s3://bucket1/key", lambda endpoint: {"s3.endpoint": endpoint, "s3.session-token": TOKEN}),
    "gcs": ("gs://bucket1/key", lambda endpoint: {"gcs.service.host": endpoint, "gcs.oauth2.token": TOKEN}),
    "azure-sas": (
        "abfss://container@account.dfs.core.windows.net/key",
        lambda endpoint: {
            "adls.blob-storage-scheme": "http",
            "adls.blob-storage-authority": endpoint.removeprefix("http://"),
            "adls.sas-token": f"sv=2024&se=2030-01-01&sp=r&sig={TOKEN}",
        },
    ),
    "azure-key": (
        "abfss://container@account.dfs.core.windows.net/key",
        lambda endpoint: {
            "adls.connection-string": f"AccountName=account;AccountKey=a2V5LXRoYXQtbXVzdC1ub3Qtc2hvdw==;BlobEndpoint={endpoint}",
        },
    ),
    "azure-token": (
        "abfss://container@account.dfs.core.windows.net/key",
        lambda endpoint: {
            "adls.account-host": endpoint.removeprefix("http://"),
            "adls.blob-storage-scheme": "http",
            "adls.token": TOKEN,
        },
    ),
}


@pytest.mark.parametrize("store", STORES)
def test_failing_requests_tell_no_credential(
    store: str, refusing_server: RefusingServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    location, make = STORES[store]
    properties = make(refusing_server.endpoint)
    if store == "s3":
        properties |= {"s3.access-key-id": ACCESS_KEY, "s3.secret-access-key": SECRET}
    storage = Storage(properties)
    seen = [repr(storage)]
    for ask in (
        lambda: storage.read(location),
        lambda: storage.stat(location),
        lambda: storage.read_tail(location, 10),
        lambda: storage.write(location, b"x"),
        lambda: storage.create_exclusive(location, b"x"),
        lambda: list(storage.list_prefix(location)),
    ):
        with pytest.raises(IcefloeError) as caught:
            ask()
        error = caught.value
        seen += [repr(error), str(error), "".join(traceback.format_exception(error))]
        assert location in str(error) or "icefloe-probe" in str(error)
        assert "refused" in str(error)
        # Nothing unredacted hangs on it, and it can travel between processes.
        assert error.__cause__ is None
        assert error.__context__ is None
        seen.append(str(pickle.loads(pickle.dumps(error))))
    failures = storage.delete([location])
    assert len(failures) == 1
    seen += [repr(failures), caplog.text, *capfd.readouterr()]
    everything = "\n".join(seen)
    for secret in (ACCESS_KEY, SECRET, TOKEN, "a2V5LXRoYXQ", "sig="):
        assert secret not in everything


@pytest.mark.parametrize(
    ("store", "condition"),
    [
        ("s3", ("if-none-match", "*")),
        ("gcs", ("x-goog-if-generation-match", "0")),
        ("azure-key", ("if-none-match", "*")),
    ],
)
def test_an_exclusive_create_is_a_conditional_put(
    store: str, condition: tuple[str, str], refusing_server: RefusingServer
) -> None:
    location, make = STORES[store]
    storage = Storage(
        {**make(refusing_server.endpoint), "s3.access-key-id": ACCESS_KEY, "s3.secret-access-key": SECRET}
    )
    with pytest.raises(StorageError, match="refused"):
        storage.create_exclusive(location, b"x")
    puts = [headers for command, headers in refusing_server.seen if command == "PUT"]
    assert len(puts) == 1
    assert condition in {(name.lower(), value) for name, value in puts[0].items()}
