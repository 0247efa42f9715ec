"""Rows of a group of data files that equality deletes delete, found by reading key columns alone, and written as position deletes.

One unit of work for any engine: it takes values, writes files, and answers with the entries of these.
"""

import uuid
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np

from icefloe import commit as cm, manifests as mf, metadata as md, parallel, planning
from icefloe.bounded_cache import BoundedCache
from icefloe.data import DeleteLoader, ReadContext, key_columns, read_task
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.maintenance.deletes.folded_keys import (
    BYTES_PER_KEY,
    FoldedKeys,
    Hits,
    KeySet,
    Rows,
    hits_by_buckets,
    hits_in_memory,
)
from icefloe.maintenance.deletes.writing import DeleteWriter
from icefloe.schema import Schema, reserved
from icefloe.storage import Storage
from icefloe.versions import Feature, allows

KEY_BYTES = 256 << 20
"""How much memory keys take; more of them are compared by way of the disk."""


@dataclass(frozen=True, slots=True)
class MatchGroup:
    """Data files, as tasks without equality deletes, and the keys that concern them."""

    tasks: tuple[planning.FileScanTask, ...]
    key_sets: tuple[KeySet, ...]
    concerned: tuple[tuple[int, ...], ...]
    """For each set of keys, the tasks, by number, whose rows it may delete."""


@dataclass(frozen=True, slots=True)
class MatchedGroup:
    """What was written for a group; `rows` is how many rows are deleted by position from now on, and were not before."""

    vectors: tuple[cm.NewVector, ...] = ()
    positions: tuple[mf.DataFile, ...] = ()
    emptied: tuple[mf.DataFile, ...] = ()
    """Data files without live rows, for which nothing was written."""
    rows: int = 0

    @property
    def written(self) -> tuple[mf.DataFile, ...]:
        """The new delete files."""
        return (*(vector.file for vector in self.vectors), *self.positions)


@dataclass(frozen=True)
class MatchKeys:
    """Finds and writes what equality deletes delete, group by group. Not slotted, for what groups of one process share."""

    metadata: md.TableMetadata
    storage: Storage
    key_bytes: int = KEY_BYTES
    workers: int = 1
    """How many data files of a group are read at a time, in this process; elsewhere, one."""

    def __call__(self, group: MatchGroup) -> MatchedGroup:
        """The deletes of one group, written."""
        positions_by_task: list[list[planning.Numbers]] = [[] for _ in group.tasks]
        for keys, concerned in zip(group.key_sets, group.concerned, strict=True):
            tasks = [group.tasks[number] for number in concerned]
            for number, positions in self._hits(keys, tasks):
                positions_by_task[concerned[number]].append(positions)
        matches = _Matches()
        loader = DeleteLoader(self.metadata, self.storage)
        for task, parts in zip(group.tasks, positions_by_task, strict=True):
            if parts:
                matches.add(task, DeletionVector.from_positions(np.concatenate(parts)), loader.positions(task))
        return self._written(matches)

    def __getstate__(self) -> dict[str, object]:
        # What is kept of keys stays in its process.
        return {"metadata": self.metadata, "storage": self.storage, "key_bytes": self.key_bytes, "workers": 1}

    def _written(self, matches: "_Matches") -> MatchedGroup:
        writer = DeleteWriter(self.metadata, self.storage, str(uuid.uuid4()))
        if allows(self.metadata.format_version, Feature.DELETION_VECTORS):
            files = writer.vectors([(task.file, both) for task, _, both in matches.partial])
            new = (
                cm.NewVector(file, task.deletion_vector)
                for file, (task, _, _) in zip(files, matches.partial, strict=True)
            )
            return MatchedGroup(tuple(new), (), tuple(matches.emptied), matches.rows)
        positions = tuple(writer.positions([(task.file, new)]) for task, new, _ in matches.partial)
        return MatchedGroup((), positions, tuple(matches.emptied), matches.rows)

    def _hits(self, keys: KeySet, tasks: Sequence[planning.FileScanTask]) -> Hits:
        schema = key_columns(keys.field_ids, self.metadata)
        numbers = [task.sequence_number for task in tasks]
        if keys.rows * BYTES_PER_KEY > self.key_bytes:
            rows = chain.from_iterable(self._rows(number, task, schema) for number, task in enumerate(tasks))
            return hits_by_buckets(keys, schema, self.storage, rows, numbers, self.key_bytes)
        fold = partial(_fold, keys, schema, self.storage)
        name = keys.field_ids, frozenset(file.file_path for file, _ in keys.files)
        folded: FoldedKeys = self._kept.load(name, fold, keys.rows * BYTES_PER_KEY)

        def hits(number: int) -> list[tuple[int, planning.Numbers]]:
            return list(hits_in_memory(folded, self._rows(number, tasks[number], schema), numbers))

        return chain.from_iterable(parallel.in_order(hits, range(len(tasks)), self.workers, "icefloe-maintenance"))

    @cached_property
    def _kept(self) -> BoundedCache[Hashable, Any]:
        """Keys that other groups need, too."""
        return BoundedCache(self.key_bytes, keeps_newest=True)

    def _rows(self, number: int, task: planning.FileScanTask, schema: Schema) -> Rows:
        columns = Schema(*schema.fields, reserved.POS)
        for batch in read_task(task.replace(deletes=()), columns, ReadContext(self.metadata, self.storage)):
            yield number, batch.column(batch.num_columns - 1).to_numpy(), batch


def _fold(keys: KeySet, schema: Schema, storage: Storage) -> FoldedKeys:
    return FoldedKeys(keys.tables(schema, storage), keys.field_ids)


@dataclass
class _Matches:
    """Rows of data files that are deleted by position from now on; files without any other rows apart."""

    partial: list[tuple[planning.FileScanTask, DeletionVector, DeletionVector]] = field(default_factory=list)
    """A task, what is deleted newly, and all that is deleted."""
    emptied: list[mf.DataFile] = field(default_factory=list)
    rows: int = 0

    def add(self, task: planning.FileScanTask, matched: DeletionVector, before: DeletionVector) -> None:
        """Take in the rows of a file that keys match."""
        both = before | matched
        if both.cardinality == before.cardinality:
            return
        self.rows += both.cardinality - before.cardinality
        new = np.setdiff1d(matched.positions(), before.positions(), assume_unique=True)
        # Delete files of others may name positions beyond the end of the file.
        if np.count_nonzero(both.positions() < task.file.record_count) == task.file.record_count:
            self.emptied.append(task.file)
        else:
            self.partial.append((task, DeletionVector.from_positions(new), both))


def group_tasks(
    tasks: Sequence[tuple[planning.FileScanTask, tuple[int, ...]]], key_sets: Sequence[KeySet], most_files: int
) -> Iterator[MatchGroup]:
    """The tasks, each with the sets of keys that concern it, in groups of neighbours."""
    for start in range(0, len(tasks), most_files):
        some = tasks[start : start + most_files]
        used = sorted({number for _, numbers in some for number in numbers})
        concerned = tuple(
            tuple(index for index, (_, numbers) in enumerate(some) if number in numbers) for number in used
        )
        yield MatchGroup(tuple(task for task, _ in some), tuple(key_sets[number] for number in used), concerned)
