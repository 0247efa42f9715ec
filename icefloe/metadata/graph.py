"""The history of a table as a graph: snapshots from the newest on, children before parents, each in a lane as in `git log --graph`."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from icefloe.metadata.refs import MAIN_BRANCH
from icefloe.metadata.snapshot import Snapshot
from icefloe.metadata.table import TableMetadata


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A snapshot, and how it is drawn."""

    snapshot: Snapshot
    parent_id: int | None
    """The parent, if it is part of the graph."""
    refs: tuple[str, ...]
    """Branches and tags that point here, `main` first."""
    lane: int
    """Its column."""
    joining: tuple[int, ...]
    """Columns to the right whose lines end here: this snapshot is the parent of the last one in each."""
    lanes: tuple[bool, ...]
    """Of every column, whether a line goes through it or starts in it at this row."""


@dataclass(frozen=True, slots=True)
class SnapshotGraph:
    """Snapshots in the order in which they are drawn."""

    nodes: tuple[GraphNode, ...]

    @staticmethod
    def of(metadata: TableMetadata, heads: Iterable[int] | None = None) -> "SnapshotGraph":
        """The graph of all snapshots that lead to some; of every snapshot that the table has without them."""
        known = metadata.snapshots_by_id
        chosen = set(known) if heads is None else _ancestors(metadata, heads)
        names: dict[int, list[str]] = {}
        for name in sorted(metadata.refs, key=lambda each: (each != MAIN_BRANCH, each)):
            names.setdefault(metadata.refs[name].snapshot_id, []).append(name)
        lanes: list[int | None] = []
        nodes = []
        for snapshot in _ordered([known[each] for each in chosen], metadata.current_snapshot_id):
            parent = snapshot.parent_snapshot_id if snapshot.parent_snapshot_id in chosen else None
            nodes.append(_node(snapshot, parent, tuple(names.get(snapshot.snapshot_id, ())), lanes))
        return SnapshotGraph(tuple(nodes))


def _node(snapshot: Snapshot, parent: int | None, refs: tuple[str, ...], lanes: list[int | None]) -> GraphNode:
    """The next node; `lanes` has the snapshot that each column waits for, and is brought up to date."""
    waiting = [lane for lane, expected in enumerate(lanes) if expected == snapshot.snapshot_id]
    if not waiting:
        free = next((lane for lane, expected in enumerate(lanes) if expected is None), len(lanes))
        lanes[free : free + 1] = [snapshot.snapshot_id]
        waiting = [free]
    lane, *joining = waiting
    for each in joining:
        lanes[each] = None
    shown = tuple(expected is not None for expected in lanes)
    lanes[lane] = parent
    while lanes and lanes[-1] is None:
        lanes.pop()
    return GraphNode(snapshot, parent, refs, lane, tuple(joining), shown)


def _ancestors(metadata: TableMetadata, heads: Iterable[int]) -> set[int]:
    known, reached = metadata.snapshots_by_id, set[int]()
    for head in heads:
        step: int | None = head
        while step is not None and step in known and step not in reached:
            reached.add(step)
            step = known[step].parent_snapshot_id
    return reached


def _ordered(snapshots: list[Snapshot], current: int | None) -> list[Snapshot]:
    """Children before parents, the newer first among those that may come next, and the current one first of equals."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in snapshots}
    children = dict.fromkeys(by_id, 0)
    for snapshot in snapshots:
        if snapshot.parent_snapshot_id in children:
            children[snapshot.parent_snapshot_id] += 1

    def key(snapshot: Snapshot) -> tuple[int, int, bool, int]:
        is_current = snapshot.snapshot_id == current
        return -snapshot.timestamp_ms, -snapshot.sequence_number, not is_current, snapshot.snapshot_id

    ready = [key(snapshot) for snapshot in snapshots if not children[snapshot.snapshot_id]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        snapshot = by_id[heapq.heappop(ready)[-1]]
        ordered.append(snapshot)
        parent = snapshot.parent_snapshot_id
        if parent in children:
            children[parent] -= 1
            if not children[parent]:
                heapq.heappush(ready, key(by_id[parent]))
    # A circle of parents, which no table should have, has no beginning.
    rest = [snapshot for snapshot in snapshots if children[snapshot.snapshot_id] > 0]
    return ordered + sorted(rest, key=key)
