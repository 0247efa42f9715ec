"""What folders are in every store, though some have none."""

from pathlib import Path
from uuid import uuid4

import pytest
from pyarrow import fs

from icefloe.storage import Storage
from icefloe.storage.hadoop import ArrowFiles
from icefloe.storage.locations import Location
from icefloe.storage.protocol import Files
from tests.storage.servers import S3Server


class ArrowStorage(Storage):
    """HDFS's code over a file system that needs no cluster."""

    def _resolve(self, location: str) -> tuple[Files, Location]:
        return ArrowFiles(fs.LocalFileSystem()), super()._resolve(location)[1]


@pytest.fixture(params=["local", "memory", "s3", "arrow"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, str]:
    match request.param:
        case "local":
            return Storage(), f"file://{tmp_path}/base"
        case "memory":
            return Storage(), f"memory://{uuid4().hex}/base"
        case "s3":
            server: S3Server = request.getfixturevalue("s3_server")
            return server.storage(), f"s3://{server.new_bucket()}/base"
        case _:
            return ArrowStorage(), f"file://{tmp_path}/base"


def test_folders_come_from_files_and_from_being_made(place: tuple[Storage, str]) -> None:
    storage, base = place
    assert list(storage.list_folders(base)) == []
    storage.write(f"{base}/a/b/c.txt", b"1")
    storage.write(f"{base}/file.txt", b"1")
    storage.make_folder(f"{base}/empty")
    storage.make_folder(f"{base}/empty")
    storage.make_folder(f"{base}/deep/er")
    assert set(storage.list_folders(base)) == {"a", "empty", "deep"}
    assert set(storage.list_folders(f"{base}/")) == {"a", "empty", "deep"}
    assert set(storage.list_folders(f"{base}/a")) == {"b"}
    assert set(storage.list_folders(f"{base}/deep")) == {"er"}
    assert list(storage.list_folders(f"{base}/empty")) == []
    assert list(storage.list_folders(f"{base}/file.txt")) == []


def test_only_empty_folders_are_removed(place: tuple[Storage, str]) -> None:
    storage, base = place
    storage.make_folder(f"{base}/full")
    storage.write(f"{base}/full/file.txt", b"1")
    storage.make_folder(f"{base}/empty")
    storage.remove_folder(f"{base}/full")
    storage.remove_folder(f"{base}/empty")
    storage.remove_folder(f"{base}/missing")
    assert set(storage.list_folders(base)) == {"full"}
    assert storage.read(f"{base}/full/file.txt") == b"1"
