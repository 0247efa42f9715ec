"""Pictures are well-formed, say what they show in words, and hold hostile labels as text."""

from xml.etree import ElementTree

import pytest

from icefloe import metadata as md
from icefloe.catalog import Catalog
from icefloe.ui import charts
from icefloe.ui.charts.svg import nice_ticks, shortened

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '<script>alert("1")</script>&'


def parsed(picture: str) -> ElementTree.Element:
    root = ElementTree.fromstring(picture)
    assert root.tag == f"{SVG}svg"
    return root


def words(root: ElementTree.Element) -> str:
    return " ".join(root.itertext())


PICTURES = {
    "growth": charts.growth_chart(HOSTILE, [charts.Point(1, 10, HOSTILE), charts.Point(90_000_000, 30)]),
    "one point": charts.growth_chart(HOSTILE, [charts.Point(1, 10)]),
    "many points": charts.growth_chart(HOSTILE, [charts.Point(at * 1000, at) for at in range(5000)]),
    "no points": charts.growth_chart(HOSTILE, []),
    "histogram": charts.histogram_chart(HOSTILE, [charts.Bar(HOSTILE, 3), charts.Bar("b", 0)], (1.5, HOSTILE)),
    "no bars": charts.histogram_chart(HOSTILE, []),
    "ranks": charts.rank_chart(HOSTILE, [float(each) for each in range(1000)], shortened, 500),
    "changes": charts.change_chart(HOSTILE, [charts.Bar("", 3, HOSTILE, below=2)]),
    "no changes": charts.change_chart(HOSTILE, [charts.Bar("", 0)]),
    "shares": charts.share_chart(HOSTILE, [charts.Slice("live", 3, "c1"), charts.Slice("old", 1, "c3")]),
    "overlap": charts.overlap_chart(HOSTILE, charts.Overlap([(0, 0.5), (0.4, 1)], [1, 2, 1], 2, 1.5, HOSTILE, "z")),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_well_formed_and_tell_what_they_show(name: str) -> None:
    root = parsed(PICTURES[name])
    assert root.get("role") == "img"
    assert HOSTILE in str(root.get("aria-label"))
    assert {child.tag.removeprefix(SVG) for child in root.iter()} <= {
        "svg",
        "title",
        "text",
        "line",
        "path",
        "rect",
        "circle",
    }
    assert not any(child.get("style") for child in root.iter())
    assert PICTURES[name]._repr_html_() == PICTURES[name].__html__() == str(PICTURES[name])


def test_a_histogram_has_a_column_for_each_bar_as_high_as_its_count() -> None:
    bars = [charts.Bar("a", 10), charts.Bar("b", 5), charts.Bar("c", 0)]
    root = parsed(charts.histogram_chart("sizes", bars, (1.0, "target")))
    heights = [float(str(rect.get("height"))) for rect in root.iter(f"{SVG}rect")]
    assert len(heights) == 2
    assert heights[0] == pytest.approx(2 * heights[1], rel=0.01)
    assert "target" in words(root)


def test_long_histories_are_thinned_and_keep_their_end() -> None:
    root = parsed(PICTURES["many points"])
    assert len(str(PICTURES["many points"])) < 60_000
    assert "5 k now" in str(root.get("aria-label"))


@pytest.mark.parametrize("high", [0.0, 0.3, 1.0, 7.0, 99.0, 12_345.0, 1e12])
@pytest.mark.parametrize("base", [2, 10])
def test_ticks_reach_the_highest_value_and_are_few(high: float, base: int) -> None:
    ticks = nice_ticks(high, base=base)
    assert ticks[0] == 0
    assert ticks[-1] >= high
    assert 2 <= len(ticks) <= 9


def test_the_graph_of_a_history_has_every_snapshot_and_ref(shown_lake: Catalog) -> None:
    metadata = shown_lake.load_table("shop.orders").metadata
    graph = md.SnapshotGraph.of(metadata)
    root = parsed(charts.snapshot_graph(graph))
    nodes = [circle for circle in root.iter(f"{SVG}circle") if circle.get("r") == "5.5"]
    assert len(nodes) == len(metadata.snapshots)
    assert all(f"[{name}]" in words(root) for name in metadata.refs)
    # The branch is drawn beside main, and its line joins it.
    assert len({circle.get("cx") for circle in nodes}) == 2
    assert any(" C" in str(path.get("d")) for path in root.iter(f"{SVG}path"))
