"""Which delete files apply to which data file (spec: Scan Planning): by path, then by partition, then everywhere.

A position delete applies to data that is not newer than it, an equality delete only to data that is older. A deletion
vector stands for all position deletes of its file.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from icefloe import errors, expressions as ex, manifests as mf, metadata as md
from icefloe.planning.delete_files import DeleteFiles
from icefloe.planning.equality_pruning import KeyColumn, KeyFacts, key_columns, may_apply
from icefloe.planning.partitions import Numbers, PartitionKey
from icefloe.planning.pruning import Survivors, sequence_numbers
from icefloe.planning.report import ScanCounts
from icefloe.planning.vector_deletes import VectorIndex
from icefloe.schema import Schema, StructType
from icefloe.storage.identities import identities

_KEY_METRICS = (mf.Metric.VALUE_COUNTS, mf.Metric.NULL_VALUE_COUNTS, mf.Metric.LOWER_BOUNDS, mf.Metric.UPPER_BOUNDS)
_MOST_PAIRS = 1 << 22

Deletes = list[tuple[mf.DataFile, ...]]
"""Those of each data file."""


class _Delete(NamedTuple):
    file: mf.DataFile
    sequence_number: int
    key: PartitionKey


class _Equality(NamedTuple):
    """All equality deletes: files with their numbers in columns, and which of them are where, by key columns."""

    files: list[mf.DataFile]
    sequence_numbers: Numbers
    facts: KeyFacts
    everywhere: dict[tuple[int, ...], Numbers]
    by_partition: dict[PartitionKey, dict[tuple[int, ...], Numbers]]


class DeleteIndex:
    """The delete files of a scan by data file. Threads may share it."""

    def __init__(
        self,
        metadata: md.TableMetadata,
        schema: Schema,
        parts: Iterable[DeleteFiles],
        counts: ScanCounts,
        prune: bool = True,
    ) -> None:
        parts = list(parts)
        vectors = [part.vectors for part in parts if part.vectors is not None]
        self._vectors = VectorIndex(vectors) if vectors else None
        counts.indexed_deletion_vectors += 0 if self._vectors is None else len(self._vectors)
        self._by_path: dict[str, list[_Delete]] = {}
        self._by_partition: dict[PartitionKey, list[_Delete]] = {}
        self._prune = prune
        self._keys: dict[int, KeyColumn] = {}
        with_equality = []
        key_ids: set[int] = set()
        for part in parts:
            keys = part.groups.keys()
            for row, file in enumerate(part.files):
                if file.content is not mf.FileContent.EQUALITY_DELETES:
                    delete = _Delete(file, int(part.sequence_numbers[row]), keys[part.groups.of[row]])
                    self._add_positions(delete, part.scopes[row], counts)
            if rows := _equality_rows(part):
                with_equality.append(part)
                key_ids.update(*(part.files[row].equality_ids or () for row in rows))
                counts.indexed_equality_deletes += len(rows)
        for group in (*self._by_path.values(), *self._by_partition.values()):
            group.sort(key=attrgetter("sequence_number"))
        self._equality = None
        if with_equality:
            self._keys = key_columns(metadata, schema, sorted(key_ids))
            self._equality = _equality(metadata, with_equality, self._keys)

    @property
    def is_empty(self) -> bool:
        """Whether there are no deletes at all."""
        return not (self._vectors or self._by_path or self._by_partition or self._equality)

    @property
    def size(self) -> int:
        """How many deletes there are."""
        groups = (*self._by_path.values(), *self._by_partition.values())
        vectors = 0 if self._vectors is None else len(self._vectors)
        return vectors + sum(map(len, groups)) + (0 if self._equality is None else len(self._equality.files))

    @property
    def metric_ids(self) -> tuple[int, ...]:
        """The columns of data files whose metrics tell which equality deletes may apply."""
        return tuple(self._keys) if self._prune else ()

    def _add_positions(self, delete: _Delete, scope: str | None, counts: ScanCounts) -> None:
        counts.indexed_position_deletes += 1
        if scope is None:
            self._by_partition.setdefault(delete.key, []).append(delete)
        else:
            self._by_path.setdefault(scope, []).append(delete)

    def match(self, data: Survivors) -> Sequence[tuple[mf.DataFile, ...]] | None:
        """The deletes of each data file; None if none of them has any."""
        if self.is_empty:
            return None
        files, numbers = data.files, sequence_numbers(data.files)
        vectors = None if self._vectors is None else self._vectors.match(files, numbers, data.groups)
        if not (self._by_path or self._by_partition or self._equality):
            return vectors
        keys = data.groups.keys()
        deletes: Deletes = [()] * len(files) if vectors is None else vectors[:]
        has_vector = np.zeros(len(files), bool) if vectors is None else vectors.exists
        if self._by_path:
            self._match_paths(data, numbers, keys, deletes, has_vector)
        if self._by_partition:
            for group in np.unique(data.groups.of).tolist():
                rows = np.flatnonzero(data.groups.of == group)
                self._match_partition(keys[group], rows[~has_vector[rows]], numbers, deletes)
        if self._equality is not None:
            self._match_equality(self._equality, data, keys, numbers, deletes)
        return deletes if any(deletes) else None

    def _match_paths(
        self,
        data: Survivors,
        numbers: Numbers,
        keys: Sequence[PartitionKey],
        deletes: Deletes,
        has_vector: ex.Mask,
    ) -> None:
        for row, path in enumerate(identities(data.files.column("file_path")).to_pylist()):
            if has_vector[row]:
                continue
            scoped = [delete for delete in self._by_path.get(path, ()) if delete.sequence_number >= numbers[row]]
            for delete in scoped:
                _check_partition(delete, path, keys[data.groups.of[row]])
            if scoped:
                deletes[row] = tuple(delete.file for delete in scoped)

    def _match_partition(self, key: PartitionKey, rows: Numbers, numbers: Numbers, deletes: Deletes) -> None:
        known = self._by_partition.get(key, ())
        limits = [delete.sequence_number for delete in known]
        suffixes: dict[int, tuple[mf.DataFile, ...]] = {}
        for row in rows.tolist():
            start = bisect_left(limits, numbers[row])
            if start not in suffixes:
                suffixes[start] = tuple(delete.file for delete in known[start:])
            if suffixes[start]:
                deletes[row] += suffixes[start]

    def _match_equality(
        self,
        equality: _Equality,
        data: Survivors,
        keys: list[PartitionKey],
        numbers: Numbers,
        deletes: Deletes,
    ) -> None:
        facts = KeyFacts(data.files, self._keys) if self._prune else None
        self._apply(equality, equality.everywhere, facts, np.arange(len(data.files)), numbers, deletes)
        if not equality.by_partition:
            return
        for group in np.unique(data.groups.of).tolist():
            if of_partition := equality.by_partition.get(keys[group]):
                rows = np.flatnonzero(data.groups.of == group)
                self._apply(equality, of_partition, facts, rows, numbers, deletes)

    def _apply(
        self,
        equality: _Equality,
        known: dict[tuple[int, ...], Numbers],
        facts: KeyFacts | None,
        rows: Numbers,
        numbers: Numbers,
        deletes: Deletes,
    ) -> None:
        for field_ids, indices in known.items():
            later = indices[equality.sequence_numbers[indices] > numbers[rows].min()]
            if not len(later):
                continue
            step = max(1, _MOST_PAIRS // len(later))
            for start in range(0, len(rows), step):
                some = rows[start : start + step]
                applies = equality.sequence_numbers[later][:, None] > numbers[some][None, :]
                if facts is not None:
                    applies &= may_apply(equality.facts, later, facts, some, field_ids)
                for column in np.flatnonzero(applies.any(axis=0)).tolist():
                    chosen = later[applies[:, column]].tolist()
                    deletes[some[column]] += tuple(equality.files[index] for index in chosen)


def _equality(metadata: md.TableMetadata, parts: Iterable[DeleteFiles], keys: dict[int, KeyColumn]) -> _Equality:
    """The equality deletes of many manifests in columns."""
    files: list[mf.DataFile] = []
    numbers: list[Numbers] = []
    metrics: list[mf.MetricColumns] = []
    everywhere: dict[tuple[int, ...], list[int]] = {}
    by_partition: dict[PartitionKey, dict[tuple[int, ...], list[int]]] = {}
    for part in parts:
        rows = _equality_rows(part)
        partition_keys = part.groups.keys()
        is_global = metadata.spec(part.columns.spec_id).is_unpartitioned
        for index, row in enumerate(rows, len(files)):
            group = everywhere if is_global else by_partition.setdefault(partition_keys[part.groups.of[row]], {})
            group.setdefault(part.files[row].equality_ids or (), []).append(index)
        files += [part.files[row] for row in rows]
        numbers.append(part.sequence_numbers[rows])
        metrics.append(part.columns.metrics.take(pa.array(rows, pa.int64())))
    spread = {
        (metric, field_id): pa.concat_arrays([part.column(metric, field_id) for part in metrics])
        for metric in _KEY_METRICS
        for field_id in keys
    }
    columns = mf.ManifestColumns(len(files), {}, StructType(), {}, mf.MetricColumns(len(files), {}, spread))
    return _Equality(
        files,
        np.concatenate(numbers),
        KeyFacts(columns, keys),
        _as_arrays(everywhere),
        {key: _as_arrays(group) for key, group in by_partition.items()},
    )


def _equality_rows(part: DeleteFiles) -> list[int]:
    rows = [row for row, file in enumerate(part.files) if file.content is mf.FileContent.EQUALITY_DELETES]
    for row in rows:
        if not part.files[row].equality_ids:
            raise errors.CorruptFileError(part.files[row].file_path, "an equality delete file has no key columns")
    return rows


def _as_arrays(group: dict[tuple[int, ...], list[int]]) -> dict[tuple[int, ...], Numbers]:
    return {field_ids: np.array(indices, np.int64) for field_ids, indices in group.items()}


def _check_partition(delete: _Delete, path: str, key: PartitionKey) -> None:
    if delete.key != key:
        raise errors.CorruptFileError(
            delete.file.file_path,
            f"it deletes rows of {path!r} but is in partition {delete.file.partition} of spec {delete.key[0]}, "
            f"while the data file is in another one, of spec {key[0]}; they must be the same",
        )
