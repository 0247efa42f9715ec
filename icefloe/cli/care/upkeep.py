"""`icefloe maintain`, `compact`, `expire-snapshots` and the other maintenance commands, all with --dry-run."""

import datetime as dt
from typing import Annotated, Any

import typer

from icefloe import properties as props
from icefloe.cli import exits
from icefloe.cli.arguments import Branch, ChangedTable, Columns, DryRun, TableOrNamespace, Where, pairs, selected
from icefloe.cli.asking import confirm
from icefloe.cli.care.tables import chosen_tables, counts
from icefloe.cli.invocation import Invocation, invocation, listener
from icefloe.cli.moments import duration, moment
from icefloe.errors import InvalidInputError
from icefloe.shown import counted, size

_PARTS = {
    "compact": props.MAINTENANCE_REWRITE,
    "deletes": props.MAINTENANCE_DELETES,
    "manifests": props.MAINTENANCE_MANIFESTS,
    "expire": props.MAINTENANCE_EXPIRE,
    "statistics": props.MAINTENANCE_STATISTICS,
    "orphans": props.MAINTENANCE_ORPHANS,
}
_KINDS = ("all", "equality", "position", "dangling")
OlderThan = Annotated[str | None, typer.Option(help="A time, or an age such as 7d.", metavar="TIME|AGE")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", help="Option with the name that Java Iceberg uses; may be repeated.", metavar="KEY=VALUE"),
]


def maintain(
    ctx: typer.Context,
    name: TableOrNamespace = None,
    go: Annotated[bool, typer.Option("--run", help="Run the plan instead of showing it.")] = False,
    plan: Annotated[bool, typer.Option("--plan", "--dry-run", help="Show the plan (default).")] = False,
    only: Annotated[str | None, typer.Option(help=f"Comma-separated list of {', '.join(_PARTS)}.")] = None,
    budget: Annotated[int | None, typer.Option(help="Maximum bytes of data files to rewrite.", min=0)] = None,
    max_time: Annotated[
        str | None, typer.Option(help="Start no further step after this time, such as 30m.", metavar="AGE")
    ] = None,
) -> None:
    """Run the maintenance that tables need, based on their health."""
    if go and plan:
        raise typer.BadParameter("--run and --plan are mutually exclusive")
    with invocation(ctx) as run:
        policy = _policy(only)
        if go:
            confirm(run, f"Maintain {name or 'all tables'}? Expired snapshots are removed permanently.")
        rows, code = [], exits.DONE
        span = None if max_time is None else dt.timedelta(milliseconds=duration(max_time))
        end = None if span is None else dt.datetime.now() + span
        for named in chosen_tables(run, name):
            planned = named.table.maintenance.maintain(policy, budget, dry_run=True, progress=listener(run))
            if not go:
                rows += [
                    {"table": str(named), "step": str(each.step), "due": each.is_due, "reason": each.reason}
                    for each in planned.decisions
                ]
                continue
            left = None if end is None else max(end - dt.datetime.now(), dt.timedelta(microseconds=1))
            report = planned.run(progress=listener(run), max_time=left)
            code = max(code, report.exit_code)
            rows += [
                {
                    "table": str(named),
                    "step": str(step.step),
                    "outcome": str(step.outcome),
                    "reason": step.error or step.reason,
                    "seconds": round(step.seconds, 3),
                    "bytes": step.bytes,
                }
                for step in report.steps
            ]
        run.out.rows(rows)
        if code:
            raise typer.Exit(exits.FINDINGS)


def _policy(only: str | None) -> dict[str, object] | None:
    if only is None:
        return None
    wanted = {each.strip() for each in only.split(",")}
    if unknown := sorted(wanted - _PARTS.keys()):
        raise InvalidInputError(f"--only does not accept {unknown[0]!r}; use any of {', '.join(_PARTS)}")
    return {known.key: part in wanted for part, known in _PARTS.items()}


def compact(
    ctx: typer.Context,
    name: ChangedTable,
    where: Where = None,
    strategy: Annotated[str | None, typer.Option(help="Strategy: binpack or sort.")] = None,
    sort_order: Annotated[str | None, typer.Option(help="Sort order, such as 'ts desc, id'.")] = None,
    options: Options = None,
    branch: Branch = None,
    dry_run: DryRun = False,
) -> None:
    """Merge small data files, split large ones, and apply deletes."""
    with invocation(ctx) as run:
        maintenance = run.changed_table(name).maintenance
        plan = maintenance.rewrite_data_files(strategy, sort_order, where, pairs(options), branch, dry_run=True)
        if dry_run:
            files = sum(len(group.files) for group in plan.groups)
            total = sum(group.size_in_bytes for group in plan.groups)
            after = sum(group.expected_files for group in plan.groups)
            record = {"dry_run": True, "groups": len(plan.groups), "files": files, "bytes": total, "files_after": after}
            text = f"{counted(files, 'file')} of {size(total)} in {counted(len(plan.groups), 'group')} would become {after}"
            run.out.record(record, lambda: [text])
            return
        done = maintenance.rewrite_data_files(
            strategy, sort_order, where, pairs(options), branch, progress=listener(run)
        )
        record = {name: value for name, value in counts(done).items() if name != "groups"}
        run.out.record(record, lambda: str(done).splitlines()[:1])


def rewrite_deletes(
    ctx: typer.Context,
    name: ChangedTable,
    kind: Annotated[str, typer.Option(help=f"Kind of deletes: {', '.join(_KINDS)}.")] = "all",
    where: Where = None,
    branch: Branch = None,
    dry_run: DryRun = False,
) -> None:
    """Convert equality deletes to position deletes, rewrite position deletes, and remove dangling deletes."""
    if kind not in _KINDS:
        raise typer.BadParameter(f"{kind!r} is not one of {', '.join(_KINDS)}", param_hint="--kind")
    with invocation(ctx) as run:
        maintenance = run.changed_table(name).maintenance
        record: dict[str, Any] = {"dry_run": dry_run}
        lines = []
        for each in ("equality", "position", "dangling") if kind == "all" else (kind,):
            result: Any
            match each:
                case "equality":
                    result = maintenance.convert_equality_deletes(  # type: ignore[call-overload]  # a plan or a result
                        where, branch=branch, dry_run=dry_run, progress=listener(run)
                    )
                case "position":
                    result = maintenance.rewrite_position_delete_files(  # type: ignore[call-overload]  # a plan or a result
                        where=where, branch=branch, dry_run=dry_run, progress=listener(run)
                    )
                case _:
                    result = maintenance.remove_dangling_deletes(branch=branch, dry_run=dry_run)  # type: ignore[call-overload]  # likewise
            record[each] = str(result) if dry_run else counts(result)
            lines.append(f"{each}: {result if dry_run else _said(counts(result))}")
        run.out.record(record, lambda: lines)


def _said(record: dict[str, Any]) -> str:
    shown = {
        name: value for name, value in record.items() if isinstance(value, int) and value and "snapshot" not in name
    }
    return (
        ", ".join(f"{value:,} {name.removesuffix('_count').replace('_', ' ')}" for name, value in shown.items())
        or "nothing to do"
    )


def rewrite_manifests(
    ctx: typer.Context,
    name: ChangedTable,
    spec_id: Annotated[int | None, typer.Option(help="Only manifests of this partition spec.")] = None,
    sort_by: Annotated[str | None, typer.Option(help="Comma-separated partition fields to sort by.")] = None,
    branch: Branch = None,
    dry_run: DryRun = False,
) -> None:
    """Rewrite manifests to the target size, sorted by partition."""
    with invocation(ctx) as run:
        maintenance = run.changed_table(name).maintenance
        fields = None if sort_by is None else [each.strip() for each in sort_by.split(",")]
        if dry_run:
            plan = maintenance.rewrite_manifests(spec_id, fields, branch=branch, dry_run=True)
            run.out.record({"dry_run": True, **plan.to_json()}, lambda: str(plan).splitlines())
            return
        done = maintenance.rewrite_manifests(spec_id, fields, branch=branch, progress=listener(run))
        run.out.record(counts(done), lambda: [_said(counts(done))])


def expire_snapshots(
    ctx: typer.Context,
    name: ChangedTable,
    older_than: OlderThan = None,
    retain_last: Annotated[int | None, typer.Option(help="Number of snapshots to keep on each branch.", min=1)] = None,
    snapshot: Annotated[
        list[int] | None, typer.Option("--snapshot", help="Expire this snapshot; may be repeated.", metavar="ID")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Expire old snapshots and delete the files that only they reference."""
    with invocation(ctx) as run:
        maintenance = run.changed_table(name).maintenance
        plan = maintenance.expire_snapshots(
            None if older_than is None else moment(older_than), retain_last, snapshot or (), dry_run=True
        )
        record = {
            "dry_run": dry_run,
            "snapshot_ids": [str(each) for each in plan.snapshot_ids],
            "refs": [each for each, _ in plan.refs],
            "files": sum(plan.counts),
            "bytes": plan.bytes,
        }
        if dry_run or not (plan.snapshot_ids or plan.refs):
            run.out.record(record, lambda: [str(plan)])
            return
        files = counted(sum(plan.counts), "file")
        confirm(
            run,
            f"Expire {counted(len(plan.snapshot_ids), 'snapshot')} of {name} and delete {files}, {size(plan.bytes)}?",
        )
        done = plan.run()
        text = (
            f"{counted(len(done.snapshot_ids), 'snapshot')} expired, {counted(sum(done.counts), 'file')} deleted,"
            f" {size(done.deleted_bytes)}"
        )
        record |= {
            "files": sum(done.counts),
            "bytes": done.deleted_bytes,
            "failed": list(done.failed),
            "problem": done.problem,
        }
        run.out.record(record, lambda: [text, *([f"problem: {done.problem}"] if done.problem else [])])
        if done.problem or done.failed:
            raise typer.Exit(exits.FINDINGS)


def clean_orphan_files(
    ctx: typer.Context,
    name: ChangedTable,
    older_than: OlderThan = None,
    location: Annotated[str | None, typer.Option(help="Location to search instead of the table's location.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Delete unreferenced files under the table's location."""
    with invocation(ctx) as run:
        maintenance = run.changed_table(name).maintenance
        limit = None if older_than is None else moment(older_than)
        plan = maintenance.remove_orphan_files(limit, location, dry_run=True, progress=listener(run))
        record: dict[str, Any] = {"dry_run": dry_run, "files": plan.count, "bytes": plan.bytes}
        if dry_run or not plan.count:
            shown = plan.orphan_file_location.slice(0, 1000).to_pylist()
            run.out.record({**record, "locations": shown}, lambda: [*shown, str(plan)])
            return
        confirm(run, f"Delete {counted(plan.count, 'orphan file')} ({size(plan.bytes)}) of {name}?")
        done = plan.run()
        run.out.record(
            {**record, "files": done.count, "bytes": done.bytes, "failed": list(done.failed)}, lambda: [str(done)]
        )
        if done.failed:
            raise typer.Exit(exits.FINDINGS)


def compute_stats(
    ctx: typer.Context,
    name: ChangedTable,
    columns: Columns = None,
    snapshot: Annotated[
        int | None, typer.Option("--snapshot", help="Snapshot to read; the current one by default.", metavar="ID")
    ] = None,
    partitions: Annotated[bool, typer.Option("--partitions", help="Compute partition statistics instead.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Compute distinct counts of columns, or partition statistics, and commit a statistics file."""
    with invocation(ctx) as run:
        table = run.changed_table(name)
        if dry_run:
            _show_stats_plan(run, name, "partitions" if partitions else columns or "all primitive columns")
            return
        if partitions:
            counted_partitions = table.maintenance.compute_partition_stats(snapshot)
            run.out.record(counts(counted_partitions))
            return
        done = table.maintenance.compute_table_stats(
            snapshot, None if columns is None else selected(columns), progress=listener(run)
        )
        rows = [{"column": column, "distinct": count} for column, count in done.distinct_counts.items()]
        run.out.rows(rows, ("column", "distinct"))
        run.say(f"statistics file: {done.statistics_file or 'none, the table has no rows'}")


def _show_stats_plan(run: Invocation, name: str, what: str) -> None:
    run.out.record(
        {"dry_run": True, "table": name, "of": what}, lambda: [f"a statistics file for {what} would be committed"]
    )
