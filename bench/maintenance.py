"""Expiry and removal of orphans on tables of metadata only: against Java Iceberg on the same Spark, and what memory they take.

`expire-*` drops 900 of 1,000 snapshots, each of which holds the newest ten manifests, or one of them; `orphans-*` looks for one
orphan among ten needed files in a list of files. Files are made up, so that a delete finds nothing to delete.
"""

import datetime as dt
import json
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.engines.engine import CATALOG, engines
from bench.java_metadata import register
from bench.manifests import SCHEMA, SPEC, entries
from bench.report import Row
from icefloe.manifests import ManifestFile, ManifestFormat, encode_manifest_list, write_manifests
from icefloe.metadata import (
    MAIN_BRANCH,
    Snapshot,
    apply_all,
    branch,
    encode_metadata_file,
    new_table_metadata,
    updates as up,
)
from icefloe.metadata.snapshot import Summary
from icefloe.storage import Storage

SNAPSHOTS = {"small": 20, "medium": 100, "full": 1_000}
FILES_EACH = {"small": 50, "medium": 1_000, "full": 1_000}
"""Files that each snapshot adds."""
GROWTH = {"small": (1_000, 5_000), "medium": (20_000, 100_000), "full": (100_000, 1_000_000)}
"""Numbers of files between which memory may not grow."""
WINDOW = 10
GOAL = 0.5
MOST_GROWTH = 20.0
"""MiB."""
OLD = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


class ChurnedTable:
    """A table of metadata only whose snapshots each add files and hold the newest manifests alone; all of them, if asked."""

    def __init__(self, folder: Path, snapshots: int, files_each: int, *, window: int | None = WINDOW) -> None:
        self.storage = Storage()
        self.location = folder.as_uri()
        self._entries = entries(files_each)
        made: list[ManifestFile] = []
        changes: list[up.TableUpdate] = []
        for number in range(1, snapshots + 1):
            made.append(self._manifest(number))
            held = made if window is None else made[-window:]
            changes.append(up.AddSnapshotUpdate(self._snapshot(number, held)))
            made[-1] = replace(made[-1], sequence_number=number, min_sequence_number=number)
        base = new_table_metadata(
            SCHEMA, SPEC, location=self.location, format_version=2, uuid=uuid.uuid4(), timestamp_ms=1
        )
        head = up.SetSnapshotRefUpdate(MAIN_BRANCH, branch(snapshots))
        metadata = apply_all(base, [*changes, head], snapshots + 1)
        self.metadata_location = f"{self.location}/metadata/v1.metadata.json"
        self.storage.write(self.metadata_location, encode_metadata_file(metadata))

    def paths(self, number: int) -> list[str]:
        """The files that a snapshot adds."""
        return [
            f"{self.location}/data/day={number}/{number:05d}-{row:06d}.parquet" for row in range(len(self._entries))
        ]

    def _manifest(self, number: int) -> ManifestFile:
        columns = self._entries.with_columns(file_path=pa.array(self.paths(number)))
        form = ManifestFormat(2, SCHEMA, SPEC, number)
        names = iter(lambda: f"{self.location}/metadata/{uuid.uuid4()}-m0.avro", None)
        (manifest,) = write_manifests(columns, form, names, self.storage.write)
        return manifest

    def _snapshot(self, number: int, manifests: list[ManifestFile]) -> Snapshot:
        parent = number - 1 or None
        encoded = encode_manifest_list(
            manifests, 2, snapshot_id=number, parent_snapshot_id=parent, sequence_number=number
        )
        location = f"{self.location}/metadata/snap-{number}.avro"
        self.storage.write(location, encoded.data)
        summary = Summary("append")
        return Snapshot(number, number + 1, location, summary, parent, sequence_number=number, schema_id=0)

    def write_listing(self, file: Path, snapshots: int) -> int:
        """A list of all files, and of an orphan for every ten of them; how many orphans."""
        orphans = 0
        schema = pa.schema([("file_path", pa.string()), ("last_modified", pa.timestamp("us", "UTC"))])
        with pq.ParquetWriter(file, schema) as writer:
            for number in range(1, snapshots + 1):
                paths = self.paths(number)
                strange = [f"{path}.orphan" for path in paths[::10]]
                orphans += len(strange)
                rows = paths + strange
                writer.write_table(pa.table({"file_path": rows, "last_modified": [OLD] * len(rows)}, schema))
        return orphans


def run(size: str) -> Iterator[Row]:
    """All cases."""
    yield from expiry_against_java(size)
    yield from orphans_against_java(size)
    yield from memory(size)


def expiry_against_java(size: str) -> Iterator[Row]:
    """Most snapshots of a table, and one of them."""
    snapshots, each = SNAPSHOTS[size], FILES_EACH[size]
    with engines() as (ours, java, home):
        # The first one is for warmth.
        for case, gone in (("warm", 2), ("expire-most", snapshots * 9 // 10), ("expire-one", 1)):
            seconds, counts = {}, {}
            for engine in (ours, java):
                name = f"{case.replace('-', '_')}_{engine.name}"
                table = ChurnedTable(home / name, snapshots, each)
                register(home, name, table.metadata_location)
                chosen = (
                    f"older_than => TIMESTAMP_MILLIS({gone + 2})" if gone > 1 else "older_than => TIMESTAMP_MILLIS(3)"
                )
                call = f"CALL {CATALOG}.system.expire_snapshots(table => 'db.{name}', {chosen})"
                seconds[engine.name], (counts[engine.name],) = engine.run("sql", text=call)
            assert counts[ours.name] == counts[java.name], counts
            if case == "warm":
                continue
            note = f"{snapshots:,} snapshots of {WINDOW} manifests, {snapshots * each:,} files; deleted {counts[ours.name]}"
            yield Row(case, seconds[ours.name], seconds[java.name], GOAL, note)


def orphans_against_java(size: str) -> Iterator[Row]:
    """Orphans of a list of files, none deleted."""
    snapshots, each = SNAPSHOTS[size], FILES_EACH[size]
    with engines() as (ours, java, home):
        table = ChurnedTable(home / "listed", snapshots, each, window=None)
        register(home, "listed", table.metadata_location)
        orphans = table.write_listing(home / "listing.parquet", snapshots)
        seconds = {}
        for engine in (ours, java):
            engine.sql(f"CREATE TEMPORARY VIEW listing AS SELECT * FROM parquet.`{home / 'listing.parquet'}`")
            call = f"CALL {CATALOG}.system.remove_orphan_files(table => 'db.listed', file_list_view => 'listing', dry_run => true)"
            seconds[engine.name], rows = engine.run("sql", text=call)
            assert len(rows) == orphans, (engine.name, len(rows), orphans)
        note = f"{snapshots * each:,} needed files, {orphans:,} orphans, from a view of files"
        yield Row("orphans-listed", seconds[ours.name], seconds[java.name], GOAL, note)


def memory(size: str) -> Iterator[Row]:
    """How much memory grows from few files to many; the peer is the most that it may, both in MiB."""
    few, many = GROWTH[size]
    for case in ("expire", "orphans"):
        with tempfile.TemporaryDirectory() as folder:
            small, large = (_measured(case, Path(folder) / str(files), files) for files in (few, many))
        grown = max(large["grown"] - small["grown"], 0.001)
        note = (
            f"MiB, not seconds: {small['grown']:.1f} MiB for {few:,} files in {small['seconds']:.2f} s,"
            f" {large['grown']:.1f} MiB for {many:,} in {large['seconds']:.2f} s; plain Python"
        )
        yield Row(f"{case}-memory", grown, MOST_GROWTH, 1.0, note)


def _measured(case: str, folder: Path, files: int) -> dict[str, float]:
    """What a process of its own took."""
    snapshots = max(files // 1_000, 20)
    table = ChurnedTable(folder, snapshots, files // snapshots, window=WINDOW if case == "expire" else None)
    listing = folder / "listing.parquet"
    table.write_listing(listing, snapshots)
    warm = ChurnedTable(folder.with_name(f"warm-{files}"), 12, 1_000)
    arguments = [case, str(listing), str(snapshots), table.metadata_location, warm.metadata_location]
    arguments = [sys.executable, "-c", _IN_A_PROCESS, *arguments]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(re.sub(r".*\n(?=.)", "", done.stdout)))


_IN_A_PROCESS = """
import json, sys, time
import pyarrow.parquet as pq
import icefloe

case, listing, snapshots, metadata, warm = sys.argv[1:]
catalog = icefloe.load_catalog("m", type="memory")
catalog.create_namespace("db")


def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def work(table, last):
    if case == "expire":
        return table.maintenance.expire_snapshots(older_than=last)
    files = pq.ParquetFile(listing).iter_batches(10_000)
    return table.maintenance.remove_orphan_files(file_list=files, dry_run=True, stream_results=True)


# Once for warmth: libraries are loaded, and their code is compiled.
work(catalog.register_table("db.warm", warm), 12)
table = catalog.register_table("db.t", metadata)
before, start = peak(), time.perf_counter()
work(table, int(snapshots) * 9 // 10)
print(json.dumps({"grown": peak() - before, "seconds": time.perf_counter() - start}))
"""
