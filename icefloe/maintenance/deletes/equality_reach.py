"""Which equality deletes may delete rows of some data files: by sequence number, scope and the metrics of their key columns.

The same rules as those of a scan (spec: Scan Planning), asked the other way round: for each delete file, whether there is a data
file that it may concern.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import expressions as ex, manifests as mf, metadata as md, planning
from icefloe.schema import StructType

_KEY_METRICS = (mf.Metric.VALUE_COUNTS, mf.Metric.NULL_VALUE_COUNTS, mf.Metric.LOWER_BOUNDS, mf.Metric.UPPER_BOUNDS)
_MOST_PAIRS = 1 << 22

_Scopes = dict[planning.PartitionKey | None, dict[tuple[int, ...], planning.Numbers]]
"""Which deletes hold in each partition, and under None in all of them, by key columns."""


class EqualityReach:
    """Equality delete files, those of all parts one after the other, and which of them may concern a data file."""

    def __init__(self, metadata: md.TableMetadata, parts: Sequence[mf.ManifestColumns]) -> None:
        ids = {field_id for part in parts for field_id in pc.list_flatten(part.column("equality_ids")).to_pylist()}
        self._keys = planning.key_columns(metadata, metadata.schema(), sorted(ids))
        self._numbers = np.concatenate([np.empty(0, np.int64), *map(planning.sequence_numbers, parts)])
        self._facts = planning.KeyFacts(_key_metrics(parts, self.field_ids), self._keys)
        self._scopes = _scopes(metadata, parts)
        self.is_needed: ex.Mask = np.zeros(len(self._numbers), bool)
        """Which deletes may delete a row of the data files so far."""

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The key columns, whose metrics are asked of data files."""
        return tuple(self._keys)

    @property
    def highest_open(self) -> int:
        """The highest sequence number of the deletes that are not needed so far; -1 if there are none."""
        return int(self._numbers[~self.is_needed].max(initial=-1))

    def add(self, data: mf.ManifestColumns) -> None:
        """Take in data files, with the metrics of the key columns."""
        if self.is_needed.all() or not len(data):
            return
        facts, numbers = planning.KeyFacts(data, self._keys), planning.sequence_numbers(data)
        for key, files in _with_all(planning.group_partitions(data)):
            for field_ids, deletes in self._scopes.get(key, {}).items():
                left = deletes[~self.is_needed[deletes]]
                self.is_needed[left] = self._reaches(left, field_ids, facts, files, numbers)

    def _reaches(
        self,
        deletes: planning.Numbers,
        field_ids: tuple[int, ...],
        data: planning.KeyFacts,
        files: planning.Numbers,
        numbers: planning.Numbers,
    ) -> ex.Mask:
        """For each of the deletes, whether it may concern one of the data files."""
        own = self._numbers[deletes]
        answer = np.zeros(len(deletes), bool)
        files = files[numbers[files] < own.max(initial=-1)]
        step = max(1, _MOST_PAIRS // max(len(deletes), 1))
        for start in range(0, len(files), step):
            left, some = np.flatnonzero(~answer), files[start : start + step]
            applies = own[left][:, None] > numbers[some][None, :]
            applies &= planning.may_apply(self._facts, deletes[left], data, some, field_ids)
            answer[left] = applies.any(axis=1)
        return answer


def rows_by_group(groups: planning.PartitionGroups) -> Iterator[tuple[planning.PartitionKey, planning.Numbers]]:
    """The files of each partition, by position."""
    keys = groups.keys()
    order = np.argsort(groups.of, kind="stable")
    used, starts = np.unique(groups.of[order], return_index=True)
    for group, rows in zip(used.tolist(), np.split(order, starts[1:]), strict=True):
        yield keys[group], rows


def _with_all(groups: planning.PartitionGroups) -> Iterator[tuple[planning.PartitionKey | None, planning.Numbers]]:
    yield None, np.arange(len(groups.of))
    yield from rows_by_group(groups)


def _key_metrics(parts: Sequence[mf.ManifestColumns], field_ids: Sequence[int]) -> mf.ManifestColumns:
    """What the metrics of all delete files say of the key columns."""
    length = sum(map(len, parts))
    spread = {
        (metric, field_id): pa.concat_arrays([part.metrics.column(metric, field_id) for part in parts])
        for metric in _KEY_METRICS
        for field_id in field_ids
    }
    return mf.ManifestColumns(length, {}, StructType(), {}, mf.MetricColumns(length, {}, spread))


def _scopes(metadata: md.TableMetadata, parts: Sequence[mf.ManifestColumns]) -> _Scopes:
    listed: dict[planning.PartitionKey | None, dict[tuple[int, ...], list[int]]] = {}
    start = 0
    for part in parts:
        groups = planning.group_partitions(part)
        keys: list[planning.PartitionKey] | list[None] = groups.keys()
        if metadata.spec(part.spec_id).is_unpartitioned:
            keys = [None] * len(groups)
        ids = part.column("equality_ids").to_pylist()
        for row, (group, field_ids) in enumerate(zip(groups.of.tolist(), ids, strict=True), start):
            listed.setdefault(keys[group], {}).setdefault(tuple(field_ids or ()), []).append(row)
        start += len(part)
    return {
        key: {field_ids: np.array(rows, np.int64) for field_ids, rows in by_ids.items()}
        for key, by_ids in listed.items()
    }
