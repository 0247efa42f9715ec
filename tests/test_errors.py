"""The error tree is whole, drawn as it is, and picklable."""

import pickle

import pytest

from icefloe import errors
from icefloe.errors import CorruptFileError, IcefloeError, LocationExistsError, LocationNotFoundError, StorageError
from icefloe.storage import parse_location

ALL_ERRORS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]


@pytest.mark.parametrize("kind", ALL_ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_has_the_one_root_and_stands_in_the_drawing(kind: type[Exception]) -> None:
    assert issubclass(kind, IcefloeError)
    assert kind.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize("kind", [CorruptFileError, StorageError, LocationNotFoundError, LocationExistsError])
def test_errors_about_a_file_say_where_and_what(kind: type[CorruptFileError] | type[StorageError]) -> None:
    error = pickle.loads(pickle.dumps(kind("s3://bucket/x.avro", "the magic bytes are missing")))
    assert isinstance(error, kind)
    assert str(error) == "s3://bucket/x.avro: the magic bytes are missing"
    assert error.location == "s3://bucket/x.avro"


def test_broad_python_classes_catch_ours() -> None:
    assert issubclass(errors.InvalidTypeError, ValueError)
    assert issubclass(errors.NoSuchTableError, LookupError)
    assert issubclass(LocationNotFoundError, FileNotFoundError)
    assert issubclass(LocationExistsError, FileExistsError)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://AKIA1:se/cr+et@bucket/x", "s3://***@bucket/x"),
        ("s3://secret@bucket/x", "s3://***@bucket/x"),
        ("https://user:secret@host/a", "https://***@host/a"),
        (
            "postgresql://someone:se@cret@host:5432/db?password=secret&a=b",
            "postgresql://***@host:5432/db?password=***&a=b",
        ),
        ("https://a.blob.core.windows.net/c/x?sv=1&sig=secret", "https://a.blob.core.windows.net/c/x?sv=1&sig=***"),
        (
            "https://b.s3.amazonaws.com/x?X-Amz-Signature=secret&n=1",
            "https://b.s3.amazonaws.com/x?X-Amz-Signature=***&n=1",
        ),
        ("abfss://secret:secret@acct.dfs.core.windows.net/x", "abfss://***@acct.dfs.core.windows.net/x"),
    ],
)
def test_no_message_holds_credentials(text: str, shown: str) -> None:
    for error in (
        IcefloeError(f"location {text!r} is wrong"),
        StorageError(text, "failed"),
        CorruptFileError("x", text),
    ):
        assert shown in str(error)
        assert "secret" not in f"{error} {error!r} {error.args}"
        assert "secret" not in str(pickle.loads(pickle.dumps(error)))


@pytest.mark.parametrize(
    "text",
    [
        "abfss://container@acct.dfs.core.windows.net/x",
        "s3://bucket/user@example.org/x",
        "hdfs://node:8020/a@b",
        "postgresql://user:password@host/database",
        "s3://bucket/day=2026-01-01/x",
    ],
)
def test_what_is_no_credential_is_shown(text: str) -> None:
    assert text in str(IcefloeError(f"at {text}"))


@pytest.mark.parametrize("text", ["s3://key:secret@bucket/x", "https://user:secret@host/x", "abfss://c:secret@a.b/x"])
def test_a_location_with_credentials_is_refused_without_showing_them(text: str) -> None:
    with pytest.raises(errors.InvalidLocationError) as caught:
        parse_location(text)
    assert "secret" not in str(caught.value)
