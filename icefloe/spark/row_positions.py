"""Where rows of a frame are: the positions that Spark's tasks gather of them, file by file."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame, functions as F  # noqa: N812  # its usual name

from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.spark.gateway import Gateway, col, lit

FILE = "__icefloe_file"
POS = "__icefloe_pos"
_CHOSEN = "__icefloe_chosen"
_CHUNK_BITS = 18
"""How many low bits of a position distinguish rows that are gathered as one list, so that no list is long."""
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Gathered:
    """Where rows are: for each list of positions its file, and whether its rows are chosen. A row may be there twice."""

    lists: tuple[tuple[str, bool, Numbers], ...]

    def __len__(self) -> int:
        return sum(len(positions) for _, _, positions in self.lists)

    def by_file(self) -> dict[str, DeletionVector]:
        """The positions of the chosen rows by file."""
        return {
            name: DeletionVector.from_positions(np.concatenate(positions))
            for name, positions in self._lists(lambda is_chosen: is_chosen).items()
        }

    def leaves_rows(self) -> bool:
        """Whether there are rows that are not chosen."""
        return any(not is_chosen for _, is_chosen, _ in self.lists)

    def twice(self) -> tuple[int, str, int] | None:
        """How many rows are there more than once, and where one of them is."""
        count, example = 0, None
        for name, lists in self._lists(lambda _: True).items():
            positions, times = np.unique(np.concatenate(lists), return_counts=True)
            repeated = positions[times > 1]
            if len(repeated):
                count += len(repeated)
                example = example or (name, int(repeated[0]))
        return None if example is None else (count, *example)

    def _lists(self, is_wanted: Callable[[bool], bool]) -> dict[str, list[Numbers]]:
        lists: dict[str, list[Numbers]] = {}
        for name, is_chosen, positions in self.lists:
            if is_wanted(is_chosen):
                lists.setdefault(name, []).append(positions)
        return lists


def gathered(rows: DataFrame, chosen: Column | None = None) -> Gathered:
    """Where rows are, and which of them are chosen; eight bytes a row reach the driver, and each file's name a few times."""
    gateway = Gateway(rows.sparkSession)
    flag = lit(True) if chosen is None else chosen
    chunk = gateway.cached("chunks of positions", lambda: F.shiftright(POS, _CHUNK_BITS))
    listed = gateway.cached("lists of positions", lambda: F.collect_list(POS).alias(POS))
    groups = rows.groupBy(col(FILE), flag.alias(_CHOSEN), chunk).agg(listed).select(FILE, _CHOSEN, POS).toArrow()
    lists = []
    for batch in groups.to_batches():
        positions = batch.column(2)
        values, ends = positions.values.to_numpy(), positions.offsets.to_numpy()
        parts = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), ends[:-1], ends[1:], strict=True)
        lists += [(name, flag, values[start:end]) for name, flag, start, end in parts]
    return Gathered(tuple(lists))
