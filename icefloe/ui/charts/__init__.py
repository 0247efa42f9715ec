"""Charts as SVG: pure functions of numbers, for the web page and notebooks."""

from icefloe.ui.charts.areas import Point, growth_chart
from icefloe.ui.charts.bars import Bar, Slice, change_chart, histogram_chart, rank_chart, share_chart
from icefloe.ui.charts.graph import lane_cell, snapshot_graph
from icefloe.ui.charts.overlap import Overlap, overlap_chart
from icefloe.ui.charts.svg import Picture
