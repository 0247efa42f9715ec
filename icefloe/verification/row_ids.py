"""Whether no two rows of a snapshot have one id: ids that are stored in files, and those that follow from positions."""

import threading
from array import array
from typing import Any

import numpy as np
from pyroaring import BitMap64

from icefloe.data import ReadContext, read_task
from icefloe.errors import IcefloeError
from icefloe.metadata import Snapshot
from icefloe.parallel import for_each
from icefloe.planning import FileScanTask, TableScan
from icefloe.schema import Schema, reserved
from icefloe.verification.codes import Code, Level
from icefloe.verification.subject import Subject
from icefloe.versions import Feature, allows


def check_ids_of_rows(subject: Subject) -> None:
    """Check the snapshot that was asked for, or the heads of all branches and tags: the others share their files."""
    metadata = subject.metadata
    if not allows(metadata.format_version, Feature.ROW_LINEAGE):
        return
    if not subject.level.includes(Level.DATA) or subject.sample < 1:
        return
    heads = {each.snapshot_id for each in metadata.refs.values()} | {metadata.current_snapshot_id}
    for snapshot in subject.snapshots:
        if snapshot.first_row_id is not None and (not subject.is_whole or snapshot.snapshot_id in heads):
            _RowIds(subject, snapshot).run()


class _RowIds:
    """The ids of one snapshot's rows. A bitmap of runs holds them: ids mostly follow each other."""

    def __init__(self, subject: Subject, snapshot: Snapshot) -> None:
        self._subject = subject
        self._snapshot = snapshot
        self._context = ReadContext(subject.metadata, subject.storage)
        self._seen = BitMap64()
        self._lock = threading.Lock()

    def run(self) -> None:
        subject = self._subject
        scan = TableScan(subject.metadata, subject.storage, snapshot_id=self._snapshot.snapshot_id)
        try:
            for_each(self._check, scan.plan_files(), subject.workers, "icefloe-verify")
        except IcefloeError:
            # What cannot be planned or read was said by whoever looked at that file or manifest.
            return

    def _check(self, task: FileScanTask) -> None:
        for batch in read_task(task, Schema(reserved.ROW_ID), self._context):
            ids = batch.column(0).drop_null().to_numpy()
            problem = self._problem(ids)
            if problem is not None:
                self._subject.findings.add(Code.ROW_IDS, problem, task.file.file_path, self._snapshot.snapshot_id)
                return

    def _problem(self, ids: Any) -> str | None:
        limit = self._subject.metadata.next_row_id
        if len(ids) and not 0 <= ids.min() <= ids.max() < limit:
            return (
                f"a row has the id {ids.max() if ids.max() >= limit else ids.min()}; ids are from 0 up to {limit - 1}"
            )
        found = BitMap64(array("Q", np.ascontiguousarray(ids, np.uint64).tobytes()))
        if len(found) != len(ids):
            return f"{len(ids) - len(found)} of its rows have the id of another one"
        with self._lock:
            shared = self._seen & found
            self._seen |= found
            self._seen.run_optimize()
        return f"rows of other files have ids of its rows, such as {shared.min()}" if shared else None
