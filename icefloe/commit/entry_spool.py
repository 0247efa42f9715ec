"""Entries on their way from old manifests into new ones: in memory up to a budget, and beyond it in files of a temporary folder."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.manifests import ManifestColumns, Metric, MetricColumns

BUDGET = 256 << 20
"""How many bytes of entries wait in memory."""

Ranks = npt.NDArray[np.int64]
_RANK, _PARTITION, _METRIC = "rank", "partition.", "metric."


@dataclass(frozen=True, slots=True, eq=False)
class RankedEntries:
    """Entries, and the place of each in the order of all."""

    columns: ManifestColumns
    ranks: Ranks

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return self.columns.nbytes + int(self.ranks.nbytes)


class EntrySpool:
    """Entries by the number of the manifest that they will be in; a folder is made only when memory does not suffice."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._budget = budget
        self._held: dict[int, list[RankedEntries]] = {}
        self._size = 0
        self._pattern: ManifestColumns | None = None
        self._folder: Path | None = None
        self._cleanup = ExitStack()

    def add(self, number: int, entries: RankedEntries) -> None:
        """Entries for one manifest; all are of one spec and one type of partitions."""
        self._pattern = self._pattern or entries.columns.slice(0, 0)
        self._held.setdefault(number, []).append(entries)
        self._size += entries.nbytes
        if self._size > self._budget:
            self._spill()

    def take(self, number: int) -> list[RankedEntries]:
        """All entries of one manifest, which are let go of here."""
        held = self._held.pop(number, [])
        self._size -= sum(part.nbytes for part in held)
        return [*self._spilled(number), *held]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cleanup.close()

    def _spill(self) -> None:
        if self._folder is None:
            made = tempfile.TemporaryDirectory(prefix="icefloe-manifests-")
            self._folder = Path(self._cleanup.enter_context(made))
        for number, parts in self._held.items():
            with (self._folder / str(number)).open("ab") as file:
                for part in parts:
                    batch = _to_batch(part)
                    with pa.ipc.new_stream(file, batch.schema) as stream:
                        stream.write_batch(batch)
        self._held, self._size = {}, 0

    def _spilled(self, number: int) -> Iterator[RankedEntries]:
        path = None if self._folder is None else self._folder / str(number)
        if path is None or not path.exists():
            return
        end = path.stat().st_size
        with path.open("rb") as file:
            while file.tell() < end:
                with pa.ipc.open_stream(file) as stream:
                    yield from map(self._from_batch, stream)
        path.unlink()

    def _from_batch(self, batch: pa.RecordBatch) -> RankedEntries:
        assert self._pattern is not None
        names = batch.schema.names
        columns = replace(
            self._pattern,
            length=batch.num_rows,
            columns={name: batch[name] for name in names if "." not in name and name != _RANK},
            partition={
                int(name.removeprefix(_PARTITION)): batch[name] for name in names if name.startswith(_PARTITION)
            },
            metrics=MetricColumns(
                batch.num_rows,
                {Metric(name.removeprefix(_METRIC)): batch[name] for name in names if name.startswith(_METRIC)},
            ),
        )
        return RankedEntries(columns, batch[_RANK].to_numpy())


def _to_batch(part: RankedEntries) -> pa.RecordBatch:
    columns = part.columns
    arrays = {
        _RANK: pa.array(part.ranks),
        **columns.columns,
        **{f"{_PARTITION}{field_id}": column for field_id, column in columns.partition.items()},
        **{f"{_METRIC}{metric.value}": columns.metrics.as_map(metric) for metric in Metric},
    }
    return pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))
