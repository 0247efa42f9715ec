"""What a commit did: how it ended, how often it was tried, and what it added and removed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

from icefloe.commit.outcome import Committed, Outcome
from icefloe.metadata import Snapshot, TableMetadata, summary as keys
from icefloe.planning import Reporter, deliver
from icefloe.schema import Schema


def _count(key: str) -> int:
    """A count, and where a summary has it."""
    return field(default=0, metadata={"key": key})


@dataclass(frozen=True, slots=True)
class CommitCounts:
    """What a snapshot says that it changed; what it does not say is 0."""

    added_data_files: int = _count(keys.ADDED_DATA_FILES)
    removed_data_files: int = _count(keys.DELETED_DATA_FILES)
    added_delete_files: int = _count(keys.ADDED_DELETE_FILES)
    """Deletion vectors among them."""
    removed_delete_files: int = _count(keys.REMOVED_DELETE_FILES)
    added_deletion_vectors: int = _count(keys.ADDED_DVS)
    removed_deletion_vectors: int = _count(keys.REMOVED_DVS)
    added_records: int = _count(keys.ADDED_RECORDS)
    removed_records: int = _count(keys.DELETED_RECORDS)
    added_bytes: int = _count(keys.ADDED_FILES_SIZE)
    removed_bytes: int = _count(keys.REMOVED_FILES_SIZE)
    manifests_created: int = _count(keys.MANIFESTS_CREATED)
    manifests_kept: int = _count(keys.MANIFESTS_KEPT)
    manifests_replaced: int = _count(keys.MANIFESTS_REPLACED)
    entries_processed: int = _count(keys.ENTRIES_PROCESSED)


@dataclass(frozen=True, slots=True)
class CommitReport:
    """One commit, or one of the snapshots of a commit that made several."""

    table: str
    """The table's name."""
    table_uuid: str | None
    outcome: str
    """`committed`, `rejected` or `unknown`."""
    snapshot_id: int | None
    """None if the commit did not happen, or made no snapshot."""
    sequence_number: int | None
    operation: str | None
    attempts: int
    seconds: float
    """From the first attempt to the outcome."""
    counts: CommitCounts
    problem: str | None = None
    """Why it did not happen, or why nobody knows."""
    location: str | None = None
    """Where the table is; None in a report that came over the REST protocol, which does not say it."""
    schema: Schema | None = field(default=None, compare=False, repr=False)
    """The table's columns afterwards; None as for the location."""

    def line(self) -> str:
        """The report in one line."""
        counts = self.counts
        what = f"{self.outcome} in {self.attempts} attempts, {self.seconds:.3f} s"
        if self.snapshot_id is None:
            return f"commit to table {self.table}: {what}" + (f": {self.problem}" if self.problem else "")
        return (
            f"commit to table {self.table}, snapshot {self.snapshot_id}, {self.operation}: {what}; data files "
            f"+{counts.added_data_files} -{counts.removed_data_files}, delete files +{counts.added_delete_files} "
            f"-{counts.removed_delete_files}, records +{counts.added_records} -{counts.removed_records}, manifests "
            f"{counts.manifests_created} created, {counts.manifests_kept} kept, {counts.manifests_replaced} replaced"
        )


def commit_counts(summary: Mapping[str, str]) -> CommitCounts:
    """The counts of a snapshot's summary; nonsense in it counts as nothing."""
    texts = {count.name: summary.get(count.metadata["key"], "") for count in fields(CommitCounts)}
    return CommitCounts(**{name: int(text) for name, text in texts.items() if text.isascii() and text.isdecimal()})


def report_commit(outcome: Outcome, base: TableMetadata, table: str, seconds: float, reporter: Reporter) -> None:
    """Deliver a report for each snapshot of a commit, or one for a commit without."""
    try:
        reports = list(_reports(outcome, base, table, seconds))
    except Exception as error:  # noqa: BLE001 - the outcome stands, whatever is wrong with the report of it
        reports = [CommitReport(table, None, "unknown", None, None, None, 0, seconds, CommitCounts(), str(error))]
    for report in reports:
        deliver(report, reporter)


def _reports(outcome: Outcome, base: TableMetadata, table: str, seconds: float) -> Iterator[CommitReport]:
    snapshots: list[Snapshot] = []
    problem, after = None, base
    if isinstance(outcome, Committed):
        after = outcome.state.metadata
        by_id = after.snapshots_by_id
        snapshots = [by_id[snapshot_id] for snapshot_id in outcome.snapshot_ids if snapshot_id in by_id]
    else:
        problem = str(outcome.error)
    report = CommitReport(
        table,
        base.table_uuid,
        type(outcome).__name__.lower(),
        None,
        None,
        None,
        outcome.attempts,
        seconds,
        CommitCounts(),
        problem,
        after.location,
        after.schema(),
    )
    if not snapshots:
        yield report
    for snapshot in snapshots:
        yield replace(
            report,
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number,
            operation=None if snapshot.operation is None else str(snapshot.operation),
            counts=CommitCounts() if snapshot.summary is None else commit_counts(snapshot.summary.properties),
        )
