"""The page of snapshots: history graph, changes of each commit, rollback and tags."""

from starlette.responses import Response

from icefloe import errors, metadata as md
from icefloe.shown import minute
from icefloe.ui.asking import Page, TablePage, pager
from icefloe.ui.charts import Bar, change_chart, lane_cell
from icefloe.ui.figures import change_of, history_of

PAGE_ROWS = 60
_BARS = 60


def snapshots(page: Page) -> Response:
    """Show the history; `of` restricts it to a branch or tag."""
    subject = TablePage.of(page, "snapshots")
    metadata = subject.metadata
    only = page.query("of")
    if only and only not in metadata.refs:
        raise errors.NoSuchSnapshotError(f"no branch or tag {only!r:.200}")
    heads = [metadata.refs[only].snapshot_id] if only else None
    graph = md.SnapshotGraph.of(metadata, heads)
    first = page.number("from")
    shown = graph.nodes[first : first + PAGE_ROWS]
    lanes = max((len(node.lanes) for node in shown), default=1)
    rows = []
    for number, node in enumerate(shown, first):
        above = graph.nodes[number - 1] if number else None
        rows.append((lane_cell(node, above, lanes), node, change_of(node.snapshot)))
    chosen = page.query("snapshot")
    return subject.render(
        "snapshots.html",
        rows=rows,
        first=first,
        total=len(graph.nodes),
        pager=pager(
            first, PAGE_ROWS, len(graph.nodes), lambda start: subject.link("snapshots", of=only, **{"from": start})
        ),
        only=only,
        chart=_chart(metadata),
        chosen=_snapshot(metadata, chosen) if chosen else None,
        current=metadata.current_snapshot_id,
        main=history_of(metadata, metadata.current_snapshot_id),
    )


def _snapshot(metadata: md.TableMetadata, text: str) -> md.Snapshot:
    if not (text.isascii() and text.isdigit()):
        raise errors.InvalidInputError(f"{text!r:.60} is not a snapshot id")
    return metadata.snapshot(int(text))


def _chart(metadata: md.TableMetadata) -> object:
    line = history_of(metadata, metadata.current_snapshot_id)[-_BARS:]
    bars = []
    for each in line:
        change = change_of(each)
        told = f"{minute(each.timestamp_ms)} {each.operation}: {str(change) or 'nothing'}"
        bars.append(Bar("", change.added_rows, told, below=change.removed_rows))
    return change_chart("Changes of rows", bars)


def rollback(page: Page) -> Response:
    """Roll main back to an earlier snapshot."""
    subject = TablePage.of(page, "snapshots")
    target = _snapshot(subject.metadata, page.form.get("snapshot", ""))
    subject.table.manage_snapshots().rollback_to_snapshot(target.snapshot_id).commit()
    return page.go(subject.link("snapshots"))


def tag(page: Page) -> Response:
    """Tag a snapshot."""
    subject = TablePage.of(page, "snapshots")
    target = _snapshot(subject.metadata, page.form.get("snapshot", ""))
    name = page.form.get("name", "").strip()
    if not name:
        raise errors.InvalidInputError("the tag name is missing")
    subject.table.manage_snapshots().create_tag(name, target.snapshot_id).commit()
    return page.go(subject.link("snapshots"))
