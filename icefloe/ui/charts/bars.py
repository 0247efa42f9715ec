"""Bar charts: histograms, ranks, changes, and shares of a whole."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from icefloe.ui.charts.svg import (
    Picture,
    element,
    hint,
    nice_ticks,
    painted,
    picture,
    scale,
    shortened,
    text,
    thinned,
)

WIDTH, HEIGHT = 1100.0, 230.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 10.0, 26.0, 30.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: label, height and tooltip."""

    label: str
    value: float
    told: str = ""
    cls: str = "c1"
    below: float = 0.0
    """Height below the axis."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a whole."""

    label: str
    value: float
    cls: str
    told: str = ""


def histogram_chart(title: str, bars: Sequence[Bar], mark: tuple[float, str] | None = None) -> Picture:
    """Draw a histogram, with an optional mark at a position counted in bars."""
    if not bars:
        return _nothing(title)
    ticks = nice_ticks(max(bar.value for bar in bars))
    y = scale((0, ticks[-1]), (HEIGHT - _BOTTOM, _TOP))
    step = (WIDTH - _LEFT - _RIGHT) / len(bars)
    parts = _grid(ticks, y, shortened)
    labelled = set(thinned([bar.label for bar in bars], 14))
    for number, bar in enumerate(bars):
        left = _LEFT + number * step
        height = max(y(0) - y(bar.value), 1.5 if bar.value else 0)
        if bar.value:
            parts.append(
                painted(
                    "rect",
                    bar.cls,
                    hint(bar.told or f"{bar.label}: {shortened(bar.value)}"),
                    x=left + step * 0.08,
                    y=y(0) - height,
                    width=step * 0.84,
                    height=height,
                    rx=min(3.0, step / 6),
                )
            )
            if len(bars) <= 24:
                parts.append(text(left + step / 2, y(0) - height - 5, shortened(bar.value), anchor="middle", size=10))
        if number in labelled:
            parts.append(text(left + step / 2, HEIGHT - 12, bar.label, anchor="middle"))
    if mark is not None:
        place, label = mark
        at = _LEFT + min(max(place, 0), len(bars)) * step
        parts.append(
            painted(
                "line",
                "bad",
                stroke=True,
                x1=at,
                x2=at,
                y1=_TOP - 10,
                y2=y(0),
                stroke_dasharray="4 3",
                stroke_width=1.5,
            )
        )
        anchor = "end" if at > WIDTH / 2 else "start"
        parts.append(text(at + (-6 if anchor == "end" else 6), _TOP - 8, label, anchor=anchor, cls="bad"))
    total = sum(bar.value for bar in bars)
    top = max(bars, key=lambda bar: bar.value)
    return picture(WIDTH, HEIGHT, f"{title}: {shortened(total)} in all, most at {top.label}", parts)


def rank_chart(title: str, values: Sequence[float], unit: Callable[[float], str], median: float) -> Picture:
    """Draw values in descending order, with their median: a steep left side means skew."""
    if not values:
        return _nothing(title)
    ordered = sorted(values, reverse=True)
    most = 160
    if len(ordered) > most:
        every = len(ordered) / most
        ordered = [ordered[int(number * every)] for number in range(most)]
    y = scale((0, max(ordered[0], 1)), (HEIGHT - _BOTTOM, _TOP))
    step = (WIDTH - _LEFT - _RIGHT) / len(ordered)
    ticks = [0.0, ordered[0] / 2, ordered[0]]
    parts = _grid(ticks, y, unit)
    for number, value in enumerate(ordered):
        height = max(y(0) - y(value), 1.0)
        parts.append(
            painted(
                "rect",
                "c2",
                hint(unit(value)),
                x=_LEFT + number * step,
                y=y(0) - height,
                width=max(step * 0.9, 0.8),
                height=height,
            )
        )
    parts.append(
        painted(
            "line", "bad", stroke=True, x1=_LEFT, x2=WIDTH - _RIGHT, y1=y(median), y2=y(median), stroke_dasharray="4 3"
        )
    )
    parts.append(text(WIDTH - _RIGHT, y(median) - 5, f"median {unit(median)}", anchor="end", cls="bad"))
    parts.append(text(_LEFT, HEIGHT - 12, "largest"))
    parts.append(text(WIDTH - _RIGHT, HEIGHT - 12, "smallest", anchor="end"))
    return picture(WIDTH, HEIGHT, f"{title}: the largest is {unit(max(values))}, the median {unit(median)}", parts)


def change_chart(title: str, bars: Sequence[Bar]) -> Picture:
    """Draw what each commit added, upwards, and removed, downwards."""
    if not any(bar.value or bar.below for bar in bars):
        return _nothing(title, "no rows were added or removed")
    high, low = max(bar.value for bar in bars), max(bar.below for bar in bars)
    top, bottom = nice_ticks(high, 3)[-1] if high else 0.0, nice_ticks(low, 3)[-1] if low else 0.0
    y = scale((-bottom, top), (HEIGHT - 14, 14))
    step = (WIDTH - _LEFT - _RIGHT) / max(len(bars), 30)
    parts = _grid(sorted({-bottom, 0.0, top}), y, lambda value: shortened(abs(value)))
    for number, bar in enumerate(bars):
        left, width = _LEFT + number * step + step * 0.12, step * 0.76
        if bar.value:
            parts.append(
                painted(
                    "rect",
                    "plus",
                    hint(bar.told),
                    x=left,
                    y=y(bar.value),
                    width=width,
                    height=max(y(0) - y(bar.value), 1.5),
                    rx=2,
                )
            )
        if bar.below:
            parts.append(
                painted(
                    "rect",
                    "minus",
                    hint(bar.told),
                    x=left,
                    y=y(0),
                    width=width,
                    height=max(y(-bar.below) - y(0), 1.5),
                    rx=2,
                )
            )
    parts.append(painted("line", "axis", stroke=True, x1=_LEFT, x2=WIDTH - _RIGHT, y1=y(0), y2=y(0)))
    return picture(WIDTH, HEIGHT, f"{title}: rows added and removed by the last {len(bars)} commits", parts)


def share_chart(title: str, slices: Sequence[Slice]) -> Picture:
    """Draw the parts of a whole as one stacked bar."""
    total = sum(each.value for each in slices)
    if not total:
        return _nothing(title)
    width, left, parts = WIDTH, 0.0, []
    for each in slices:
        length = each.value / total * width
        if length:
            parts.append(
                painted(
                    "rect",
                    each.cls,
                    hint(each.told or each.label),
                    x=left,
                    y=0,
                    width=max(length - 2, 1.0),
                    height=26,
                    rx=3,
                )
            )
            if length > 90:
                parts.append(
                    element(
                        "text",
                        f"{each.label} {each.value / total:.0%}",
                        x=left + 8,
                        y=17.5,
                        font_size=12,
                        fill="#ffffff",
                        cls="on-bar",
                    )
                )
        left += length
    words = ", ".join(f"{each.label} {each.value / total:.0%}" for each in slices)
    return picture(width, 26, f"{title}: {words}", parts)


def _grid(ticks: Sequence[float], y: Callable[[float], float], unit: Callable[[float], str]) -> list[str]:
    parts = []
    for tick in ticks:
        parts.append(painted("line", "grid", stroke=True, x1=_LEFT, x2=WIDTH - _RIGHT, y1=y(tick), y2=y(tick)))
        parts.append(text(_LEFT - 6, y(tick) + 4, unit(tick), anchor="end"))
    return parts


def _nothing(title: str, why: str = "nothing to show") -> Picture:
    return picture(WIDTH, 60, f"{title}: {why}", [text(WIDTH / 2, 34, why, anchor="middle")])
