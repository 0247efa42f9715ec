"""Which of many millions of locations are in a set, in little memory: eight bytes for each, on disk above a budget.

Only hashes are kept, so that a location may seem to be in the set although it is not. Whoever deletes files asks whether they
are needed, so that a wrong answer keeps a file, and never loses one.
"""

import tempfile
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.maintenance.files.path_hashes import Hashes, location_hashes

BUDGET = 64 << 20
"""Bytes of hashes in memory, above which they go to disk."""

Mask = npt.NDArray[np.bool_]


class PathSet:
    """Locations, as hashes in sorted runs: few in memory, each at least twice as long as the next, and full ones on disk.

    A `with` block, or `close`, gives the disk back.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self._budget = budget
        self._runs: list[Hashes] = []
        self._stored: list[Hashes] = []
        self._files: list[tempfile._TemporaryFileWrapper[bytes]] = []

    def __len__(self) -> int:
        return sum(map(len, (*self._stored, *self._runs)))

    @property
    def runs_on_disk(self) -> int:
        """How often the budget was used up."""
        return len(self._stored)

    def add(self, locations: pa.Array) -> None:
        """Take locations in, however they are spelled."""
        self.add_hashes(location_hashes(locations))

    def add_hashes(self, hashes: Hashes) -> None:
        """The same by their hashes."""
        distinct = np.unique(hashes)
        self._append(distinct[~self._has(distinct)])

    def add_new(self, hashes: Hashes) -> Mask:
        """Take hashes in, and tell which were not there before; of equal ones, the first."""
        distinct, first = np.unique(hashes, return_index=True)
        is_new = ~self._has(distinct)
        self._append(distinct[is_new])
        mask = np.zeros(len(hashes), bool)
        mask[first[is_new]] = True
        return mask

    def contains(self, locations: pa.Array) -> Mask:
        """Which of the locations are in the set, or seem to be."""
        return self.contains_hashes(location_hashes(locations))

    def contains_hashes(self, hashes: Hashes) -> Mask:
        """The same by their hashes."""
        # In order, neighbours are found in the same part of a run.
        order = np.argsort(hashes)
        mask = np.empty(len(hashes), bool)
        mask[order] = self._has(hashes[order])
        return mask

    def _has(self, ordered: Hashes) -> Mask:
        mask = np.zeros(len(ordered), bool)
        for run in (*self._stored, *self._runs):
            at = np.searchsorted(run, ordered)
            mask |= run[np.minimum(at, len(run) - 1)] == ordered
        return mask

    def _append(self, run: Hashes) -> None:
        if not len(run):
            return
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            # Runs that are sorted already are merged, not sorted anew.
            self._runs[-2:] = [np.sort(np.concatenate(self._runs[-2:]), kind="stable")]
        if 8 * sum(map(len, self._runs)) > self._budget:
            self._store()

    def _store(self) -> None:
        run = np.sort(np.concatenate(self._runs), kind="stable")
        file = tempfile.NamedTemporaryFile(prefix="icefloe-paths-")  # noqa: SIM115 - closed with the set
        self._files.append(file)
        run.tofile(file)
        file.flush()
        self._stored.append(np.memmap(file.name, np.uint64, "r"))
        self._runs = []

    def close(self) -> None:
        """Forget everything, and give the disk back."""
        self._runs, self._stored = [], []
        while self._files:
            self._files.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_class: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
