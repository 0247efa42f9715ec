"""`icefloe snapshots`, `log` and `refs`: the history of a table."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from icefloe import metadata as md, properties as props
from icefloe.cli.arguments import TableName
from icefloe.cli.invocation import NamedTable, invocation
from icefloe.cli.look.describe import change_of
from icefloe.cli.output import Output
from icefloe.errors import InvalidInputError
from icefloe.shown import minute, utc


def snapshots(ctx: typer.Context, name: TableName) -> None:
    """List the snapshots of a table."""
    with invocation(ctx) as run:
        metadata = run.table(name).table.metadata
        nodes = md.SnapshotGraph.of(metadata).nodes
        rows = [_row(node) for node in sorted(nodes, key=lambda node: node.snapshot.timestamp_ms)]
        shown = [
            {
                "snapshot_id": str(row["snapshot_id"]),
                "parent_id": "-" if row["parent_id"] is None else str(row["parent_id"]),
                "time": minute(row["timestamp_ms"]),
                "operation": row["operation"] or "-",
                "rows": row["summary"].get("total-records", "-"),
                "refs": ", ".join(row["refs"]),
            }
            for row in rows
        ]
        run.out.rows(rows, ("snapshot_id", "parent_id", "time", "operation", "rows", "refs"), shown)


def _row(node: md.GraphNode) -> dict[str, Any]:
    snapshot = node.snapshot
    return {
        "snapshot_id": snapshot.snapshot_id,
        "parent_id": snapshot.parent_snapshot_id,
        "sequence_number": snapshot.sequence_number,
        "timestamp": utc(snapshot.timestamp_ms),
        "timestamp_ms": snapshot.timestamp_ms,
        "operation": snapshot.operation,
        "schema_id": snapshot.schema_id,
        "manifest_list": snapshot.manifest_list,
        "refs": list(node.refs),
        "summary": {} if snapshot.summary is None else dict(snapshot.summary.properties),
    }


def log(
    ctx: typer.Context,
    name: TableName,
    graph: Annotated[
        bool, typer.Option("--graph", help="Draw the history of all branches and tags as a graph.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="Include snapshots that are on no branch or tag.")] = False,
    limit: Annotated[int | None, typer.Option("-n", "--limit", min=1, help="Maximum number of snapshots.")] = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid diagram.")] = False,
) -> None:
    """Show the history of a table, optionally as a graph."""
    with invocation(ctx) as run:
        named = run.table(name)
        metadata = named.table.metadata
        nodes = md.SnapshotGraph.of(metadata, _heads(named, graph or mermaid, everything)).nodes[:limit]
        if mermaid:
            run.out.lines(_mermaid(nodes))
        elif run.options.output == "text":
            run.out.lines(_drawn(run.out, metadata, nodes, graph))
        else:
            run.out.rows([{**_row(node), "lane": node.lane} for node in nodes])


def _heads(named: NamedTable, of_all_refs: bool, everything: bool) -> list[int] | None:
    if everything:
        return None
    snapshot = named.snapshot()
    heads = [] if snapshot is None else [snapshot.snapshot_id]
    if of_all_refs and named.name.version is None:
        heads += [ref.snapshot_id for ref in named.table.refs().values()]
    return heads


def _drawn(out: Output, metadata: md.TableMetadata, nodes: tuple[md.GraphNode, ...], with_lanes: bool) -> Iterator[str]:
    for node in nodes:
        if with_lanes and node.joining:
            yield _joining(node)
        lanes = _lanes(node) if with_lanes else "*"
        text = f"{minute(node.snapshot.timestamp_ms)}  {change_of(node.snapshot)}"
        yield f"{lanes} {out.colored(str(node.snapshot.snapshot_id), 'yellow')}  {text}{_names(out, metadata, node)}".rstrip()


def _lanes(node: md.GraphNode) -> str:
    marks = ("*" if lane == node.lane else "|" if is_used else " " for lane, is_used in enumerate(node.lanes))
    return " ".join(marks).rstrip()


def _joining(node: md.GraphNode) -> str:
    """Return the line in which lanes on the right join the lane of their parent."""
    width = 2 * max(*node.joining, len(node.lanes) - 1) + 1
    row = [" "] * width
    for lane, is_used in enumerate(node.lanes):
        if is_used:
            row[2 * lane] = "|"
    for lane in node.joining:
        row[2 * lane - 1] = "/"
        for column in range(2 * node.lane + 1, 2 * lane - 1):
            row[column] = "_" if row[column] == " " else row[column]
    return "".join(row).rstrip()


def _names(out: Output, metadata: md.TableMetadata, node: md.GraphNode) -> str:
    shown = [f"tag: {name}" if metadata.refs[name].is_tag else name for name in node.refs]
    return f"  {out.colored('(' + ', '.join(shown) + ')', 'cyan')}" if shown else ""


def _mermaid(nodes: tuple[md.GraphNode, ...]) -> Iterator[str]:
    yield "flowchart BT"
    for node in nodes:
        change = " ".join(change_of(node.snapshot).split())
        refs = f"<br/>{', '.join(node.refs)}" if node.refs else ""
        label = f"{node.snapshot.snapshot_id}<br/>{change}{refs}".replace('"', "#quot;")
        yield f'  s{node.snapshot.snapshot_id}["{label}"]'
        if node.parent_id is not None and any(other.snapshot.snapshot_id == node.parent_id for other in nodes):
            yield f"  s{node.parent_id} --> s{node.snapshot.snapshot_id}"


def refs(ctx: typer.Context, name: TableName) -> None:
    """List branches and tags."""
    _show_refs(ctx, name, None)


def list_refs(
    ctx: typer.Context,
    name: TableName,
    kind: Annotated[str | None, typer.Option("--type", help="Only refs of this type: branch or tag.")] = None,
    verbose: Annotated[str | None, typer.Option("--verbose", hidden=True)] = None,  # noqa: ARG001 - accepted for PyIceberg, where it has no effect either
) -> None:
    """List branches and tags (PyIceberg's name for refs)."""
    _show_refs(ctx, name, kind)


def _show_refs(ctx: typer.Context, name: str, kind: str | None) -> None:
    if kind is not None and kind.lower() not in ("branch", "tag"):
        raise InvalidInputError(f"--type must be branch or tag, not {kind!r}")
    with invocation(ctx) as run:
        table = run.table(name).table
        rows = [
            _ref(name, ref, table.properties)
            for name, ref in sorted(table.refs().items(), key=lambda each: (each[0] != md.MAIN_BRANCH, each[0]))
            if kind is None or str(ref.ref_type) == kind.lower()
        ]
        shown = [{**row, "snapshot_id": str(row["snapshot_id"])} for row in rows]
        run.out.rows(rows, ("name", "type", "snapshot_id", *_RETENTION), shown)


_RETENTION = ("max_ref_age_ms", "min_snapshots_to_keep", "max_snapshot_age_ms")


def _ref(name: str, ref: md.SnapshotRef, properties: props.Properties) -> dict[str, Any]:
    """Return a ref with its effective retention: its own, or that of the table."""
    defaults = md.retention_defaults(properties)
    row: dict[str, Any] = {"name": name, "type": str(ref.ref_type), "snapshot_id": ref.snapshot_id}
    row["max_ref_age_ms"] = ref.max_ref_age_ms
    row["min_snapshots_to_keep"] = None
    row["max_snapshot_age_ms"] = None
    if ref.is_branch:
        row["min_snapshots_to_keep"] = ref.min_snapshots_to_keep or defaults.min_snapshots_to_keep
        row["max_snapshot_age_ms"] = ref.max_snapshot_age_ms or defaults.max_snapshot_age_ms
    return row
