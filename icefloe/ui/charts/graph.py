"""History graphs: snapshots in lanes, as table cells or as one picture."""

from collections.abc import Sequence

from icefloe.metadata import GraphNode, SnapshotGraph
from icefloe.shown import minute
from icefloe.ui.charts.svg import Picture, element, painted, picture, text

ROW = 44.0
LANE = 20.0
_LANES = ("c1", "c3", "c4", "c5", "c2")


def lane_cell(node: GraphNode, before: GraphNode | None, lanes: int) -> Picture:
    """Draw the lanes of one row of the history; `before` is the row above."""
    return picture(max(lanes, 1) * LANE, ROW, "", _row(node, before, 0.0), decorative=True)


def snapshot_graph(graph: SnapshotGraph) -> Picture:
    """Draw the whole history with labels, for notebooks and documents."""
    nodes = graph.nodes
    lanes = max((len(node.lanes) for node in nodes), default=1)
    parts, above = [], None
    for number, node in enumerate(nodes):
        top = number * ROW
        parts += _row(node, above, top)
        refs = "".join(f"  [{ref}]" for ref in node.refs)
        words = f"{minute(node.snapshot.timestamp_ms)}  {node.snapshot.operation or ''}{refs}"
        parts.append(text(lanes * LANE + 12, top + ROW / 2 + 4, words, size=12))
        above = node
    title = f"history of {len(nodes)} snapshots"
    return picture(lanes * LANE + 420, max(len(nodes), 1) * ROW, title, parts)


def _row(node: GraphNode, before: GraphNode | None, top: float) -> list[str]:
    middle, bottom = top + ROW / 2, top + ROW
    parts = []
    through = _open_lanes(before)
    for lane in through:
        x, cls = _x(lane), _LANES[lane % len(_LANES)]
        if lane == node.lane:
            parts.append(_line(cls, f"M{x:g},{top:g} L{x:g},{middle:g}"))
        elif lane in node.joining:
            to = _x(node.lane)
            parts.append(_line(cls, f"M{x:g},{top:g} C{x:g},{middle:g} {x:g},{middle:g} {to:g},{middle:g}"))
        else:
            parts.append(_line(cls, f"M{x:g},{top:g} L{x:g},{bottom:g}"))
    x, cls = _x(node.lane), _LANES[node.lane % len(_LANES)]
    if node.parent_id is not None:
        parts.append(_line(cls, f"M{x:g},{middle:g} L{x:g},{bottom:g}"))
    elif node.snapshot.parent_snapshot_id is not None:
        # Its parent has expired.
        parts.append(_line(cls, f"M{x:g},{middle:g} L{x:g},{bottom:g}", dashes="2 4"))
    parts.append(painted("circle", cls, cx=x, cy=middle, r=5.5))
    if node.refs:
        parts.append(element("circle", cx=x, cy=middle, r=2.5, fill="#ffffff", cls="on-bar"))
    return parts


def _open_lanes(node: GraphNode | None) -> Sequence[int]:
    """Return the lanes whose lines continue to the row below."""
    if node is None:
        return ()
    return [
        lane
        for lane, is_open in enumerate(node.lanes)
        if is_open and lane not in node.joining and (lane != node.lane or node.parent_id is not None)
    ]


def _line(cls: str, path: str, dashes: str | None = None) -> str:
    return painted("path", cls, stroke=True, d=path, stroke_width=2, stroke_dasharray=dashes)


def _x(lane: int) -> float:
    return lane * LANE + LANE / 2
