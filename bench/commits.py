"""Commits against PyIceberg's, each in a SQLite catalog of its own: one file, many files, and after many snapshots.

Files are only named, not written, but for `append-rows`: this is about metadata. Counts are checked before times are printed.
Ours syncs every file and folder before it swaps the pointer; the peer leaves that to the system.
"""

import gc
import json
import shutil
import sqlite3
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog as PeerCatalog
from pyiceberg.manifest import DataFile as PeerFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

import icefloe
from bench.report import Row, interleave
from icefloe.manifests import DataFile

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])
MANY = {"small": 2_000, "medium": 100_000, "full": 1_000_000}
GROWN = {"small": 20, "medium": 500, "full": 5_000}
SNAPSHOTS = {"small": (10, 100), "medium": (10, 1_000, 10_000), "full": (10, 1_000, 10_000)}
BOUNDS = {1: b"\x01" + bytes(7), 2: b"a"}
COUNTS = {1: 100, 2: 100}
REPEAT = {"small": 3, "medium": 25, "full": 25}
PEER_REPEAT = 5
"""How often the peer commits to a table of many snapshots, where it takes seconds."""


def run(size: str) -> Iterator[Row]:
    """All cases."""
    home = Path(tempfile.mkdtemp(prefix="icefloe-bench-"))
    try:
        repeat = REPEAT[size]
        yield _one_file(home, repeat)
        yield _rows(home, repeat)
        yield _many_files(home, MANY[size])
        for count in SNAPSHOTS[size]:
            yield _latency(home, count, repeat)
        yield from _growth(home, GROWN[size], repeat)
    finally:
        shutil.rmtree(home, ignore_errors=True)


class Pair:
    """The same table in our catalog and in the peer's."""

    def __init__(self, home: Path, name: str) -> None:
        ours, theirs = home / f"{name}-ours", home / f"{name}-theirs"
        for folder in (ours, theirs):
            folder.mkdir()
        catalog = icefloe.load_catalog("ours", type="sql", uri=f"sqlite:///{ours}/catalog.db", warehouse=str(ours))
        peer = PeerCatalog("theirs", uri=f"sqlite:///{theirs}/catalog.db", warehouse=theirs.as_uri())
        for each in (catalog, peer):
            each.create_namespace("db")
        self.ours = catalog.create_table("db.t", SCHEMA, properties={"format-version": "2"})
        self.theirs = peer.create_table("db.t", schema=SCHEMA, properties={"format-version": "2"})
        self._catalogs = catalog, peer
        self._next = 0

    def reload(self) -> None:
        """Read both tables anew from their catalogs."""
        self.ours, self.theirs = (each.load_table("db.t") for each in self._catalogs)

    def new_names(self, count: int) -> range:
        """Numbers that no file has had yet."""
        self._next += count
        return range(self._next - count, self._next)

    def commit_ours(self, files: list[DataFile], *, check: bool = False) -> None:
        """Add the files to our table; the peer does not look for duplicates, so neither does this unless asked to."""
        self.ours.update_snapshot().fast_append(files, check_duplicates=check)

    def commit_some(self, count: int, *, check: bool = False) -> None:
        """So many commits of one file each to our table."""
        for number in self.new_names(count):
            self.commit_ours([_our_file(number)], check=check)

    def commit_theirs(self, files: list[Any]) -> None:
        """Add the files to the peer's table."""
        with self.theirs.transaction() as tx, tx.update_snapshot().fast_append() as append:
            for file in files:
                append.append_data_file(file)

    def check(self) -> None:
        """Both tables hold the same number of files and rows."""
        found, peer = self.ours.current_snapshot(), self.theirs.current_snapshot()
        assert found is not None
        assert found.summary is not None
        for key in ("total-data-files", "total-records"):
            assert found.summary[key] == peer.summary[key], (key, found.summary, peer.summary)


def _our_file(number: int) -> DataFile:
    path = f"file:///data/{number:08d}.parquet"
    return DataFile(path, "parquet", 100, 1000, value_counts=COUNTS, lower_bounds=BOUNDS, upper_bounds=BOUNDS)


def _their_file(number: int) -> Any:
    found = PeerFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"file:///data/{number:08d}.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=100,
        file_size_in_bytes=1000,
        value_counts=COUNTS,
        lower_bounds=BOUNDS,
        upper_bounds=BOUNDS,
    )
    found.spec_id = 0
    return found


def _one_file(home: Path, repeat: int) -> Row:
    pair = Pair(home, "one")
    pair.commit_ours([_our_file(pair.new_names(1)[0])])
    pair.commit_theirs([_their_file(0)])
    numbers = iter(pair.new_names(repeat))
    peers = iter(range(1, repeat + 1))
    ours, theirs = interleave(
        lambda: pair.commit_ours([_our_file(next(numbers))]),
        lambda: pair.commit_theirs([_their_file(next(peers))]),
        repeat,
    )
    pair.check()
    return Row("one-file", ours, theirs, 0.5, "a fast append of one file, SQLite catalog")


def _rows(home: Path, repeat: int) -> Row:
    pair = Pair(home, "rows")
    rows = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}, SCHEMA)
    pair.ours.append(rows)
    pair.theirs.append(rows)
    ours, theirs = interleave(lambda: pair.ours.append(rows), lambda: pair.theirs.append(rows), repeat)
    pair.check()
    return Row(
        "append-rows",
        ours,
        theirs,
        0.5,
        "three rows written to a file and committed, both with fsync or without as they do",
    )


def _many_files(home: Path, count: int) -> Row:
    """One append of many files, after a first one of both, which loads what is loaded once for a process."""
    pair = Pair(home, "many")
    first = range(min(20_000, count))
    pair.commit_ours([_our_file(number) for number in first])
    pair.commit_theirs([_their_file(number) for number in first])
    numbers = range(len(first), len(first) + count)
    ours_files = [_our_file(number) for number in numbers]
    theirs_files = [_their_file(number) for number in numbers]
    repeat = 5 if count <= 10_000 else 1
    ours, theirs = interleave(lambda: pair.commit_ours(ours_files), lambda: pair.commit_theirs(theirs_files), repeat)
    pair.check()
    return Row("many-files", ours, theirs, 0.1, f"one append of {count:,} files")


def _latency(home: Path, count: int, repeat: int) -> Row:
    """A fast append of one file to a table that has so many snapshots."""
    pair = Pair(home, f"snapshots-{count}")
    pair.commit_ours([_our_file(0)])
    pair.commit_theirs([_their_file(0)])
    for side in ("ours", "theirs"):
        _set_snapshots(home / f"snapshots-{count}-{side}", count)
    pair.reload()
    numbers, peers = iter(range(1, repeat + 2)), iter(range(1, repeat + 2))
    pair.commit_ours([_our_file(next(numbers))])
    ours, theirs = interleave(
        lambda: pair.commit_ours([_our_file(next(numbers))]),
        lambda: pair.commit_theirs([_their_file(next(peers))]),
        repeat,
        min(repeat, PEER_REPEAT),
    )
    found, peer = len(pair.ours.metadata.snapshots), len(pair.theirs.metadata.snapshots)
    assert (found, peer) == (count + repeat + 1, count + min(repeat, PEER_REPEAT)), (found, peer)
    return Row(f"after-{count}-snapshots", ours, theirs, 0.5, f"a fast append of one file, {count:,} snapshots")


def _set_snapshots(folder: Path, count: int) -> None:
    """Let the table of a catalog have so many snapshots: each with the files of its last one, and an id and time of its own."""
    with closing(sqlite3.connect(folder / "catalog.db")) as database, database:
        (location,) = database.execute("SELECT metadata_location FROM iceberg_tables").fetchone()
        place = Path(location.removeprefix("file://"))
        found = json.loads(place.read_text())
        last = found["snapshots"][-1]
        first = last["timestamp-ms"] - count + 1
        found["snapshots"] = [
            last
            | {"snapshot-id": each + 1, "sequence-number": each + 1, "timestamp-ms": first + each}
            | ({"parent-snapshot-id": each} if each else {})
            for each in range(count)
        ]
        found["snapshot-log"] = [{"snapshot-id": each + 1, "timestamp-ms": first + each} for each in range(count)]
        found["current-snapshot-id"] = found["refs"]["main"]["snapshot-id"] = found["last-sequence-number"] = count
        place = place.with_name(f"00009-{uuid.uuid4()}.metadata.json")
        place.write_text(json.dumps(found))
        database.execute(
            "UPDATE iceberg_tables SET metadata_location = ?", (location.rpartition("/")[0] + f"/{place.name}",)
        )


def _growth(home: Path, count: int, repeat: int) -> list[Row]:
    """What a commit costs more after many snapshots, against reading and writing a metadata file of that size.

    In time of the processor: waiting for the disk takes many times what is looked for here, and differs from time to time.
    """
    few, many = Pair(home, "few"), Pair(home, "after")
    for pair in (few, many):
        pair.ours.set_properties({"write.metadata.previous-versions-max": "1"})
        pair.commit_some(10)
    many.commit_some(count)
    text = many.ours.storage.read(str(many.ours.metadata_location)).decode()
    plain = statistics.median(_busy(lambda: json.dumps(json.loads(text))) for _ in range(5))
    rows = []
    for case, check in (("growth", False), ("growth-checked", True)):
        first, _ = _one_commit(many, check), _one_commit(few, check)
        seconds: list[tuple[float, float]] = []
        for _ in range(repeat):
            gc.collect()
            seconds.append((_one_commit(few, check), _one_commit(many, check)))
        before, after = (statistics.median(each) for each in zip(*seconds, strict=True))
        note = f"{count} more snapshots: {before * 1e3:.1f} ms of CPU before, {after * 1e3:.1f} ms after"
        if check:
            note += f", duplicates looked for, {first * 1e3:.0f} ms for the first such commit of a handle"
        note += "; peer: json.loads and dumps of the metadata file"
        rows.append(Row(case, max(after - before, 1e-9), plain, 2.0, note))
    return rows


def _one_commit(pair: Pair, check: bool) -> float:
    file = _our_file(pair.new_names(1)[0])
    return _busy(lambda: pair.commit_ours([file], check=check))


def _busy(work: Callable[[], object]) -> float:
    """How long the processor works on it, in all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start
