"""Step charts of a number over time, with the area below filled."""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from icefloe.ui.charts.svg import Picture, hint, nice_ticks, painted, picture, scale, shortened, text

WIDTH, HEIGHT = 420.0, 170.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 10.0, 14.0, 26.0
_MOST = 300


@dataclass(frozen=True, slots=True)
class Point:
    """A value that holds from a point in time."""

    at_ms: int
    value: float
    label: str = ""


def growth_chart(
    title: str, points: Sequence[Point], cls: str = "c1", unit: Callable[[float], str] = shortened, base: int = 10
) -> Picture:
    """Draw the course of a total over commits."""
    shown = _thinned(points)
    if not shown:
        return picture(
            WIDTH, HEIGHT, f"{title}: no commits yet", [text(WIDTH / 2, HEIGHT / 2, "no commits yet", anchor="middle")]
        )
    ticks = nice_ticks(max(each.value for each in shown), base=base)
    first, last = shown[0].at_ms, shown[-1].at_ms
    x = scale((first, last if last > first else first + 1), (_LEFT, WIDTH - _RIGHT))
    y = scale((0, ticks[-1]), (HEIGHT - _BOTTOM, _TOP))
    parts = [*_grid(ticks, y, unit), *_dates(first, last, x)]
    path = _steps(shown, x, y)
    parts.append(
        painted(
            "path",
            cls,
            d=f"M{_LEFT:g},{y(0):.1f} {path.replace('M', 'L', 1)} L{WIDTH - _RIGHT:g},{y(0):.1f} Z",
            fill_opacity=0.16,
        )
    )
    parts.append(painted("path", cls, d=path, stroke=True, stroke_width=2, stroke_linejoin="round"))
    dots = shown if len(shown) <= 40 else shown[-1:]
    radius = 3 if len(dots) > 1 else 4
    parts += [
        painted("circle", cls, hint(each.label or unit(each.value)), cx=x(each.at_ms), cy=y(each.value), r=radius)
        for each in dots
    ]
    told = f"{title}: {unit(shown[0].value)} at first, {unit(shown[-1].value)} now, over {len(points)} commits"
    return picture(WIDTH, HEIGHT, told, parts)


def _steps(points: Sequence[Point], x: Callable[[float], float], y: Callable[[float], float]) -> str:
    parts = [f"M{x(points[0].at_ms):.1f},{y(points[0].value):.1f}"]
    for before, after in pairwise(points):
        parts.append(f"L{x(after.at_ms):.1f},{y(before.value):.1f} L{x(after.at_ms):.1f},{y(after.value):.1f}")
    if len(points) == 1:
        parts.append(f"L{WIDTH - _RIGHT:g},{y(points[0].value):.1f}")
    return " ".join(parts)


def _grid(ticks: Sequence[float], y: Callable[[float], float], unit: Callable[[float], str]) -> list[str]:
    parts = []
    for tick in ticks:
        parts.append(painted("line", "grid", stroke=True, x1=_LEFT, x2=WIDTH - _RIGHT, y1=y(tick), y2=y(tick)))
        parts.append(text(_LEFT - 6, y(tick) + 4, unit(tick), anchor="end"))
    return parts


def _dates(first: int, last: int, x: Callable[[float], float]) -> list[str]:
    span = last - first
    form = "%H:%M:%S" if span < 600_000 else "%d %b %H:%M" if span < 2 * 86_400_000 else "%d %b %Y"
    places = [(first, "start")] if first == last else [(first, "start"), ((first + last) // 2, "middle"), (last, "end")]
    return [text(x(at), HEIGHT - 8, _date(at, form), anchor=anchor) for at, anchor in places]


def _date(at_ms: int, form: str) -> str:
    return dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC).strftime(form)


def _thinned(points: Sequence[Point]) -> list[Point]:
    if len(points) <= _MOST:
        return list(points)
    every = len(points) / _MOST
    return [*(points[int(number * every)] for number in range(_MOST)), points[-1]]
