"""Where paths are in a list of distinct ones: answered for a column at a time, exactly, whatever the hashes are."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.planning.partitions import Numbers

_FEW = 4096
"""So many paths are looked up by Arrow, which makes its table anew each time, and needs no compiler."""


class PathTable:
    """Paths and the place of each in their column. Threads may share it."""

    def __init__(self, paths: Any) -> None:
        self._paths = paths
        self._table: Any = None
        self.twins: tuple[int, int] | None = None
        """The places of two paths that are the same, if there are such."""
        if len(paths) <= _FEW:
            self.twins = _twins(paths)
            return
        from icefloe.planning.path_kernels import fill_table

        self._texts, self._offsets = _parts(paths)
        size = 1 << (2 * len(paths)).bit_length()
        self._hashes, table = np.zeros(len(paths), np.int64), np.full(size, -1, np.int32)
        twin, place = fill_table(self._texts, self._offsets, self._hashes, table)
        self.twins = None if twin < 0 else (int(twin), int(place))
        self._table = table

    def find(self, paths: Any) -> Numbers:
        """The place of each path, or -1."""
        if self._table is None:
            found = pc.fill_null(pc.index_in(paths, value_set=self._paths), -1)
            places: Numbers = found.to_numpy(zero_copy_only=False).astype(np.int64)
            return places
        from icefloe.planning.path_kernels import find_in_table

        places = np.empty(len(paths), np.int64)
        find_in_table(*_parts(paths), self._texts, self._offsets, self._hashes, self._table, places)
        return places


def _twins(paths: Any) -> tuple[int, int] | None:
    seen: dict[str, int] = {}
    for place, path in enumerate(paths.to_pylist()):
        if seen.setdefault(path, place) != place:
            return seen[path], place
    return None


def _parts(paths: Any) -> tuple[Any, Any]:
    """The bytes of all paths, and where each begins and the last one ends."""
    texts = paths.cast(pa.string()) if paths.type != pa.string() else paths
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4) if len(texts) else np.zeros(1, np.int32)
    return np.frombuffer(data if data is not None and data.size else bytes(1), np.uint8), ends
