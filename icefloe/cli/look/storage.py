"""`icefloe du`: disk usage of tables by purpose, by partition, or by branch and tag."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from icefloe.cli.arguments import TableOrNamespace
from icefloe.cli.care.tables import chosen_tables
from icefloe.cli.invocation import NamedTable, invocation
from icefloe.cli.values import json_value
from icefloe.shown import size

_WAYS = ("kind", "partition", "ref")
_SHARES = {
    "kind": ("live", "history", "metadata", "unreferenced", "total"),
    "partition": ("live", "history"),
    "ref": ("all", "alone"),
}


def du(
    ctx: typer.Context,
    name: TableOrNamespace = None,
    by: Annotated[str, typer.Option(help=f"Group by {', '.join(_WAYS[:-1])} or {_WAYS[-1]}.")] = "kind",
) -> None:
    """Show the disk usage of tables: live, history, metadata, unreferenced."""
    if by not in _WAYS:
        raise typer.BadParameter(f"{by!r} is not one of {', '.join(_WAYS)}", param_hint="--by")
    with invocation(ctx) as run:
        rows = [row for named in chosen_tables(run, name) for row in _rows(named, by)]
        shares = _SHARES[by]
        key = () if by == "kind" else (by,)
        shown = [
            {**{name: row[name] for name in ("table", *key)}, **{each: size(row[f"{each}_bytes"]) for each in shares}}
            for row in rows
        ]
        run.out.rows(rows, ("table", *key, *shares) if run.options.output == "text" else (), shown)


def _rows(named: NamedTable, by: str) -> list[dict[str, Any]]:
    maintenance, table = named.table.maintenance, {"table": str(named)}
    match by:
        case "partition":
            parts: list[Any] = maintenance.storage_by_partition()
            return [{**table, by: _partition(each.partition), **_counts(each, by)} for each in parts]
        case "ref":
            return [{**table, by: each.ref, **_counts(each, by)} for each in maintenance.storage_by_ref()]
        case _:
            return [{**table, **_counts(maintenance.storage_layout(), by)}]


def _counts(shares: Any, by: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in _SHARES[by]:
        share = getattr(shares, name)
        counts |= {f"{name}_bytes": share.bytes, f"{name}_files": share.files}
    return counts


def _partition(values: Mapping[str, object]) -> dict[str, Any]:
    return {name: json_value(value) for name, value in values.items()}
