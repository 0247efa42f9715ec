"""How many files filters on two columns read after a rewrite along a curve: a layout without any writing, by bounds alone.

Rows are laid out in the order of a key and cut into files of equal size; a filter reads the files whose bounds it meets. Ours are
keys by rank, the default; the peer's are Java's keys, byte for byte. The numbers are files that a filter reads on average, in
place of seconds.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.report import Row
from icefloe.maintenance.rewrite.curve_keys import ByteKeys, Curve, CurveColumn, RankKeys
from icefloe.schema import types

ROWS = {"small": 20_000, "medium": 1_000_000, "full": 4_000_000}
FILES = 64
PAIRS = (("small", "moment"), ("small", "ratio"), ("moment", "ratio"), ("small", "name"), ("moment", "name"))
COLUMNS = {
    "small": types.LongType(),
    "moment": types.TimestampType(),
    "ratio": types.DoubleType(),
    "name": types.StringType(),
}


def rows(count: int, seed: int = 1) -> pa.Table:
    """Rows as tables have them: small numbers, moments of a year, skewed ratios, texts with a common prefix."""
    random = np.random.default_rng(seed)
    names = random.integers(0, 100_000, count)
    return pa.table(
        {
            "small": random.integers(0, 10_000, count),
            "moment": pa.array(
                1_700_000_000_000_000 + random.integers(0, 31_536_000_000_000, count), pa.timestamp("us")
            ),
            "ratio": random.lognormal(0, 3, count),
            "name": pa.array([f"customer-{number:06d}" for number in names]),
        }
    )


def files_read(data: pa.Table, key: pa.Array | None, names: tuple[str, str], files: int, filters: int = 20) -> float:
    """How many of the files a filter reads on average, each of them with a tenth of the rows by each column."""
    order = np.arange(len(data)) if key is None else pc.sort_indices(key).to_numpy()
    cuts = np.array_split(order, files)
    ranks = {name: pc.rank(data[name], tiebreaker="dense").to_numpy() for name in names}
    bounds = {name: np.array([(rank[cut].min(), rank[cut].max()) for cut in cuts]) for name, rank in ranks.items()}
    random = np.random.default_rng(2)
    total = 0
    for _ in range(filters):
        hit = np.ones(files, bool)
        for name in names:
            highest = ranks[name].max()
            low = random.integers(0, max(1, int(highest * 0.9)))
            hit &= (bounds[name][:, 1] >= low) & (bounds[name][:, 0] <= low + highest // 10)
        total += int(hit.sum())
    return total / filters


def run(size: str) -> Iterator[Row]:
    """Each curve, for pairs of columns of several types."""
    data = rows(ROWS[size])
    sample = data.take(np.random.default_rng(3).integers(0, len(data), min(len(data), 100_000)))
    for names in PAIRS:
        columns = tuple(CurveColumn((name,), COLUMNS[name]) for name in names)
        for curve in Curve:
            by_rank, by_bytes = RankKeys.of_sample(curve, columns, sample), ByteKeys(curve, columns)
            ours, theirs = (files_read(data, keys.of(data), names, FILES) for keys in (by_rank, by_bytes))
            note = f"files of {FILES}, not seconds; as they come {files_read(data, None, names, FILES):.1f}"
            yield Row(f"{curve}-{'-'.join(names)}", ours, theirs, 1.0, note)
