"""The history of a table as a graph: every snapshot once, children before parents, and lines that meet their parents."""

from hypothesis import given, strategies as st

from icefloe.metadata import Snapshot, SnapshotGraph, branch
from icefloe.versions import ALL_VERSIONS
from tests.metadata.tables import new_table

TABLE = new_table(max(ALL_VERSIONS))


@st.composite
def histories(draw: st.DrawFn) -> list[Snapshot]:
    """Snapshots of which each has an earlier parent or none, with any times."""
    count = draw(st.integers(0, 12))
    snapshots = []
    for number in range(1, count + 1):
        parent = draw(st.none() | st.integers(1, number - 1)) if number > 1 else None
        time = draw(st.integers(0, 5))
        snapshots.append(Snapshot(number, time, f"s{number}", parent_snapshot_id=parent, sequence_number=number))
    return snapshots


@given(histories())
def test_lines_of_the_graph_lead_to_parents(snapshots: list[Snapshot]) -> None:
    metadata = TABLE.evolve(snapshots=tuple(snapshots), refs={}, current_snapshot_id=None)
    nodes = SnapshotGraph.of(metadata).nodes
    assert sorted(node.snapshot.snapshot_id for node in nodes) == [each.snapshot_id for each in snapshots]
    # A model that follows the drawing alone: which snapshot each column came from, from top to bottom.
    above: dict[int, int] = {}
    for node in nodes:
        own = node.snapshot.snapshot_id
        ending = [node.lane, *node.joining]
        children = {above.pop(lane) for lane in ending if lane in above}
        assert children == {each.snapshot_id for each in snapshots if each.parent_snapshot_id == own}
        assert node.lanes[node.lane]
        assert not any(node.lanes[lane] for lane in node.joining if lane < len(node.lanes))
        assert {lane for lane, is_used in enumerate(node.lanes) if is_used} == {node.lane, *above}
        if node.parent_id is not None:
            above[node.lane] = own
    assert above == {}


@given(histories(), st.data())
def test_the_graph_of_heads_has_their_ancestors(snapshots: list[Snapshot], data: st.DataObject) -> None:
    metadata = TABLE.evolve(snapshots=tuple(snapshots), refs={}, current_snapshot_id=None)
    heads = data.draw(st.lists(st.sampled_from([each.snapshot_id for each in snapshots] or [99])))
    known = {each.snapshot_id: each.parent_snapshot_id for each in snapshots}
    expected = set()
    for head in heads:
        step: int | None = head
        while step in known:
            expected.add(step)
            step = known[step]
    assert {node.snapshot.snapshot_id for node in SnapshotGraph.of(metadata, heads).nodes} == expected


def test_refs_are_named_main_first() -> None:
    snapshot = Snapshot(1, 0, "s1")
    refs = {"a": branch(1), "main": branch(1)}
    metadata = TABLE.evolve(snapshots=(snapshot,), refs=refs, current_snapshot_id=1)
    [node] = SnapshotGraph.of(metadata).nodes
    assert node.refs == ("main", "a")


def test_a_circle_of_parents_has_an_end() -> None:
    snapshots = tuple(Snapshot(number, 0, "s", parent_snapshot_id=3 - number) for number in (1, 2))
    metadata = TABLE.evolve(snapshots=snapshots, refs={}, current_snapshot_id=None)
    assert len(SnapshotGraph.of(metadata).nodes) == 2
