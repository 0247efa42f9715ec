"""`icefloe branch`, `tag`, `rollback`, `cherry-pick`, `publish` and `upgrade`: refs and the current snapshot."""

from typing import Annotated, Any

import typer

from icefloe import errors, metadata as md
from icefloe.catalog import choose_version
from icefloe.cli.arguments import ChangedTable, DryRun, RefName
from icefloe.cli.asking import confirm
from icefloe.cli.invocation import Invocation, invocation
from icefloe.cli.look.history import refs as show_refs
from icefloe.cli.moments import duration
from icefloe.metadata import summary as totals
from icefloe.planning import choose_snapshot
from icefloe.table import ManageSnapshots, Table

branch_app = typer.Typer(help="Create, move and delete branches.", no_args_is_help=True)
tag_app = typer.Typer(help="Create, move and delete tags.", no_args_is_help=True)

SnapshotOption = Annotated[
    str | None, typer.Option("--snapshot", help="Snapshot id, branch, tag or time; the current snapshot by default.")
]
Retain = Annotated[str | None, typer.Option(help="How long to keep it, such as 30d.", metavar="AGE")]

branch_app.command("list")(show_refs)
tag_app.command("list")(show_refs)


@branch_app.command("create")
def create_branch(
    ctx: typer.Context,
    name: ChangedTable,
    ref: RefName,
    snapshot: SnapshotOption = None,
    retain: Retain = None,
    retain_snapshots: Annotated[str | None, typer.Option(help="How long to keep its snapshots.", metavar="AGE")] = None,
    min_snapshots: Annotated[int | None, typer.Option(help="Minimum number of its snapshots to keep.", min=1)] = None,
) -> None:
    """Create a branch."""
    with invocation(ctx) as run:
        table = run.changed_table(name)
        table.manage_snapshots().create_branch(
            ref, _snapshot_id(table, snapshot), _ms(retain), _ms(retain_snapshots), min_snapshots
        ).commit()
        _done(run, table, "branch", ref)


@tag_app.command("create")
def create_tag(
    ctx: typer.Context, name: ChangedTable, ref: RefName, snapshot: SnapshotOption = None, retain: Retain = None
) -> None:
    """Create a tag."""
    with invocation(ctx) as run:
        table = run.changed_table(name)
        table.manage_snapshots().create_tag(ref, _snapshot_id(table, snapshot), _ms(retain)).commit()
        _done(run, table, "tag", ref)


@branch_app.command("delete")
def delete_branch(ctx: typer.Context, name: ChangedTable, ref: RefName, dry_run: DryRun = False) -> None:
    """Delete a branch; its snapshots are kept until they expire."""
    with invocation(ctx) as run:
        _delete(run, name, ref, "branch", dry_run)


@tag_app.command("delete")
def delete_tag(ctx: typer.Context, name: ChangedTable, ref: RefName, dry_run: DryRun = False) -> None:
    """Delete a tag; its snapshot is kept until it expires."""
    with invocation(ctx) as run:
        _delete(run, name, ref, "tag", dry_run)


def _delete(run: Invocation, name: str, ref: str, kind: str, dry_run: bool) -> None:
    table = run.changed_table(name)
    snapshot = table.metadata.snapshot_of_ref(ref)
    at = None if snapshot is None else snapshot.snapshot_id
    record = {"table": name, kind: ref, "snapshot_id": at, "dry_run": dry_run}
    if dry_run:
        run.out.record(record, lambda: [f"{kind} {ref} would be deleted; it is at snapshot {at}"])
        return
    confirm(run, f"Delete {kind} {ref} of {name}?")
    changes = table.manage_snapshots()
    (changes.remove_branch(ref) if kind == "branch" else changes.remove_tag(ref)).commit()
    back = f"icefloe {kind} create {name} {ref} --snapshot {at}"
    run.out.record(record, lambda: [f"Deleted {kind} {ref}, which was at snapshot {at}; to undo: {back}"])


@branch_app.command("replace")
def replace_branch(
    ctx: typer.Context,
    name: ChangedTable,
    ref: RefName,
    snapshot: Annotated[str, typer.Option("--snapshot", help="Snapshot id, branch, tag or time.")],
) -> None:
    """Move a branch to any snapshot."""
    with invocation(ctx) as run:
        _move(run, name, ref, "branch", snapshot)


@tag_app.command("replace")
def replace_tag(
    ctx: typer.Context,
    name: ChangedTable,
    ref: RefName,
    snapshot: Annotated[str, typer.Option("--snapshot", help="Snapshot id, branch, tag or time.")],
) -> None:
    """Move a tag to any snapshot."""
    with invocation(ctx) as run:
        _move(run, name, ref, "tag", snapshot)


def _move(run: Invocation, name: str, ref: str, kind: str, snapshot: str) -> None:
    table = run.changed_table(name)
    to = _snapshot_id(table, snapshot)
    assert to is not None
    changes = table.manage_snapshots()
    (changes.replace_branch(ref, to) if kind == "branch" else changes.replace_tag(ref, to)).commit()
    _done(run, table, kind, ref)


@branch_app.command("fast-forward")
def fast_forward(
    ctx: typer.Context,
    name: ChangedTable,
    ref: RefName,
    to: Annotated[str, typer.Option("--to", help="Branch to fast-forward to.")],
) -> None:
    """Fast-forward a branch to the head of a branch that descends from it."""
    with invocation(ctx) as run:
        table = run.changed_table(name)
        table.manage_snapshots().fast_forward(ref, to).commit()
        _done(run, table, "branch", ref)


def _done(run: Invocation, table: Table, kind: str, ref: str) -> None:
    snapshot = table.metadata.snapshot_of_ref(ref)
    at = None if snapshot is None else snapshot.snapshot_id
    run.out.record({kind: ref, "snapshot_id": at}, lambda: [f"{kind} {ref} is at snapshot {at}"])


def _snapshot_id(table: Table, text: str | None) -> int | None:
    if text is None:
        return None
    at = choose_version(table.metadata, text)
    chosen = choose_snapshot(table.metadata, at.get("snapshot_id"), at.get("ref"), at.get("as_of"))
    if chosen is None:
        raise errors.NoSuchSnapshotError(f"the table has no snapshot at {text!r}")
    return chosen.snapshot_id


def _ms(text: str | None) -> int | None:
    return None if text is None else duration(text)


def rollback(
    ctx: typer.Context,
    name: ChangedTable,
    to: Annotated[str, typer.Option("--to", help="Snapshot id, tag or time in the history of main.")],
    dry_run: DryRun = False,
) -> None:
    """Roll the table back to an earlier snapshot."""
    with invocation(ctx) as run:
        table = run.changed_table(name)
        target = _snapshot_id(table, to)
        assert target is not None
        _change(
            run,
            name,
            table,
            table.manage_snapshots().rollback_to_snapshot(target),
            f"be set to snapshot {target}",
            dry_run,
        )


def cherry_pick(
    ctx: typer.Context,
    name: ChangedTable,
    snapshot_id: Annotated[int, typer.Argument(metavar="ID")],
    dry_run: DryRun = False,
) -> None:
    """Apply the changes of a snapshot to main."""
    with invocation(ctx) as run:
        table = run.changed_table(name)
        table.metadata.snapshot(snapshot_id)
        _change(
            run,
            name,
            table,
            table.manage_snapshots().cherrypick(snapshot_id),
            f"get the changes of snapshot {snapshot_id}",
            dry_run,
        )


def publish(
    ctx: typer.Context,
    name: ChangedTable,
    wap_id: Annotated[str, typer.Argument(metavar="WAP-ID")],
    dry_run: DryRun = False,
) -> None:
    """Publish the staged snapshot with a WAP id."""
    with invocation(ctx) as run:
        table = run.changed_table(name)
        staged = [each.snapshot_id for each in table.snapshots() if _wap_id(each) == wap_id]
        if not staged:
            raise errors.NoSuchSnapshotError(f"{name} has no snapshot with WAP id {wap_id!r}")
        if len(staged) > 1:
            raise errors.StateError(
                f"{len(staged)} snapshots of {name} have the WAP id {wap_id!r}; cherry-pick one by its id"
            )
        _change(
            run,
            name,
            table,
            table.manage_snapshots().cherrypick(staged[0]),
            f"get the changes of snapshot {staged[0]}",
            dry_run,
        )


def _wap_id(snapshot: md.Snapshot) -> str | None:
    return None if snapshot.summary is None else snapshot.summary.get(totals.WAP_ID)


def _change(run: Invocation, name: str, table: Table, changes: ManageSnapshots, what: str, dry_run: bool) -> None:
    """Change `main` and print its previous snapshot; `what` completes "main would ..."."""
    before = table.metadata.current_snapshot_id
    record: dict[str, Any] = {"table": name, "before_snapshot_id": str(before), "dry_run": dry_run}
    if dry_run:
        run.out.record({**record, "snapshot_id": before}, lambda: [f"main would {what}; it is at snapshot {before}"])
        return
    changes.commit()
    after = table.metadata.current_snapshot_id
    text = f"{name} is at snapshot {after}; it was at {before}; to undo: icefloe branch replace {name} main --snapshot {before}"
    run.out.record({**record, "snapshot_id": after}, lambda: [text])


def upgrade(
    ctx: typer.Context,
    name: ChangedTable,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="New format version.")],
    dry_run: DryRun = False,
) -> None:
    """Upgrade a table to a newer format version; this cannot be undone."""
    with invocation(ctx) as run:
        table = run.changed_table(name)
        before = table.format_version
        record = {"table": name, "before": before, "format_version": version, "dry_run": dry_run}
        if dry_run:
            run.out.record(record, lambda: [f"{name} would be upgraded from v{before} to v{version}"])
            return
        if version != before:
            confirm(run, f"Upgrade {name} from v{before} to v{version}? This cannot be undone.")
        table.upgrade_format_version(version)
        run.out.record(record, lambda: [f"{name} has format version {table.format_version}; it had {before}"])
