"""`icefloe du`: what the files of tables take, by what they are for."""

from typing import Any

import typer

from icefloe.cli.arguments import TableOrNamespace
from icefloe.cli.care.tables import chosen_tables
from icefloe.cli.invocation import invocation
from icefloe.shown import size

_KINDS = ("live", "history", "metadata", "unreferenced", "total")


def du(ctx: typer.Context, name: TableOrNamespace = None) -> None:
    """Show what the files of tables take: live, history, metadata, unreferenced."""
    with invocation(ctx) as run:
        rows: list[dict[str, Any]] = []
        for named in chosen_tables(run, name):
            layout = named.table.maintenance.storage_layout()
            row: dict[str, Any] = {"table": str(named)}
            for kind in _KINDS:
                share = getattr(layout, kind)
                row |= {f"{kind}_bytes": share.bytes, f"{kind}_files": share.files}
            rows.append(row)
        shown = [{"table": row["table"], **{kind: size(row[f"{kind}_bytes"]) for kind in _KINDS}} for row in rows]
        run.out.rows(rows, ("table", *_KINDS) if run.options.output == "text" else (), shown)
