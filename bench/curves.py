"""How many files filters on two columns read after a rewrite along a curve: a layout without any writing, by bounds alone.

    python -m bench.curves

Rows are laid out in the order of a key and cut into files of equal size; a filter reads the files whose bounds it meets. Java's
Z-order is `zorder, bytes`, whose keys are Java's, byte for byte.
"""

import argparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.maintenance.rewrite.curve_keys import ByteKeys, Curve, CurveColumn, RankKeys
from icefloe.schema import types

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


def measure(count: int, files: int) -> list[tuple[str, str, float]]:
    """For pairs of columns and keys, how many files a filter reads."""
    data = rows(count)
    measured = []
    for names in (("small", "moment"), ("small", "ratio"), ("moment", "ratio"), ("small", "name"), ("moment", "name")):
        columns = tuple(CurveColumn((name,), COLUMNS[name]) for name in names)
        sample = data.take(np.random.default_rng(3).integers(0, count, min(count, 100_000)))
        for curve in Curve:
            for by, keys in (("bytes", ByteKeys(curve, columns)), ("rank", RankKeys.of_sample(curve, columns, sample))):
                measured.append((", ".join(names), f"{curve}, {by}", files_read(data, keys.of(data), names, files)))
        measured.append((", ".join(names), "as they come", files_read(data, None, names, files)))
    return measured


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=64)
    arguments = parser.parse_args()
    for names, key, read in measure(arguments.rows, arguments.files):
        print(f"{names:20} {key:20} {read:6.1f} of {arguments.files} files")


if __name__ == "__main__":
    main()
