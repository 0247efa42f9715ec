"""How data becomes data files: shaped to the table, grouped by partition, sorted, and written by several threads.

Memory is bounded. Rows wait for their writers only up to a limit; files of partitions that got no rows for longest are closed
when too many are open; and where the table has a sort order, each file holds one sorted run of the rows that came.
"""

import struct
import threading
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import pyarrow as pa

from icefloe import errors, manifests as mf, metadata as md, properties as props
from icefloe.data.arranging import Partition, group_rows, sort_rows
from icefloe.data.file_rolling import RollingWriter, WritePlan
from icefloe.data.incoming import RowsInput, incoming_tables
from icefloe.data.locations import NewLocations
from icefloe.data.scanning import default_workers
from icefloe.data.shaping import shape_table
from icefloe.formats.arrow_types import stored_schema
from icefloe.formats.metrics import metrics_modes
from icefloe.partitioning import UNSORTED, PartitionSpec, SortOrder, check_writable, transforms as tr
from icefloe.schema import Schema, reserved
from icefloe.storage import Storage
from icefloe.versions import Feature, require

WAITING_BYTES = 256 << 20
"""How many bytes of rows may wait for the threads that write them."""
SORTED_RUN_BYTES = 512 << 20
"""How many bytes of rows are gathered, over all partitions, before they are sorted."""
OPEN_BYTES = 1 << 30
"""How many bytes of rows open files may have taken in, beyond which the one not used for longest is closed."""

_LANE_BYTES = 256 << 20
"""An open file holds no more than about this in memory, however much it took in."""
_GATHERED_BYTES = 1 << 20


def _ignore(_: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class FileForm:
    """What new files are like, as far as it is not what the table says; None is what that says."""

    spec: PartitionSpec | None = None
    order: SortOrder | None = None
    is_arranged: bool = False
    """Whether the rows come in that order, and stay as they come."""
    target_bytes: int | None = None

    def spec_of(self, metadata: md.TableMetadata) -> PartitionSpec:
        """The spec that files are written with."""
        return metadata.spec() if self.spec is None else self.spec

    def order_of(self, metadata: md.TableMetadata) -> SortOrder:
        """The order of the rows of a file; none if this library cannot sort by it."""
        order = metadata.sort_order() if self.order is None else self.order
        is_unknown = any(isinstance(field.transform, tr.UnknownTransform) for field in order.fields)
        return UNSORTED if is_unknown else order

    def target_of(self, metadata: md.TableMetadata) -> int:
        """How large a file gets before the next one is begun, in bytes."""
        known = props.WRITE_TARGET_FILE_SIZE_BYTES.of(metadata.properties)
        return known if self.target_bytes is None else self.target_bytes


AS_THE_TABLE_SAYS = FileForm()
"""Files as a table wants them."""


@dataclass(frozen=True)
class WriteRequest:
    """Where rows are to be written. `written` gets every file that is whole, for whoever must clean up."""

    metadata: md.TableMetadata
    storage: Storage
    written: list[mf.DataFile] = field(default_factory=list)
    lineage: bool = False
    """Whether the rows come with the columns of row lineage, which are kept."""
    form: FileForm = AS_THE_TABLE_SAYS
    wrote: Callable[[int], None] = _ignore
    """Called with the number of rows that were just written, by any thread."""


def write_data_files(data: RowsInput, request: WriteRequest, *, workers: int | None = None) -> list[mf.DataFile]:
    """Write Arrow data, frames or a stream of batches as data files of the table; partitions in the order of their first rows.

    On an error, nothing is left of the files that were being written; those that were whole by then are in
    `request.written`, for the caller to delete.
    """
    with TableWriter(request, workers=workers) as writer:
        for table in incoming_tables(data):
            writer.write(table)
        return writer.close()


@dataclass(slots=True, eq=False)
class _Lane:
    """The rows of one partition on their way to files; the rows in `queue` are taken by one thread at a time."""

    number: int
    writer: RollingWriter
    gathered: list[pa.Table] = field(default_factory=list)
    gathered_bytes: int = 0
    taken_bytes: int = 0
    queue: deque[tuple[pa.Table | None, int]] = field(default_factory=deque)
    is_running: bool = False


class TableWriter:
    """Writes rows to data files of a table. Leaving a `with` block by an exception drops the files that are not whole.

    One thread calls it; others do the work.
    """

    def __init__(self, request: WriteRequest, *, workers: int | None = None, unique: str | None = None) -> None:
        """`unique` is the part of the files' names that no other writer has."""
        self.written = request.written
        self._plan = _plan(request, self._add, unique or str(uuid.uuid4()))
        self._is_arranged = request.form.is_arranged
        self._is_sorted = self._plan.order != UNSORTED and not request.form.is_arranged
        self._workers = max(1, default_workers() if workers is None else workers)
        self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="icefloe-write")
        self._lanes: OrderedDict[tuple[Partition, int], _Lane] = OrderedDict()
        self._gathered_bytes = 0
        self._waiting_bytes = 0
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._is_done = False

    def write(self, table: pa.Table) -> None:
        """Take in a table of rows."""
        shaped = shape_table(table, self._plan.schema)
        for partition, rows in group_rows(shaped, self._plan.spec, self._plan.metadata.schema()):
            for number, part in enumerate(self._parts(rows)):
                self._gather(self._lane(partition, number), part)
        self._raise()

    def close(self) -> list[mf.DataFile]:
        """Write all that is left, and say which files there are."""
        for lane in list(self._lanes.values()):
            self._send(lane)
            self._put(lane, None, 0)
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or not self._is_busy())
        self._raise()
        self._is_done = True
        self._pool.shutdown(wait=True)
        lanes = sorted(self._lanes.values(), key=lambda lane: lane.number)
        return [file for lane in lanes for file in lane.writer.files]

    def abort(self) -> None:
        """Drop the files that are not whole; those that are stay, in `written`."""
        if self._is_done:
            return
        self._is_done = True
        self._fail(errors.StateError("the write was given up"))
        with self._changed:
            for lane in self._lanes.values():
                lane.queue.clear()
            self._changed.notify_all()
        self._pool.shutdown(wait=True, cancel_futures=True)
        for lane in self._lanes.values():
            lane.writer.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def _add(self, file: mf.DataFile) -> None:
        with self._changed:
            self.written.append(file)

    def _parts(self, rows: pa.Table) -> list[pa.Table]:
        """The rows of a partition in as many parts as are worth files of their own."""
        count = (
            1 if self._is_sorted or self._is_arranged else min(self._workers, rows.nbytes // self._plan.target_bytes)
        )
        if count <= 1:
            return [rows]
        size = -(-rows.num_rows // count)
        return [rows.slice(start, size) for start in range(0, rows.num_rows, size)]

    def _lane(self, partition: Partition, number: int) -> _Lane:
        key = (_distinct(partition), number)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(len(self._lanes), RollingWriter(self._plan, partition))
        self._lanes.move_to_end(key)
        return lane

    def _gather(self, lane: _Lane, rows: pa.Table) -> None:
        lane.gathered.append(rows)
        lane.gathered_bytes += rows.nbytes
        self._gathered_bytes += rows.nbytes
        if not self._is_sorted and lane.gathered_bytes >= _GATHERED_BYTES:
            self._send(lane)
        while self._gathered_bytes > (SORTED_RUN_BYTES if self._is_sorted else WAITING_BYTES):
            self._send(max(self._lanes.values(), key=lambda lane: lane.gathered_bytes))
        if not self._is_sorted:
            self._close_oldest(lane)

    def _close_oldest(self, newest: _Lane) -> None:
        """Close the files that were not written to for longest while open ones take too much memory."""
        held = sum(min(lane.taken_bytes, _LANE_BYTES) for lane in self._lanes.values())
        for lane in list(self._lanes.values()):
            if held <= OPEN_BYTES:
                return
            if lane is not newest and lane.taken_bytes:
                held -= min(lane.taken_bytes, _LANE_BYTES)
                self._send(lane)
                self._put(lane, None, 0)
                lane.taken_bytes = 0

    def _send(self, lane: _Lane) -> None:
        """Hand over what a lane gathered to a thread that writes it."""
        if not lane.gathered:
            return
        rows = pa.concat_tables(lane.gathered)
        size = lane.gathered_bytes
        self._gathered_bytes -= size
        lane.taken_bytes += size
        lane.gathered, lane.gathered_bytes = [], 0
        self._put(lane, rows, size)

    def _put(self, lane: _Lane, rows: pa.Table | None, size: int) -> None:
        """Queue rows, or None to close the file; waits while too much waits already."""
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._error is not None or self._waiting_bytes == 0 or self._waiting_bytes + size <= WAITING_BYTES
                )
            )
            if self._error is not None:
                return
            self._waiting_bytes += size
            lane.queue.append((rows, size))
            if not lane.is_running:
                lane.is_running = True
                self._pool.submit(self._drain, lane)

    def _drain(self, lane: _Lane) -> None:
        while True:
            with self._changed:
                if not lane.queue or self._error is not None:
                    lane.is_running = False
                    self._changed.notify_all()
                    return
                rows, size = lane.queue.popleft()
            try:
                self._write(lane, rows)
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that writes
                self._fail(error)
            with self._changed:
                self._waiting_bytes -= size
                self._changed.notify_all()

    def _write(self, lane: _Lane, rows: pa.Table | None) -> None:
        if rows is None:
            lane.writer.finish()
        elif self._is_sorted:
            lane.writer.write(sort_rows(rows, self._plan.order, self._plan.metadata.schema()))
            lane.writer.finish()
        else:
            lane.writer.write(rows)

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            if self._error is None:
                self._error = error
            self._changed.notify_all()

    def _is_busy(self) -> bool:
        return any(lane.is_running or lane.queue for lane in self._lanes.values())

    def _raise(self) -> None:
        with self._changed:
            if self._error is not None:
                raise self._error


def _distinct(partition: Partition) -> Partition:
    """The tuple with floats as their bytes, since NaN is not equal to itself and 0.0 is to -0.0."""
    return tuple(struct.pack("d", value) if isinstance(value, float) else value for value in partition)


def _plan(request: WriteRequest, finished: Callable[[mf.DataFile], None], unique: str) -> WritePlan:
    metadata, form = request.metadata, request.form
    if request.lineage:
        require(metadata.format_version, Feature.ROW_LINEAGE, "keeping row ids")
    check_writable(form.spec_of(metadata))
    table = metadata.schema()
    lineage = reserved.ROW_LINEAGE_COLUMNS if request.lineage else ()
    schema = Schema(*table.fields, *lineage, schema_id=table.schema_id)
    order = form.order_of(metadata)
    return WritePlan(
        metadata,
        request.storage,
        schema,
        form.spec_of(metadata),
        order,
        metrics_modes(stored_schema(schema), metadata.properties, order),
        NewLocations(metadata, unique),
        finished,
        form.target_of(metadata),
        request.wrote,
    )
