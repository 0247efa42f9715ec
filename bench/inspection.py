"""Metadata tables of a table of many files with statistics of ten columns, against PyIceberg's on the same table."""

import resource
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import StaticTable

from bench.planning import MadeTable
from bench.report import Row, interleave
from icefloe.inspect import Inspect

FILES = {"small": 1_000, "medium": 100_000, "full": 400_000}
PEER_FILES = 100_000
"""The most files that the peer is asked for but in the main case; beyond, its time is scaled up from this many."""
GOAL = 1 / 20


def run(size: str) -> Iterator[Row]:
    """All cases at that size; the tables of both are equal before any time is given."""
    files = FILES[size]
    with tempfile.TemporaryDirectory() as folder:
        made = MadeTable(Path(folder) / "ours", files)
        fewer = made if files <= PEER_FILES else MadeTable(Path(folder) / "peer", PEER_FILES)
        yield _files(made)
        yield from _others(made, fewer)
        yield _streamed(made)


def _ours(table: MadeTable) -> Inspect:
    return Inspect(table.metadata, table.storage, table.metadata_location)


def _theirs(table: MadeTable) -> Any:
    return StaticTable.from_metadata(table.metadata_location).inspect


def _files(table: MadeTable) -> Row:
    """All columns of all files, at full size for both."""
    ours, theirs = _ours(table), _theirs(table)
    kept: dict[str, Any] = {}
    ours.files()
    our_time, their_time = interleave(_keeping(ours.files, kept, "ours"), _keeping(theirs.files, kept, "theirs"), 1)
    check_same(kept["ours"], kept["theirs"])
    note = (
        f"{table.files / our_time:,.0f} files/s against {table.files / their_time:,.0f}, equal in all columns of theirs, "
        f"{kept['ours'].nbytes >> 20} MiB of Arrow"
    )
    return Row("files", our_time, their_time, GOAL, note)


def _keeping(work: Callable[[], Any], kept: dict[str, Any], name: str) -> Callable[[], None]:
    def run_it() -> None:
        kept[name] = work()

    return run_it


def _others(table: MadeTable, fewer: MadeTable) -> Iterator[Row]:
    scale = table.files / fewer.files
    ours, fewer_ours, theirs = _ours(table), _ours(fewer), _theirs(fewer)
    scaled = "" if scale == 1 else f"; theirs scaled up from {fewer.files:,} files"
    day = "partition.day = '2024-10-19'"
    two = ("file_path", "record_count")
    cases: dict[str, tuple[Callable[[Inspect], Any], Callable[[], Any], str]] = {
        "entries": (lambda shown: shown.entries(), theirs.entries, "entries with all columns"),
        "partitions": (lambda shown: shown.partitions(), theirs.partitions, "sums of all files by partition"),
        "two-columns": (
            lambda shown: shown.files(selected_fields=two),
            lambda: theirs.files().select(list(two)),
            "path and count of each file; theirs has no way to ask for less",
        ),
        "one-partition": (
            lambda shown: shown.files(row_filter=day, selected_fields=two),
            lambda: _of_one_day(theirs.files()).select(list(two)),
            "the same of a thirtieth of the files",
        ),
    }
    for case, (our_work, their_work, note) in cases.items():
        kept: dict[str, Any] = {}
        our_time, their_time = interleave(_bound(our_work, ours), _keeping(their_work, kept, "theirs"), 1)
        check_same(our_work(fewer_ours), kept["theirs"])
        yield Row(case, our_time, their_time * scale, GOAL, note + scaled)


def _bound(work: Callable[[Inspect], Any], shown: Inspect) -> Callable[[], Any]:
    return lambda: work(shown)


def _of_one_day(files: Any) -> Any:
    days = pc.struct_field(files.column("partition"), "day").cast(pa.int32())
    return files.filter(pc.equal(days, 20_015))


def _streamed(table: MadeTable) -> Row:
    """Batch by batch, with nothing kept, against the whole table at once."""
    ours = _ours(table)

    def stream() -> int:
        return sum(batch.num_rows for batch in ours.scan("files").to_arrow_batch_reader())

    streamed, whole = interleave(stream, ours.files)
    assert stream() == table.files
    note = f"a stream against the whole table, both ours; peak memory of the process, peer and all, {_peak_mib()} MiB"
    return Row("streamed", streamed, whole, 1.5, note)


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def check_same(ours: Any, theirs: Any) -> None:
    """Fail unless every column of theirs is one of ours with the same values, in any order of rows."""
    ours, theirs = (_in_order(table) for table in (ours, theirs))
    assert ours.num_rows == theirs.num_rows, (ours.num_rows, theirs.num_rows)
    for name in theirs.schema.names:
        _check_column(_one(ours.column(name)), _one(theirs.column(name)), name)


def _in_order(table: Any) -> Any:
    names = table.schema.names
    if "file_path" in names:
        keys = table.column("file_path")
    elif "data_file" in names:
        keys = pc.struct_field(table.column("data_file"), "file_path")
    else:
        keys = pc.struct_field(table.column("partition"), "day")
    return table.take(pc.sort_indices(_one(keys)))


def _one(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _check_column(ours: Any, theirs: Any, name: str) -> None:
    if pa.types.is_struct(theirs.type):
        for field in theirs.type:
            _check_column(pc.struct_field(ours, [field.name]), pc.struct_field(theirs, [field.name]), field.name)
        return
    if pa.types.is_map(theirs.type):
        assert _lengths(theirs).equals(_lengths(ours)), name
        _check_column(ours.keys, theirs.keys, name)
        _check_column(ours.items, theirs.items, name)
        return
    if pa.types.is_timestamp(theirs.type):
        ours, theirs = ours.cast(pa.timestamp("ms", "UTC")).cast(pa.int64()), theirs.cast(pa.int64())
    assert theirs.cast(ours.type).equals(ours), name


def _lengths(maps: Any) -> Any:
    return pc.subtract(maps.offsets[1:], maps.offsets[:-1])
