"""Puts the results that were kept into docs/benchmarks.md, between its markers, with one plot a benchmark: `python -m bench.page`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.report import RESULTS

PROJECT = Path(__file__).parents[1]
PAGE = PROJECT / "docs" / "benchmarks.md"
PLOTS = PROJECT / "docs" / "plots"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
SIZES = ("full", "medium")
"""The small size only shows that a benchmark runs; the largest of the others that was run is told."""


def main() -> None:
    """Write the page and its plots."""
    found = results(RESULTS)
    PLOTS.mkdir(exist_ok=True)
    for result in found:
        plot(result, PLOTS / f"{result['name']}.svg")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    told = "\n\n".join(map(section, found))
    PAGE.write_text(f"{before}{BEGIN}\n\n{told}\n\n{END}{after}")
    print(f"{len(found)} benchmarks in {PAGE.relative_to(PROJECT)}")


def results(folder: Path) -> list[dict[str, Any]]:
    """What was kept of each benchmark, by name."""
    names = sorted({path.stem.rpartition("-")[0] for path in folder.glob("*.json")})
    paths = ([folder / f"{name}-{size}.json" for size in SIZES] for name in names)
    chosen = (next((path for path in each if path.exists()), None) for each in paths)
    return [json.loads(path.read_text()) for path in chosen if path is not None]


def section(result: Mapping[str, Any]) -> str:
    """One benchmark as Markdown."""
    machine = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    lines = [
        f"### {result['name']}",
        "",
        f"Size {result['size']}, {result['when'][:10]}; {machine}.",
        "",
        f"![{result['name']}](plots/{result['name']}.svg)",
        "",
        "| Case | Ours | Peer | Ratio | Goal | | Notes |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *map(_line, result["rows"])])


def _line(row: Mapping[str, Any]) -> str:
    goal = "" if row["goal"] in (None, float("inf")) else f"{row['goal']:.3g}"
    met = "" if not goal else "met" if row["met"] else "**short**"
    times = f"{_seconds(row['ours_seconds'])} | {_seconds(row['theirs_seconds'])}"
    return f"| {row['case']} | {times} | {row['ratio']:.3g} | {goal} | {met} | {row['note'].replace('|', ',')} |"


def _seconds(value: float) -> str:
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def plot(result: Mapping[str, Any], place: Path) -> None:
    """Bars of how often the peer's time ours is, on a logarithmic axis; the line is the peer."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "icefloe", "font.size": 9})
    from matplotlib import pyplot

    rows: Sequence[Mapping[str, Any]] = list(reversed(result["rows"]))
    figure, axes = pyplot.subplots(figsize=(7, 0.6 + 0.28 * len(rows)))
    faster = [1 / row["ratio"] for row in rows]
    colours = ["#2f7ebc" if row["met"] else "#d98032" for row in rows]
    axes.barh([row["case"] for row in rows], [each - 1 for each in faster], left=1, color=colours)
    for place_on_axis, each in enumerate(faster):
        axes.annotate(
            f"{each:.3g}x",
            (each, place_on_axis),
            xytext=(3 if each >= 1 else -3, 0),
            textcoords="offset points",
            va="center",
            ha="left" if each >= 1 else "right",
        )
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.margins(x=0.2)
    axes.set_xlabel("the peer's time over ours: to the right of the line we are faster")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(place, metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    main()
