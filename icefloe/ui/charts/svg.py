"""SVG building blocks: elements with escaped attributes, scales, axes, and colors that a style sheet may override."""

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
"""Colors by element class, written as attributes: a style sheet can override them, and notebooks need none."""


class Picture(str):
    """An SVG that templates treat as markup and notebooks display."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return str(self)


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """Return an element; None attributes are omitted, underscores become dashes, and `cls` becomes `class`."""
    texts = []
    for key, value in attributes.items():
        if value is not None:
            shown = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
            texts.append(f' {"class" if key == "cls" else key.strip("_").replace("_", "-")}="{escape(shown)}"')
    opened = f"<{name}{''.join(texts)}"
    return f"{opened}>{content}</{name}>" if content else f"{opened}/>"


def painted(name: str, cls: str, content: str = "", /, *, stroke: bool = False, **attributes: object) -> str:
    """Return an element in the color of a class, as fill or stroke."""
    color = COLORS[cls.split()[0]]
    if stroke:
        return element(name, content, cls=f"s-{cls}", stroke=color, fill="none", **attributes)
    return element(name, content, cls=f"f-{cls}", fill=color, **attributes)


def text(x: float, y: float, shown: str, *, anchor: str = "start", cls: str = "text", size: int = 11) -> str:
    """Return a label."""
    return painted("text", cls, escape(shown), x=x, y=y, text_anchor=anchor, font_size=size)


def hint(shown: str) -> str:
    """Return the tooltip of an element."""
    return f"<title>{escape(shown)}</title>"


def picture(width: float, height: float, title: str, parts: Iterable[str], *, decorative: bool = False) -> Picture:
    """Return a complete SVG with a textual description for screen readers."""
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
    """Return the linear function from a value range to a pixel range."""
    low, high = domain
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return target[0] + (value - low) / span * (target[1] - target[0])

    return place


def nice_ticks(high: float, count: int = 4, base: int = 10) -> list[float]:
    """Return round numbers from 0 to at least `high`; powers of two for bytes."""
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
    """Return the indexes of the labels to show if not all fit: the first, then evenly spaced."""
    every = max(1, math.ceil(len(values) / most))
    return list(range(0, len(values), every))


def shortened(count: float) -> str:
    """Format a count in a few characters."""
    for unit, factor in (("", 1.0), (" k", 1e3), (" M", 1e6), (" G", 1e9)):
        if abs(count) < factor * 1000 or unit == " G":
            break
    number = count / factor
    return f"{number:.0f}{unit}" if number >= 100 or number == int(number) else f"{number:.3g}{unit}"
