"""Decides how pictures are written: elements with escaped attributes, scales, axes, and colours that a page may override."""

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

COLORS = {
    "c1": "#2a78d6",
    "c2": "#0f8f83",
    "c3": "#b4690e",
    "c4": "#8a5fd0",
    "c5": "#c2417c",
    "good": "#1a8a4a",
    "bad": "#d0453b",
    "plus": "#3fa873",
    "minus": "#de6a5f",
    "soft": "#9fb3c8",
    "axis": "#8496a9",
    "grid": "#dbe3ec",
    "text": "#5a6b7d",
}
"""Colours by the class of an element: attributes, so that a style sheet may say otherwise and a notebook needs none."""


class Picture(str):
    """An SVG, which templates take as markup and notebooks show."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return str(self)


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """An element; attributes of value None are left out, underscores in names are dashes, and `cls` is `class`."""
    texts = []
    for key, value in attributes.items():
        if value is not None:
            shown = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
            texts.append(f' {"class" if key == "cls" else key.strip("_").replace("_", "-")}="{escape(shown)}"')
    opened = f"<{name}{''.join(texts)}"
    return f"{opened}>{content}</{name}>" if content else f"{opened}/>"


def painted(name: str, cls: str, content: str = "", /, *, stroke: bool = False, **attributes: object) -> str:
    """An element in the colour of a class, as fill or as stroke."""
    color = COLORS[cls.split()[0]]
    if stroke:
        return element(name, content, cls=f"s-{cls}", stroke=color, fill="none", **attributes)
    return element(name, content, cls=f"f-{cls}", fill=color, **attributes)


def text(x: float, y: float, shown: str, *, anchor: str = "start", cls: str = "text", size: int = 11) -> str:
    """A label."""
    return painted("text", cls, escape(shown), x=x, y=y, text_anchor=anchor, font_size=size)


def hint(shown: str) -> str:
    """What is told of an element when a pointer rests on it."""
    return f"<title>{escape(shown)}</title>"


def picture(width: float, height: float, title: str, parts: Iterable[str], *, decorative: bool = False) -> Picture:
    """A whole picture, with what it shows in words for those who do not see it."""
    content = "".join(parts)
    if decorative:
        return Picture(
            element(
                "svg",
                content,
                xmlns="http://www.w3.org/2000/svg",
                viewBox=f"0 0 {width:g} {height:g}",
                width=f"{width:g}",
                height=f"{height:g}",
                aria_hidden="true",
            )
        )
    return Picture(
        element(
            "svg",
            f"{hint(title)}{content}",
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width:g} {height:g}",
            role="img",
            aria_label=title,
            cls="chart broad" if width > 800 else "chart",
            font_family="system-ui, sans-serif",
        )
    )


def scale(domain: tuple[float, float], target: tuple[float, float]) -> Callable[[float], float]:
    """A straight line from a range of values to one of places."""
    low, high = domain
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return target[0] + (value - low) / span * (target[1] - target[0])

    return place


def nice_ticks(high: float, count: int = 4, base: int = 10) -> list[float]:
    """Round numbers from 0 to at least `high`; powers of two for bytes."""
    if high <= 0:
        return [0.0, 1.0]
    raw = high / count
    if base == 2:
        step = 2.0 ** math.ceil(math.log2(raw)) if raw > 1 else 1.0
    else:
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
        step = max(step, 1.0)
    return [step * number for number in range(math.ceil(high / step - 1e-9) + 1)]


def thinned(values: Sequence[str], most: int) -> list[int]:
    """The numbers of labels that are shown where not all have room: the first, and then evenly."""
    every = max(1, math.ceil(len(values) / most))
    return list(range(0, len(values), every))


def shortened(count: float) -> str:
    """A count in few letters."""
    for unit, factor in (("", 1.0), (" k", 1e3), (" M", 1e6), (" G", 1e9)):
        if abs(count) < factor * 1000 or unit == " G":
            break
    number = count / factor
    return f"{number:.0f}{unit}" if number >= 100 or number == int(number) else f"{number:.3g}{unit}"
