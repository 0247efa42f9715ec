"""`icefloe describe`: summary of a table, view or namespace."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from icefloe import errors, properties as props
from icefloe.catalog import Catalog, TableName as ParsedName, View, parse_namespace, show_table
from icefloe.cli.arguments import TableName
from icefloe.cli.invocation import Invocation, NamedTable, invocation
from icefloe.cli.look.structure import columns, schema_at
from icefloe.cli.output import Output
from icefloe.metadata import MAIN_BRANCH, Snapshot, SnapshotGraph, TableMetadata, summary as totals
from icefloe.partitioning import shown_order, shown_spec
from icefloe.shown import counted, minute, rfc3339, size, utc

_ENTITIES = ("any", "namespace", "table", "view")
_MANY_FILES = 10
_SMALL = 0.25
"""Files are reported as small if their average size is below this fraction of the target size."""


def describe(
    ctx: typer.Context,
    name: TableName,
    entity: Annotated[str, typer.Option(help="Kind of object: any, namespace, table or view.", metavar="KIND")] = "any",
) -> None:
    """Describe a table, view or namespace."""
    if entity not in _ENTITIES:
        raise typer.BadParameter(f"{entity!r} is not one of {', '.join(_ENTITIES)}", param_hint="--entity")
    with invocation(ctx) as run:
        if not _describe(run, name, entity):
            what = "table, view or namespace" if entity == "any" else entity
            raise errors.NoSuchTableError(f"no {what} {name} in catalog {run.catalog_name!r}")


def _describe(run: Invocation, name: str, entity: str) -> bool:
    is_alone = "." not in name and "/" not in name
    if entity in ("any", "table") and not is_alone:
        try:
            _show_table(run, run.table(name))
            return True
        except errors.NoSuchTableError:
            if run.parse(name).location is not None:
                raise
    if entity in ("any", "view") and not is_alone:
        parsed = run.parse(name)
        catalog = run.open_catalog(parsed.catalog or run.catalog_name)
        if _has_view(catalog, parsed):
            _show_view(run, parsed, catalog.load_view(parsed.identifier))
            return True
    if entity in ("any", "namespace"):
        namespace = parse_namespace(name)
        if run.catalog.namespace_exists(namespace):
            properties = run.catalog.load_namespace_properties(namespace)
            record = {"kind": "namespace", "name": show_table(namespace), "properties": properties}
            run.out.record(record, lambda: _property_lines(run.out, f"{name}  namespace", properties))
            return True
    return False


def _has_view(catalog: Catalog, parsed: ParsedName) -> bool:
    try:
        return catalog.view_exists(parsed.identifier)
    except (errors.UnsupportedOperationError, errors.NoSuchNamespaceError):
        return False


def _show_view(run: Invocation, parsed: ParsedName, view: View) -> None:
    metadata = view.metadata
    version = view.version()
    texts = {dialect: view.sql_for(dialect) for dialect in version.dialects}
    record: dict[str, Any] = {
        "kind": "view",
        "name": show_table(parsed.identifier),
        "uuid": metadata.view_uuid,
        "location": metadata.location,
        "sql": texts,
        "columns": columns(view.schema()),
        "properties": dict(metadata.properties),
    }

    def lines() -> Iterator[str]:
        yield run.out.heading(f"{parsed}  view, {metadata.view_uuid}")
        yield f"location     {metadata.location}"
        for dialect, text in texts.items():
            yield f"{dialect:<11}  {text}"
        yield from _column_lines(record["columns"])

    run.out.record(record, lines)


def _property_lines(out: Output, title: str, properties: Mapping[str, str]) -> Iterator[str]:
    yield out.heading(title)
    width = max(map(len, properties), default=0)
    for key, value in sorted(properties.items()):
        yield f"{key:<{width}}  {value}"


# -- tables


def _show_table(run: Invocation, named: NamedTable) -> None:
    table, snapshot = named.table, named.snapshot()
    metadata, shown = table.metadata, schema_at(named)
    record: dict[str, Any] = {
        "kind": "table",
        "name": str(named),
        "format_version": metadata.format_version,
        "uuid": metadata.table_uuid,
        "location": metadata.location,
        "metadata_location": table.metadata_location,
        "current_snapshot_id": None if snapshot is None else snapshot.snapshot_id,
        "last_updated": None if not metadata.last_updated_ms else rfc3339(utc(metadata.last_updated_ms)),  # type: ignore[arg-type]  # not None here
        "last_updated_ms": metadata.last_updated_ms,
        "counts": _counts(snapshot),
        "partitioned": shown_spec(table.spec(), shown),
        "sorted": shown_order(table.sort_order(), shown),
        "refs": {
            name: {"snapshot_id": ref.snapshot_id, "type": str(ref.ref_type)} for name, ref in table.refs().items()
        },
        "columns": columns(shown),
        "properties": dict(metadata.properties),
    }
    run.out.record(record, lambda: _table_lines(run.out, named, snapshot, record))


def _counts(snapshot: Snapshot | None) -> dict[str, int | None]:
    """Return the totals in a snapshot summary; None for missing ones."""
    said = {} if snapshot is None or snapshot.summary is None else snapshot.summary.properties
    keys = {
        "records": totals.TOTAL_RECORDS,
        "data_files": totals.TOTAL_DATA_FILES,
        "delete_files": totals.TOTAL_DELETE_FILES,
        "position_deletes": totals.TOTAL_POSITION_DELETES,
        "equality_deletes": totals.TOTAL_EQUALITY_DELETES,
        "bytes": totals.TOTAL_FILES_SIZE,
    }
    missing = 0 if snapshot is None else None
    return {name: int(said[key]) if key in said else missing for name, key in keys.items()}


def _table_lines(out: Output, named: NamedTable, snapshot: Snapshot | None, record: Mapping[str, Any]) -> Iterator[str]:
    metadata = named.table.metadata
    yield out.heading(f"{named}  table, format v{metadata.format_version}, {metadata.table_uuid}")
    yield f"location     {metadata.location}"
    yield f"rows         {_rows(record['counts'])}"
    yield f"files        {_files(record['counts'], metadata, str(named))}"
    yield f"partitioned  {record['partitioned']}"
    yield f"sorted       {record['sorted']}"
    yield f"refs         {_refs(metadata)}"
    yield f"last change  {_change(snapshot)}"
    yield from _column_lines(record["columns"])
    if metadata.properties:
        yield "properties"
        for key, value in sorted(metadata.properties.items()):
            yield f"  {key} = {value}"


def _column_lines(described: list[dict[str, Any]]) -> Iterator[str]:
    yield "columns"
    width = max((len(each["name"]) for each in described), default=0)
    kind = max((len(each["type"]) for each in described), default=0)
    for each in described:
        more = f"{'required' if each['required'] else '':<8}  {each['doc'] or ''}"
        yield f"  {each['id']:>3}  {each['name']:<{width}}  {each['type']:<{kind}}  {more}".rstrip()


def _rows(counts: Mapping[str, int | None]) -> str:
    records, positions, equalities = counts["records"], counts["position_deletes"], counts["equality_deletes"]
    if records is None:
        return "unknown; run `icefloe count`"
    if equalities:
        return f"{records:,} before {counted(equalities, 'equality delete')}"
    if positions:
        return f"{records - positions:,} live ({positions:,} deleted, {positions / max(records, 1):.1%})"
    return f"{records:,}"


def _files(counts: Mapping[str, int | None], metadata: TableMetadata, name: str) -> str:
    files, total = counts["data_files"], counts["bytes"]
    if files is None:
        return "unknown"
    text = counted(files, "data file")
    if total is not None:
        text += f", {size(total)}"
    if counts["delete_files"]:
        text += f", {counted(counts['delete_files'], 'delete file')}"
    target = props.WRITE_TARGET_FILE_SIZE_BYTES.of(metadata.properties)
    if total is not None and files > _MANY_FILES and total / files < _SMALL * target:
        text += f", {size(total / files)} each (target {size(target)})  ! small files: icefloe doctor {name}"
    return text


def _refs(metadata: TableMetadata) -> str:
    main = _ancestors(metadata, metadata.current_snapshot_id)
    shown = []
    for name, ref in sorted(metadata.refs.items(), key=lambda each: (each[0] != MAIN_BRANCH, each[0])):
        text = f"{'tag ' if ref.is_tag else ''}{name} -> {ref.snapshot_id}"
        if name != MAIN_BRANCH and ref.is_branch:
            own = _ancestors(metadata, ref.snapshot_id)
            text += f" ({len(main - own)} behind, {len(own - main)} ahead)"
        shown.append(text)
    return ", ".join(shown) or "none"


def _ancestors(metadata: TableMetadata, head: int | None) -> set[int]:
    heads = [] if head is None else [head]
    return {node.snapshot.snapshot_id for node in SnapshotGraph.of(metadata, heads).nodes}


def _change(snapshot: Snapshot | None) -> str:
    return "none" if snapshot is None else f"{minute(snapshot.timestamp_ms)}  {change_of(snapshot)}"


def change_of(snapshot: Snapshot) -> str:
    """Summarize the changes of a snapshot."""
    said = {} if snapshot.summary is None else snapshot.summary.properties
    parts = [f"{snapshot.operation or 'unknown'!s:<9}"]
    added, deleted = int(said.get(totals.ADDED_RECORDS, 0)), int(said.get(totals.DELETED_RECORDS, 0))
    marked = int(said.get(totals.ADDED_POSITION_DELETES, 0)) + int(said.get(totals.ADDED_EQUALITY_DELETES, 0))
    if added or deleted or marked:
        parts.append(" ".join(f"{sign}{n:,}" for sign, n in (("+", added), ("-", deleted + marked)) if n) + " rows")
    new, gone = int(said.get(totals.ADDED_DATA_FILES, 0)), int(said.get(totals.DELETED_DATA_FILES, 0))
    if new or gone:
        parts.append(" ".join(f"{sign}{n:,}" for sign, n in (("+", new), ("-", gone)) if n) + " files")
    if deletes := int(said.get(totals.ADDED_DELETE_FILES, 0)):
        parts.append(f"+{counted(deletes, 'delete file')}")
    return "  ".join(parts)
