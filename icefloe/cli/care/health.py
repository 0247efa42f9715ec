"""`icefloe doctor` and `icefloe verify`: table health and consistency."""

from typing import Annotated, Any

import typer

from icefloe import properties as props
from icefloe.cli import exits
from icefloe.cli.arguments import TableOrNamespace
from icefloe.cli.care.tables import chosen_tables
from icefloe.cli.invocation import Invocation, NamedTable, invocation, listener
from icefloe.maintenance import REMEDIES


def doctor(ctx: typer.Context, name: TableOrNamespace = None) -> None:
    """Diagnose tables and suggest a command for each finding."""
    with invocation(ctx) as run:
        rows = [row for named in chosen_tables(run, name) for row in _findings(run, named)]
        # In text format a healthy table has only its status; JSON has null.
        shown = [{name: "" if value is None else value for name, value in row.items()} for row in rows]
        run.out.rows(
            shown if run.options.output == "markdown" else rows,
            ("table", "status", "finding", "reason", "command"),
            shown,
        )
        if any(row["status"] == "WARN" for row in rows):
            raise typer.Exit(exits.FINDINGS)


def _findings(run: Invocation, named: NamedTable) -> list[dict[str, Any]]:
    # Health can also be checked for tables on which automatic maintenance is disabled.
    policy = {props.MAINTENANCE_ENABLED.key: True}
    plan = named.table.maintenance.maintain(policy, dry_run=True, progress=listener(run))
    rows = []
    for decision in plan.decisions:
        if decision.is_due and decision.step in REMEDIES:
            remedy = REMEDIES[decision.step]
            rows.append(_row(named, "WARN", remedy.finding, decision.reason, remedy.command(str(named))))
    return rows or [_row(named, "OK", None, None, None)]


def _row(
    named: NamedTable, status: str, finding: str | None, reason: str | None, command: str | None
) -> dict[str, Any]:
    return {"table": str(named), "status": status, "finding": finding, "reason": reason, "command": command}


def verify(
    ctx: typer.Context,
    name: TableOrNamespace = None,
    level: Annotated[str, typer.Option(help="How deep to check: metadata, files, footers or data.")] = "footers",
    sample: Annotated[float, typer.Option(help="Fraction of files to open.", min=0, max=1)] = 1.0,
) -> None:
    """Check tables for consistency, from metadata to rows."""
    with invocation(ctx) as run:
        rows = [row for named in chosen_tables(run, name) for row in _checked(run, named, level, sample)]
        run.out.rows(rows, ("table", "severity", "code", "message", "location", "snapshot_id"))
        if rows:
            raise typer.Exit(exits.FINDINGS)


def _checked(run: Invocation, named: NamedTable, level: str, sample: float) -> list[dict[str, Any]]:
    snapshot = named.snapshot() if named.at else None
    report = named.table.verify(
        None if snapshot is None else snapshot.snapshot_id, level=level, sample=sample, progress=listener(run)
    )
    done = report.figures
    run.say(f"{named}: {'clean' if report.clean else 'findings'} ({done.snapshots} snapshots, {done.files} files)")
    return [
        {
            "table": str(named),
            "severity": str(finding.severity),
            "code": str(finding.code),
            "message": finding.message,
            "location": finding.location,
            "snapshot_id": finding.snapshot_id,
        }
        for finding in report.findings
    ]
