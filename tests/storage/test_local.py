"""On the local disk a file appears whole or not at all, whatever happens to its writer."""

import errno
import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from icefloe.errors import LocationExistsError, NothingStoredError, StorageError
from icefloe.storage import Storage, check_regular
from icefloe.storage.local import TEMPORARY

STREAMER = """
import sys
from icefloe.storage import Storage
output = Storage().open_output(sys.argv[1])
while True:
    output.write(b"x" * (1 << 20))
    print(output.tell(), flush=True)
"""

WRITER = """
import sys
from icefloe.storage import Storage
from icefloe.errors import LocationExistsError
storage = Storage()
print("started", flush=True)
turn = 0
while True:
    turn += 1
    storage.write(sys.argv[1] + "/replaced", bytes([65 + turn % 26]) * (1 << 20))
    storage.create_exclusive(f"{sys.argv[1]}/created-{turn}", bytes([65 + turn % 26]) * (1 << 20))
"""


def test_a_killed_stream_leaves_nothing_at_its_name(tmp_path: Path) -> None:
    location = tmp_path / "folder" / "data.parquet"
    child = subprocess.Popen([sys.executable, "-c", STREAMER, str(location)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    while int(child.stdout.readline()) < 8 << 20:
        pass
    child.kill()
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()
    assert not location.exists()
    left = [path.name for path in location.parent.iterdir()]
    assert all(name.startswith(TEMPORARY) for name in left)
    # Orphan removal finds what is left.
    assert len(list(Storage().list_prefix(str(tmp_path)))) == len(left)


def test_a_killed_writer_leaves_only_whole_files(tmp_path: Path) -> None:
    for turn in range(4):
        folder = tmp_path / str(turn)
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.1 + random.random() * 0.2)
        child.kill()
        child.wait()
        child.stdout.close()
        whole = [path for path in folder.iterdir() if not path.name.startswith(TEMPORARY)]
        assert whole
        for path in whole:
            data = path.read_bytes()
            assert len(data) == 1 << 20
            assert data == data[:1] * len(data)


def test_readers_see_the_old_file_or_the_new(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    storage, until = Storage(), time.monotonic() + 1
    seen: set[bytes] = set()
    while time.monotonic() < until or len(seen) < 2:
        if storage.exists(f"{tmp_path}/replaced"):
            data = storage.read(f"{tmp_path}/replaced")
            assert data == data[:1] * (1 << 20)
            seen.add(data[:1])
    child.kill()
    child.wait()
    child.stdout.close()


def test_bytes_are_on_the_disk_before_the_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    for name in ("fsync", "link", "replace", "mkdir"):
        real = getattr(os, name)

        def record(*args: object, name: str = name, real: object = real) -> object:
            what = name
            if name == "fsync":
                what = "sync folder" if stat.S_ISDIR(os.fstat(args[0]).st_mode) else "sync file"  # type: ignore[arg-type]  # a descriptor
            steps.append(what)
            return real(*args)  # type: ignore[operator]  # a function of os

        monkeypatch.setattr(os, name, record)
    Storage().create_exclusive(f"{tmp_path}/new/v1", b"x")
    assert steps == ["mkdir", "sync folder", "sync file", "link", "sync folder"]
    steps.clear()
    Storage().write(f"{tmp_path}/new/v1", b"x")
    assert steps == ["sync file", "replace", "sync folder"]


def test_a_file_system_without_links_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*args: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(StorageError, match="no hard links"):
        Storage().create_exclusive(f"{tmp_path}/v1", b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_link_whose_answer_was_lost_is_recognized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.link

    def lost(source: str, target: str) -> None:
        real(source, target)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", lost)
    Storage().create_exclusive(f"{tmp_path}/v1", b"x")
    assert (tmp_path / "v1").read_bytes() == b"x"
    with pytest.raises(LocationExistsError):
        Storage().create_exclusive(f"{tmp_path}/v1", b"y")


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for store in (Storage().write, Storage().create_exclusive):
        with pytest.raises(NothingStoredError, match="No space left"):
            store(f"{tmp_path}/x", b"x")
        assert list(tmp_path.iterdir()) == []


def test_a_failed_write_cannot_be_published(tmp_path: Path) -> None:
    output = Storage().open_output(f"{tmp_path}/x")
    output.write(b"good")
    with pytest.raises(TypeError):
        output.write("text")
    with pytest.raises(StorageError, match="a write to it failed"):
        output.close()
    assert list(tmp_path.iterdir()) == []


def test_files_get_the_rights_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        Storage().write(f"{tmp_path}/x", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


def test_a_listing_does_not_follow_links_to_folders(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x").write_bytes(b"")
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "loop").symlink_to(tmp_path)
    (tmp_path / "table" / "own").write_bytes(b"")
    assert [info.location for info in Storage().list_prefix(f"{tmp_path}/table")] == [f"{tmp_path}/table/own"]


def test_errors_of_the_disk_are_ours(tmp_path: Path) -> None:
    storage = Storage()
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="folder"):
        storage.read(f"{tmp_path}/folder")
    with pytest.raises(StorageError):
        storage.write(f"{tmp_path}/folder", b"x")
    with pytest.raises(StorageError):
        storage.write(f"{tmp_path}/file/below", b"x")
    with pytest.raises(StorageError):
        storage.write(f"{tmp_path}/{'n' * 300}", b"x")
    with pytest.raises(LocationExistsError):
        storage.create_exclusive(f"{tmp_path}/folder", b"x")
    (failure,) = storage.delete([f"{tmp_path}/folder"])
    assert failure.location == f"{tmp_path}/folder"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.parametrize("read", ["read", "read_range", "read_tail", "open_input"])
@pytest.mark.parametrize("kind", ["pipe", "device", "link to a device", "folder"])
def test_only_files_are_read_and_nothing_is_waited_for(read: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path = Path("/dev/zero")
        case "link to a device":
            path.symlink_to("/dev/zero")
        case _:
            path.mkdir()
    storage = Storage()
    arguments = {"read_range": (0, 8), "read_tail": (8,)}.get(read, ())
    started = time.monotonic()
    with pytest.raises(StorageError, match=r"is a folder, not a file|pipe, socket or device"):
        getattr(storage, read)(f"file://{path}", *arguments)
    assert time.monotonic() - started < 30


def test_a_range_takes_no_memory_before_it_is_known_to_be_there(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345678")
    storage = Storage()
    for offset, length in ((0, 1 << 60), (4, 5), (1 << 60, 1)):
        with pytest.raises(StorageError, match="ends early"):
            storage.read_range(f"file://{path}", offset, length)
    assert storage.read_range(f"file://{path}", 4, 4) == b"5678"


def test_a_file_that_is_too_long_to_be_read_whole_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(StorageError, match=r"1099511627776 bytes.*read\.limits\.file-bytes"):
        Storage().read(f"file://{path}")
    path.write_bytes(b"123456789")
    assert Storage({"read.limits.file-bytes": "9"}).read(f"file://{path}") == b"123456789"
    with pytest.raises(StorageError, match="files that are read whole may have 8"):
        Storage({"read.limits.file-bytes": "8"}).read(f"file://{path}")


@pytest.mark.parametrize("location", ["/tmp/a\0b", "file:///tmp/\ud800"])
def test_paths_that_no_file_can_have_are_refused(location: str) -> None:
    with pytest.raises(StorageError, match="cannot be the path of a file"):
        check_regular([location])
