"""Commits against PyIceberg's, each in a SQLite catalog of its own: one file, many files, and after many snapshots.

Files are only named, not written, but for `append-rows`: this is about metadata. Counts are checked before times are printed.
"""

import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog as PeerCatalog
from pyiceberg.manifest import DataFile as PeerFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.typedef import Record

import icefloe
from bench.report import Row, interleave
from icefloe.manifests import DataFile

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])
MANY = {"small": 2_000, "medium": 100_000, "full": 1_000_000}
SNAPSHOTS = {"small": 50, "medium": 500, "full": 5_000}
BOUNDS = {1: b"\x01" + bytes(7), 2: b"a"}
COUNTS = {1: 100, 2: 100}


def run(size: str) -> list[Row]:
    """All cases."""
    home = Path(tempfile.mkdtemp(prefix="icefloe-bench-"))
    try:
        return [_one_file(home), _rows(home), _many_files(home, MANY[size]), _after_many(home, SNAPSHOTS[size])]
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
        self._next = 0

    def new_names(self, count: int) -> range:
        """Numbers that no file has had yet."""
        self._next += count
        return range(self._next - count, self._next)

    def commit_ours(self, files: list[DataFile]) -> None:
        """Add the files to our table; the peer does not look for duplicates, so neither does this."""
        self.ours.update_snapshot().fast_append(files, check_duplicates=False)

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


def _one_file(home: Path) -> Row:
    pair = Pair(home, "one")
    pair.commit_ours([_our_file(pair.new_names(1)[0])])
    pair.commit_theirs([_their_file(0)])
    numbers = iter(pair.new_names(40))
    peers = iter(range(1, 41))
    ours, theirs = interleave(
        lambda: pair.commit_ours([_our_file(next(numbers))]), lambda: pair.commit_theirs([_their_file(next(peers))]), 9
    )
    pair.check()
    return Row("one-file", ours, theirs, 0.5, "a fast append of one file, SQLite catalog")


def _rows(home: Path) -> Row:
    pair = Pair(home, "rows")
    rows = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}, SCHEMA)
    pair.ours.append(rows)
    pair.theirs.append(rows)
    ours, theirs = interleave(lambda: pair.ours.append(rows), lambda: pair.theirs.append(rows), 9)
    pair.check()
    return Row(
        "append-rows",
        ours,
        theirs,
        0.5,
        "three rows written to a file and committed, both with fsync or without as they do",
    )


def _many_files(home: Path, count: int) -> Row:
    pair = Pair(home, "many")
    ours_files = [_our_file(number) for number in range(count)]
    theirs_files = [_their_file(number) for number in range(count)]
    ours, theirs = interleave(lambda: pair.commit_ours(ours_files), lambda: pair.commit_theirs(theirs_files), 1)
    pair.check()
    return Row("many-files", ours, theirs, 0.1, f"one append of {count:,} files")


def _after_many(home: Path, count: int) -> Row:
    """What a commit costs more after many snapshots, against reading and writing a metadata file of that size."""
    pair = Pair(home, "after")
    table = pair.ours
    table.set_properties({"write.metadata.previous-versions-max": "1"})
    for number in pair.new_names(10):
        pair.commit_ours([_our_file(number)])
    few = _median_commit(pair)
    for number in pair.new_names(count):
        pair.commit_ours([_our_file(number)])
    many = _median_commit(pair)
    text = table.storage.read(str(table.metadata_location)).decode()
    start = time.perf_counter()
    json.dumps(json.loads(text))
    plain = time.perf_counter() - start
    note = f"{count} more snapshots: {few * 1e3:.1f} ms before, {many * 1e3:.1f} ms after; peer: json.loads and dumps of the metadata file"
    return Row("growth", max(many - few, 1e-9), plain, 2.0, note)


def _median_commit(pair: Pair) -> float:
    times = []
    for number in pair.new_names(7):
        file = _our_file(number)
        start = time.perf_counter()
        pair.commit_ours([file])
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]
