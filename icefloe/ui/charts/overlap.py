"""Chart of overlapping file bounds: the ranges of a sample of files, and the number of files that may hold a value."""

from collections.abc import Sequence
from dataclasses import dataclass

from icefloe.ui.charts.svg import Picture, hint, nice_ticks, painted, picture, scale, shortened, text

WIDTH = 1100.0
_LEFT, _RIGHT = 58.0, 10.0
_RANGES, _GAP, _DEPTH = 150.0, 26.0, 110.0


@dataclass(frozen=True, slots=True)
class Overlap:
    """Ranges scaled to 0..1, and the number of ranges at evenly spaced points."""

    ranges: Sequence[tuple[float, float]]
    """Ranges of a sample of files, ordered by lower bound."""
    depths: Sequence[int]
    files: int
    mean_depth: float
    """Number of files that may hold a value, on average over the files."""
    first: str
    last: str


def overlap_chart(title: str, overlap: Overlap) -> Picture:
    """Draw ranges above and depth below."""
    x = scale((0, 1), (_LEFT, WIDTH - _RIGHT))
    parts = []
    step = _RANGES / max(len(overlap.ranges), 1)
    thickness = min(max(step * 0.7, 0.8), 6.0)
    for number, (low, high) in enumerate(overlap.ranges):
        width = max(x(high) - x(low), 1.5)
        parts.append(
            painted(
                "rect",
                "c1",
                x=x(low),
                y=10 + number * step,
                width=width,
                height=thickness,
                rx=min(thickness / 2, 2),
                fill_opacity=0.85,
            )
        )
    base, top = 10 + _RANGES + _GAP + _DEPTH, 10 + _RANGES + _GAP
    ticks = nice_ticks(max(overlap.depths, default=1), 3)
    y = scale((0, ticks[-1]), (base, top))
    for tick in ticks:
        parts.append(painted("line", "grid", stroke=True, x1=_LEFT, x2=WIDTH - _RIGHT, y1=y(tick), y2=y(tick)))
        parts.append(text(_LEFT - 6, y(tick) + 4, shortened(tick), anchor="end"))
    parts += _depth(overlap.depths, x, y, base)
    parts.append(text(_LEFT, 10 + _RANGES + 15, _sampled(overlap)))
    parts.append(text(_LEFT, base + 18, overlap.first))
    parts.append(text(WIDTH - _RIGHT, base + 18, overlap.last, anchor="end"))
    told = f"{title}: {overlap.files:,} files; a value may be in {overlap.mean_depth:.1f} of them on average"
    return picture(WIDTH, base + 26, told, parts)


def _sampled(overlap: Overlap) -> str:
    shown = len(overlap.ranges)
    which = "ranges of all files" if shown == overlap.files else f"ranges of {shown} of {overlap.files:,} files"
    return f"above: {which}; below: number of files that may hold a value"


def _depth(depths: Sequence[int], x: object, y: object, base: float) -> list[str]:
    assert callable(x)
    assert callable(y)
    count = max(len(depths), 1)
    corners = [
        f"{x(number / count):.1f},{y(depth):.1f} {x((number + 1) / count):.1f},{y(depth):.1f}"
        for number, depth in enumerate(depths)
    ]
    path = f"M{x(0):.1f},{base:g} L{' L'.join(corners)} L{x(1):.1f},{base:g} Z"
    return [painted("path", "c3", hint(f"at most {max(depths, default=0):,} files"), d=path, fill_opacity=0.75)]
