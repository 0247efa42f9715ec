"""Pages of a table with many files: the first byte of a process that never saw it, then of one that did, and its memory.

There is no peer: each time is against its limit, 3 s for the first visit and 0.3 s for the next ones.
"""

import http.client
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import icefloe
from bench.manifests import COLUMNS, SCHEMA
from bench.planning import MadeTable
from bench.report import Row
from icefloe.manifests import ManifestFile, ManifestFormat, encode_manifest_list, write_manifests
from icefloe.metadata import MAIN_BRANCH, Snapshot, TableMetadata, apply_all, branch, updates as up
from icefloe.metadata.snapshot import Summary

FILES = {"small": 5_000, "medium": 100_000, "full": 1_000_000}
COLD, WARM = 3.0, 0.3
REPEAT = 5
NEW_FILES = 200
_REAL_FILES = 64
_TOKEN = "bench-" + "0" * 26
_PAGES = {
    "namespace": "/c/lake/shop",
    "overview": "",
    "columns": "/columns",
    "bounds": "/columns?column=c3",
    "data": "/data",
    "data-filtered": "/data?where=c3+%3C+100",
    "snapshots": "/snapshots",
    "changes": "/changes",
    "files": "/files",
    "files-filtered": "/files?where=partition.day+%3D+%272024-10-19%27&order=smallest",
    "partitions": "/partitions",
    "tree": "/tree",
    "health": "/health",
    "verify": "/verify",
    "storage": "/storage",
    "metadata": "/metadata",
    "metadata-files": "/metadata?table=files",
    "metadata-manifests": "/metadata?table=manifests",
    "metadata-partitions": "/metadata?table=partitions",
    "properties": "/properties",
}


class LargeTable(MadeTable):
    """A table of two snapshots whose first files are there, so that rows can be read."""

    def _write(self, what: Any, version: int, content: Any) -> list[ManifestFile]:
        paths = pa.array([f"{self.location}/data/{number}.parquet" for number in range(self.files)])
        rows = {f"c{number}": np.arange(60) for number in range(1, COLUMNS + 1)}
        folder = Path(self.location.removeprefix("file://")) / "data"
        folder.mkdir(parents=True)
        table = pa.table({**rows, "day": pa.array([20_000] * 60, pa.int32()).cast(pa.date32())})
        fields = [field.with_metadata({"PARQUET:field_id": str(place)}) for place, field in enumerate(table.schema, 1)]
        for number in range(_REAL_FILES):
            pq.write_table(table.cast(pa.schema(fields)), folder / f"{number}.parquet")
        for number in range(NEW_FILES):
            (folder / f"new-{number}.parquet").hardlink_to(folder / "0.parquet")
        self._columns = replace(what, columns={**what.columns, "file_path": paths})
        self._first_files = self._columns.slice(0, NEW_FILES)
        return super()._write(self._columns, version, content)

    def _commit(self, manifests: list[ManifestFile], version: int) -> TableMetadata:
        first = super()._commit(manifests, version)
        spec = first.spec()
        added = self._first_files
        fresh = pa.array([f"{self.location}/data/new-{number}.parquet" for number in range(NEW_FILES)])
        added = replace(added, columns={**added.columns, "file_path": fresh})
        form = ManifestFormat(version, SCHEMA, spec, 8)
        places = iter(lambda: f"{self.location}/metadata/{uuid.uuid4()}-m0.avro", None)
        new = write_manifests(added, form, places, self.storage.write)
        listed = encode_manifest_list(
            [*new, *(replace(each, sequence_number=1, min_sequence_number=1) for each in manifests)],
            version,
            snapshot_id=8,
            parent_snapshot_id=7,
            sequence_number=2,
            first_row_id=None,
        )
        place = f"{self.location}/metadata/snap-2.avro"
        self.storage.write(place, listed.data)
        now = int(time.time() * 1000)
        totals = {
            "total-data-files": str(self.files + NEW_FILES),
            "total-records": "1000000000",
            "total-files-size": str(1 << 40),
        }
        snapshot = Snapshot(8, now, place, Summary("append", totals), 7, 2, first.current_schema_id)
        ref = up.SetSnapshotRefUpdate(MAIN_BRANCH, branch(8))
        return apply_all(first, [up.AddSnapshotUpdate(snapshot), ref], now)


_SERVE = """
import sys
import uvicorn
import icefloe
from icefloe.ui.app import create_app
from icefloe.ui.command import _listen
from icefloe.ui.gate import LOOPBACK_NAMES, TokenGate
from icefloe.ui.site import Site

folder, token = sys.argv[1:]
catalog = icefloe.load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder)
app = create_app(Site({"lake": catalog}), TokenGate(token), hosts=LOOPBACK_NAMES)
listener = _listen(0)
listener.listen()
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off")).run(sockets=[listener])
"""


def run(size: str) -> Iterator[Row]:
    """Every page."""
    files = FILES[size]
    with tempfile.TemporaryDirectory() as folder:
        made = LargeTable(Path(folder) / "t", files)
        with icefloe.load_catalog(
            "lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder
        ) as catalog:
            catalog.create_namespace("shop")
            catalog.register_table("shop.big", made.metadata_location)
        # What is compiled is compiled once for a machine.
        _page(Path(folder), "/files")
        for name, path in _PAGES.items():
            cold, whole, warm, processor, peak = _page(Path(folder), path)
            later = "" if whole < cold + 0.1 else f"; shows how far it is until {whole:.2f} s"
            note = f"{files:,} files{later}; {processor:.2f} s of processor time until then, peak memory {peak} MiB"
            yield Row(f"{name}-cold", cold, COLD, 1.0, note)
            yield Row(f"{name}-warm", warm, WARM, 1.0, "the median of five")


def _page(folder: Path, path: str) -> tuple[float, float, float, float, int]:
    """Seconds to the first byte in a new process, until all is there, and again; processor time, and peak memory in MiB."""
    path = path if path.startswith("/c/") else f"/t/lake/shop/big{path}"
    with _serving(folder) as (port, process):
        start, before = time.perf_counter(), _processor(process)
        cold, body = _first_byte(port, path)
        while b"data-reload" in body:
            time.sleep(0.1)
            _, body = _first_byte(port, path)
        whole = time.perf_counter() - start
        processor = _processor(process) - before
        warm = statistics.median(_first_byte(port, path)[0] for _ in range(REPEAT))
        return cold, whole, warm, processor, _peak(process)


@contextmanager
def _serving(folder: Path) -> Iterator[tuple[int, int]]:
    command = [sys.executable, "-c", _SERVE, str(folder), _TOKEN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]) as process:
        try:
            assert process.stdout is not None
            # It listens before it says so: what comes early waits in the queue of the socket.
            port = int(process.stdout.readline())
            _first_byte(port, "/about")
            yield port, process.pid
        finally:
            process.kill()


def _first_byte(port: int, path: str) -> tuple[float, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        start = time.perf_counter()
        connection.request("GET", path, headers={"cookie": f"icefloe-page-{port}={_TOKEN}"})
        answer = connection.getresponse()
        first = answer.read(1)
        seconds = time.perf_counter() - start
        body = first + answer.read()
    assert answer.status == 200, (path, answer.status, body[-2000:])
    return seconds, body


def _processor(process: int) -> float:
    """Seconds of processor time that a process took by now."""
    stat = Path(f"/proc/{process}/stat")
    fields = stat.read_text().rpartition(")")[2].split() if stat.exists() else []
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _peak(process: int) -> int:
    status = Path(f"/proc/{process}/status")
    match = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return 0 if match is None else int(match[1]) // 1024
