"""The error tree is whole, drawn as it is, and picklable."""

import pickle

import pytest

from icefloe import errors
from icefloe.errors import CorruptFileError, IcefloeError, LocationExistsError, LocationNotFoundError, StorageError

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
