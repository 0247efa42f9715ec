"""Planning a table of many files in 30 partitions with statistics of ten columns, against PyIceberg on the same table."""

import json
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.table import StaticTable

from bench.manifests import SCHEMA, SPEC, entries
from bench.report import Row, interleave
from icefloe.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    ManifestFormat,
    encode_manifest_list,
    write_manifests,
)
from icefloe.metadata import (
    MAIN_BRANCH,
    Snapshot,
    TableMetadata,
    apply_all,
    branch,
    encode_metadata_file,
    new_table_metadata,
    updates as up,
)
from icefloe.metadata.snapshot import Summary
from icefloe.planning import TableScan
from icefloe.storage import Storage
from icefloe.versions import Feature, allows

FILES: dict[str, tuple[int, ...]] = {
    "small": (1_000,),
    "medium": (10_000, 100_000),
    "full": (10_000, 100_000, 1_500_000),
}
PEER_FILES = 100_000
"""The most files that the peer plans; beyond, its time is scaled up from this many."""
PARTITIONS = 30
FIRST_DAY = 20_000
GOAL = 1 / 30
SNAPSHOT_ID = 7


class MadeTable:
    """A table of metadata only, on the local disk."""

    def __init__(self, folder: Path, files: int, version: int = 2, with_vectors: bool = False) -> None:
        self.storage = Storage()
        self.files = files
        self.location = folder.as_uri()
        columns = entries(files)
        days = (FIRST_DAY + np.arange(files) * PARTITIONS // files).astype(np.int32)
        self._columns = replace(columns, partition={1000: pa.array(days).view(pa.date32())})
        self._days = days
        manifests = list(self._write(self._columns, version, ManifestContent.DATA))
        if with_vectors:
            manifests += self._write(self._vectors(), version, ManifestContent.DELETES)
        # What was only needed for writing would count as memory of the plan.
        del self._columns, self._days
        self.metadata = self._commit(manifests, version)
        self.metadata_location = f"{self.location}/metadata/v1.metadata.json"
        self.storage.write(self.metadata_location, encode_metadata_file(self.metadata))

    def _write(self, what: Any, version: int, content: ManifestContent) -> list[ManifestFile]:
        form = ManifestFormat(version, SCHEMA, SPEC, SNAPSHOT_ID, content)
        places = iter(lambda: f"{self.location}/metadata/{uuid.uuid4()}-m0.avro", None)
        return write_manifests(what, form, places, self.storage.write)

    def _vectors(self) -> Iterator[ManifestEntry]:
        """A vector for every tenth file."""
        paths = self._columns.column("file_path")
        for row in range(0, self.files, 10):
            file = DataFile(
                f"{self.location}/data/{row}.puffin",
                "puffin",
                3,
                500,
                FileContent.POSITION_DELETES,
                0,
                (int(self._days[row]),),
                referenced_data_file=paths[row].as_py(),
                content_offset=4,
                content_size_in_bytes=60,
            )
            yield ManifestEntry(EntryStatus.ADDED, file, SNAPSHOT_ID)

    def _commit(self, manifests: list[ManifestFile], version: int) -> TableMetadata:
        base = new_table_metadata(
            SCHEMA, SPEC, location=self.location, format_version=version, uuid=uuid.uuid4(), timestamp_ms=1
        )
        first_row_id = 0 if allows(version, Feature.ROW_LINEAGE) else None
        listed = encode_manifest_list(
            manifests,
            version,
            snapshot_id=SNAPSHOT_ID,
            parent_snapshot_id=None,
            sequence_number=1,
            first_row_id=first_row_id,
        )
        place = f"{self.location}/metadata/snap-1.avro"
        self.storage.write(place, listed.data)
        snapshot = Snapshot(
            SNAPSHOT_ID,
            2,
            place,
            Summary("append"),
            sequence_number=1,
            schema_id=base.current_schema_id,
            first_row_id=first_row_id,
            added_rows=listed.added_rows,
        )
        ref = up.SetSnapshotRefUpdate(MAIN_BRANCH, branch(SNAPSHOT_ID))
        return apply_all(base, [up.AddSnapshotUpdate(snapshot), ref], 2)


def filters(files: int) -> dict[str, str]:
    """What is asked for: everything, one day of thirty, a hundredth by bounds, and both."""
    middle = files // 2 * 1009
    bounds = f"c3 >= {middle} and c3 < {middle + files * 10}"
    day = "day = '2024-10-19'"
    return {"no-filter": "", "partition-filter": day, "bounds-filter": bounds, "both-filters": f"{day} and {bounds}"}


def run(size: str) -> Iterator[Row]:
    """All cases at each number of files, as they are measured."""
    for files in FILES[size]:
        with tempfile.TemporaryDirectory() as folder:
            for row in _cases(Path(folder), files):
                yield replace(row, case=f"{row.case}-{files}")


def _cases(folder: Path, files: int) -> Iterator[Row]:
    ours = MadeTable(folder / "ours", files)
    peer = ours if files <= PEER_FILES else MadeTable(folder / "peer", PEER_FILES)
    seconds: dict[str, float] = {}
    for case, row_filter in filters(files).items():
        row = _against_peer(case, ours, peer, row_filter, filters(peer.files)[case])
        seconds[case] = row.ours_seconds
        yield row
    yield _against_peer("with-files", ours, peer, "", "", _touch)
    columns = _columns(ours)
    yield columns
    if files > PEER_FILES:
        # The first plan was made beside a hundred thousand tasks of the peer, which the collector of garbage visits.
        plain, both = columns.theirs_seconds, seconds["both-filters"]
        yield Row("million-a-second", plain, files / 1e6, 1.0, "the peer is a plan of a million files a second")
        yield Row("both-to-none", both, plain, 0.2, "the peer is our own plan without a filter")
    vectors = MadeTable(folder / "vectors", files, 3, True)
    peer_vectors = vectors if files <= PEER_FILES else MadeTable(folder / "pv", PEER_FILES, 3, True)
    yield _against_peer("with-vectors", vectors, peer_vectors, "", "")


def _against_peer(
    case: str,
    ours: MadeTable,
    peer: MadeTable,
    row_filter: str,
    their_filter: str,
    work: Callable[[Any], int] | None = None,
) -> Row:
    work = work or _drain
    scale = ours.files / peer.files
    theirs = StaticTable.from_metadata(peer.metadata_location)
    scan = TableScan(ours.metadata, ours.storage, row_filter)
    their_scan = theirs.scan(row_filter=their_filter) if their_filter else theirs.scan()
    planned: list[Any] = []

    def plan_theirs() -> None:
        planned[:] = their_scan.plan_files()

    # Both give the same files and deletes; what is compiled and cached is so before the time runs.
    checked = _found(TableScan(peer.metadata, peer.storage, their_filter).plan_files(), lambda task: task.deletes)
    work(scan)
    # Plans of some milliseconds are measured more often, and both as often: what else the machine does tells more in them.
    repeat, peer_repeat = (3, 1) if peer.files >= PEER_FILES else (15, 15)
    our_time, their_time = interleave(lambda: work(scan), plan_theirs, repeat, peer_repeat)
    _check_same(case, checked, _found(planned, lambda task: task.delete_files))
    report = scan.report
    assert report is not None
    note = (
        f"{report.counts.result_data_files:,} tasks, {report.counts.result_delete_files:,} deletes, "
        f"{ours.files / our_time:,.0f} files/s against {peer.files / their_time:,.0f}, first task after "
        f"{report.seconds_to_first_task or 0:.3f} s, {_peak_memory(ours, row_filter)}"
    )
    scaled = "" if scale == 1 else f"; theirs scaled up from {peer.files:,} files"
    return Row(case, our_time, their_time * scale, GOAL, note + scaled)


def _check_same(case: str, ours: dict[str, int], theirs: dict[str, int]) -> None:
    """The same files; the peer gives a file all vectors of its partition, where we give it its own."""
    assert ours.keys() == theirs.keys(), f"{case}: the peer plans other files"
    assert all(count <= theirs[path] for path, count in ours.items()), f"{case}: the peer plans fewer deletes"


def _found(tasks: Any, deletes: Callable[[Any], Any]) -> dict[str, int]:
    """The path of each file that is planned, with how many deletes it has."""
    return {task.file.file_path: len(deletes(task)) for task in tasks}


def _columns(table: MadeTable) -> Row:
    """The same plan in columns, without a task for each file, against the plan with tasks."""
    scan = TableScan(table.metadata, table.storage)

    def work() -> int:
        plan = scan.plan()
        assert plan is not None
        with plan:
            return sum(len(batch) for batch in plan)

    seconds, with_tasks = interleave(work, lambda: _drain(scan))
    note = f"{table.files / seconds:,.0f} files/s in columns; the peer is our own plan with tasks"
    return Row("in-columns", seconds, with_tasks, 1.1, note)


def _drain(scan: Any) -> int:
    """All tasks of a plan of ours or of the peer's, counted."""
    return sum(1 for _ in scan.plan_files())


def _touch(scan: Any) -> int:
    """The same with a look at the file of each task, which ours only makes then."""
    return sum(1 for task in scan.plan_files() if task.file.file_path)


_IN_A_PROCESS = """
import json, re, sys
from icefloe.metadata import decode_metadata_file
from icefloe.planning import TableScan
from icefloe.storage import Storage

storage = Storage()
# Not what `resource` tells: that starts with the memory of the process that started this one.
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) // 1024
location, row_filter = sys.argv[1:]
scan = TableScan(decode_metadata_file(storage.read(location)), storage, row_filter)
before = peak()
for _ in scan.plan_files():
    pass
print(json.dumps([before, peak()]))
"""


def _peak_memory(table: MadeTable, row_filter: str) -> str:
    """The most memory of a process that makes the plan and nothing else; compiled code is part of it."""
    if not Path("/proc/self/status").exists():
        return "peak memory not known here"
    command = [sys.executable, "-c", _IN_A_PROCESS, table.metadata_location, row_filter]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    before, after = json.loads(found.stdout)
    return f"peak memory {after} MiB, of which {before} before the plan"
