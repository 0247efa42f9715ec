"""Which manifests may hold a path, without reading them again: hashes of the paths of every manifest that was seen.

It keeps twelve bytes for each path, up to a bound. A known hash only says which manifests to look at.
"""

import threading
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.int64]

MOST_PATHS = 8 << 20
"""How many paths are kept at most: about 100 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Hashes in order, each with the number of its manifest."""

    hashes: Hashes
    owners: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.hashes)

    def owners_of(self, wanted: Hashes) -> npt.NDArray[np.int32]:
        """The manifests of those hashes that are among the wanted ones, which are in order."""
        if len(wanted) * 8 < len(self):
            # Few are wanted: each is looked for.
            first = np.searchsorted(self.hashes, wanted, "left")
            last = np.searchsorted(self.hashes, wanted, "right")
            runs = [self.owners[start:end] for start, end in zip(first, last, strict=True) if start < end]
            return np.concatenate((self.owners[:0], *runs))
        index = np.minimum(np.searchsorted(wanted, self.hashes), len(wanted) - 1)
        owners: npt.NDArray[np.int32] = self.owners[wanted[index] == self.hashes]
        return owners


def hashes_of(paths: pa.Array) -> Hashes:
    """A number for each path, in order of size; they mean something in this process only."""
    return np.sort(np.fromiter(map(hash, paths.to_pylist()), np.int64, len(paths)))


class PathIndex:
    """The paths of live files of manifests, which never change; threads may share it."""

    def __init__(self, capacity: int = MOST_PATHS) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {}
        self._runs: list[_Run] = []
        self._next = 0

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def __contains__(self, manifest_path: str) -> bool:
        return manifest_path in self._numbers

    def add(self, manifest_path: str, hashes: Hashes) -> None:
        """Keep the paths of a manifest, unless there is no room."""
        with self._lock:
            if manifest_path in self._numbers or len(self) + len(hashes) > self._capacity:
                return
            self._numbers[manifest_path] = self._next
            run = _Run(hashes, np.full(len(hashes), self._next, np.int32))
            self._next += 1
            # Runs of about the same length become one, so that there are few and each path is moved a few times only.
            while self._runs and len(self._runs[-1]) <= 2 * len(run):
                run = _merged(self._runs.pop(), run)
            self._runs.append(run)

    def may_hold(self, hashes: Hashes) -> frozenset[str]:
        """The manifests, of those that are kept, that may hold one of the paths."""
        with self._lock:
            owners = [run.owners_of(hashes) for run in self._runs] if len(hashes) else []
            numbers = {int(number) for run in owners for number in run}
            if not numbers:
                return frozenset()
            return frozenset(path for path, number in self._numbers.items() if number in numbers)

    def make_room(self, needed: Collection[str]) -> None:
        """When it is more than half full, forget the manifests that are not needed any more."""
        with self._lock:
            if 2 * len(self) <= self._capacity:
                return
            numbers = {path: number for path, number in self._numbers.items() if path in needed}
            if len(numbers) == len(self._numbers):
                return
            alive = np.array(sorted(numbers.values()), np.int32)
            masks = [np.isin(run.owners, alive) for run in self._runs]
            self._numbers = numbers
            self._runs = [_Run(r.hashes[m], r.owners[m]) for r, m in zip(self._runs, masks, strict=True) if m.any()]


def _merged(one: _Run, other: _Run) -> _Run:
    hashes = np.concatenate((one.hashes, other.hashes))
    order = np.argsort(hashes, kind="stable")
    return _Run(hashes[order], np.concatenate((one.owners, other.owners))[order])
