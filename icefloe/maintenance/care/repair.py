"""Repairs of a branch, one commit per kind, always planned first; repairs that change rows must be accepted by name.

No files are deleted, and a tag preserves the previous head.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import commit
from icefloe.errors import IcefloeError, InvalidInputError
from icefloe.maintenance.branches import branch_head
from icefloe.maintenance.care.lost_manifests import rebuilt
from icefloe.maintenance.care.repair_plan import Proposal, RepairKind, find_repairs, highest_row_id
from icefloe.maintenance.care.united_vectors import UnitedVectors
from icefloe.maintenance.deletes.dangling import remove_dangling_deletes
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.manifests import DataFile, ManifestColumns, ManifestContent, ManifestFile, columns_of
from icefloe.metadata import MAIN_BRANCH, Operation, tag, updates as up
from icefloe.progress import Listener
from icefloe.schema import JSON
from icefloe.storage import identities, identity
from icefloe.verification import Level, VerificationReport, verify


@dataclass(frozen=True)
class RepairReport:
    """Result of a repair, and remaining findings."""

    done: tuple[Proposal, ...]
    not_accepted: tuple[Proposal, ...]
    failed: tuple[tuple[RepairKind, str], ...]
    """Kinds that failed, and why."""
    tag: str | None
    """The tag at the previous head; None if nothing was done."""
    after: VerificationReport

    def __str__(self) -> str:
        lines = [f"done: {each}" for each in self.done]
        lines += [f"not accepted: {each}" for each in self.not_accepted]
        lines += [f"failed: {kind}: {why}" for kind, why in self.failed]
        return "\n".join([*lines, f"left: {self.after}"])


@dataclass(frozen=True)
class RepairPlan:
    """Findings with possible repairs, and those that cannot be repaired; `apply` runs the repairs."""

    proposals: tuple[Proposal, ...]
    refused: tuple[str, ...]
    """Findings that cannot be repaired, and why."""
    before: VerificationReport = field(repr=False)
    branch: str
    _table: MaintainedTable = field(repr=False, compare=False)

    @property
    def kinds(self) -> tuple[RepairKind, ...]:
        """The kinds of proposed repairs."""
        return tuple(each.kind for each in self.proposals)

    def __str__(self) -> str:
        if not self.proposals and not self.refused:
            return "nothing to repair"
        return "\n".join([*map(str, self.proposals), *(f"not repaired: {each}" for each in self.refused)])

    def to_json(self) -> JSON:
        """Return the plan as JSON."""
        return {
            "branch": self.branch,
            "proposals": [
                {
                    "kind": str(each.kind),
                    "changes-rows": each.kind.changes_rows,
                    "evidence": list(each.evidence),
                    "locations": list(each.locations),
                }
                for each in self.proposals
            ],
            "refused": list(self.refused),
        }

    def apply(self, accept: Iterable[str] = (), progress: Listener | None = None) -> RepairReport:
        """Run the repairs that do not change rows, and those that do if their kind is accepted.

        Args:
            accept: kinds that change rows, such as `"missing-data-files"`.
            progress: called for each step of the verification that follows.
        """
        accepted = _kinds(accept)
        chosen = [each for each in self.proposals if not each.kind.changes_rows or each.kind in accepted]
        name = _keep_head(self._table, self.branch) if chosen else None
        done: list[Proposal] = []
        failed: list[tuple[RepairKind, str]] = []
        for proposal in chosen:
            try:
                _repair(self._table.refresh(), proposal, self.branch)
                done.append(proposal)
            except IcefloeError as error:
                failed.append((proposal.kind, str(error)))
        left = tuple(each for each in self.proposals if each not in chosen)
        after = _check(self._table.refresh(), self.branch, self.before.level, progress)
        return RepairReport(tuple(done), left, tuple(failed), name, after)


def plan_repair(
    table: MaintainedTable,
    branch: str | None = None,
    level: Level | str = Level.DATA,
    progress: Listener | None = None,
) -> RepairPlan:
    """Verify the latest state of a branch and plan its repair."""
    name = branch or MAIN_BRANCH
    head = branch_head(table.refresh().metadata, branch)
    report = _check(table, name, level, progress)
    repairs = find_repairs(table, head, report)
    return RepairPlan(repairs.proposals, repairs.refused, report, name, _table=table)


def _check(table: MaintainedTable, branch: str, level: Level | str, progress: Listener | None) -> VerificationReport:
    ref = branch if branch in table.metadata.refs else None
    return verify(table.metadata, table.storage, table.metadata_location, ref=ref, level=level, progress=progress)


def _kinds(accept: Iterable[str]) -> frozenset[RepairKind]:
    names = {accept} if isinstance(accept, str) else set(accept)
    if unknown := sorted(names - set(RepairKind)):
        raise InvalidInputError(f"accept contains the unknown kind {unknown[0]!r}; kinds are {', '.join(RepairKind)}")
    return frozenset(map(RepairKind, names))


def _keep_head(table: MaintainedTable, branch: str) -> str | None:
    """Tag the head of the branch."""
    head = table.refresh().metadata.refs.get(branch)
    if head is None:
        return None
    name = f"before-repair-{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%S%f}"
    _send(table, [up.SetSnapshotRefUpdate(name, tag(head.snapshot_id))])
    return name


def _send(table: MaintainedTable, updates: Iterable[up.TableUpdate]) -> None:
    with table.transaction() as tx:
        tx.add(commit.SendUpdates(tuple(updates)))
        tx.commit()


# -- each kind


def _repair(table: MaintainedTable, proposal: Proposal, branch: str) -> None:
    match proposal.kind:
        case RepairKind.RESTORE_FILES:
            for location, source in zip(proposal.locations, proposal.sources, strict=True):
                if not table.storage.exists(location):
                    table.storage.create_exclusive(location, table.storage.read(source))
        case RepairKind.METADATA_IDS:
            _raise_ids(table, proposal, branch)
        case RepairKind.REBUILT_MANIFESTS:
            lost_manifests = frozenset(proposal.locations)
            again = commit.RepairEntries(
                lambda _: _unchanged,
                rewrite=lost_manifests,
                read=lambda parent, manifest: (
                    rebuilt(parent, manifest)
                    if manifest.manifest_path in lost_manifests
                    else commit.read_live(parent, manifest)
                ),
            )
            _commit(table, proposal, branch, again)
        case RepairKind.MISSING_MANIFESTS:
            assert proposal.snapshot_id is not None
            ref = replace(table.metadata.refs[branch], snapshot_id=proposal.snapshot_id)
            _send(table, [up.SetSnapshotRefUpdate(branch, ref)])
        case RepairKind.MISSING_DATA_FILES:
            lost = _still_missing(table, proposal.locations)
            _commit(table, proposal, branch, commit.RepairEntries(lambda _: _without_data(lost), Operation.DELETE))
        case RepairKind.MISSING_DELETE_FILES:
            lost = _still_missing(table, proposal.locations)
            _commit(
                table, proposal, branch, commit.RepairEntries(lambda _: _without_deletes(lost), Operation.OVERWRITE)
            )
        case RepairKind.DUPLICATE_ENTRIES:
            paths = _texts(proposal.locations)
            keep_first = commit.RepairEntries(lambda parent: _Oldest(parent, paths), Operation.DELETE)
            _commit(table, proposal, branch, keep_first)
        case RepairKind.TWO_VECTORS:
            files_of_vectors = frozenset(proposal.locations)
            _commit(
                table, proposal, branch, commit.RepairEntries(lambda parent: UnitedVectors(parent, files_of_vectors))
            )
        case RepairKind.FILE_METRICS:
            files = {identity(file.file_path): file for file in proposal.files}
            _commit(table, proposal, branch, commit.RepairEntries(lambda _: _Corrected(files)))
        case RepairKind.MANIFEST_COUNTS:
            _commit(table, proposal, branch, commit.RepairEntries(lambda _: _unchanged, rewrite=proposal.locations))
        case RepairKind.SUMMARY_TOTALS:
            _commit(table, proposal, branch, commit.RepairEntries(lambda _: _unchanged, recount=True))
        case RepairKind.DANGLING_DELETES:
            remove_dangling_deletes(table, branch, snapshot_properties=_summary(proposal))
        case RepairKind.REFS:
            _send(table, _dropped(table))


def _summary(proposal: Proposal) -> Mapping[str, str]:
    return {"icefloe.repair": str(proposal.kind)}


def _commit(table: MaintainedTable, proposal: Proposal, branch: str, operation: commit.RepairEntries) -> None:
    target = commit.target_of(table.metadata, branch, _summary(proposal))
    with table.transaction() as tx:
        tx.add(commit.SnapshotChange(operation, target))
        tx.commit()


def _texts(locations: Iterable[str]) -> pa.Array:
    return pa.array(sorted(set(map(identity, locations))), pa.string())


def _still_missing(table: MaintainedTable, locations: Iterable[str]) -> pa.Array:
    """Return the files that are still missing when checked again."""
    return _texts(location for location in locations if not table.storage.exists(location))


def _unchanged(_: ManifestFile, entries: ManifestColumns) -> commit.Fixed:
    return commit.Fixed(entries)


def _is_about(entries: ManifestColumns, column: str, paths: pa.Array) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    mask = pc.is_in(identities(entries.column(column)), value_set=paths)
    return np.asarray(pc.fill_null(mask, False).to_numpy(zero_copy_only=False), bool)


def _without_data(lost: pa.Array) -> commit.Fix:
    """Remove lost data files, and deletes that apply only to them."""

    def fix(manifest: ManifestFile, entries: ManifestColumns) -> commit.Fixed:
        name = "file_path" if manifest.content is ManifestContent.DATA else "referenced_data_file"
        return commit.Fixed.without(entries, _is_about(entries, name, lost))

    return fix


def _without_deletes(lost: pa.Array) -> commit.Fix:
    def fix(manifest: ManifestFile, entries: ManifestColumns) -> commit.Fixed:
        if manifest.content is ManifestContent.DATA:
            return commit.Fixed(entries)
        return commit.Fixed.without(entries, _is_about(entries, "file_path", lost))

    return fix


class _Oldest:
    """Keeps the entry with the lowest sequence number of each path, the first of equal ones."""

    def __init__(self, parent: commit.Parent, paths: pa.Array) -> None:
        self._paths = paths
        self._best: dict[tuple[str, int | None], tuple[int, str, int]] = {}
        for manifest in parent.manifests_of(parent.snapshot):
            columns = parent.read(manifest)
            for key, candidate in self._candidates(manifest, columns.filter(columns.is_live)):
                self._best[key] = min(candidate, self._best.get(key, candidate))

    def __call__(self, manifest: ManifestFile, entries: ManifestColumns) -> commit.Fixed:
        wrong = np.zeros(len(entries), bool)
        for key, candidate in self._candidates(manifest, entries):
            wrong[candidate[2]] = candidate != self._best[key]
        return commit.Fixed.without(entries, wrong)

    def _candidates(
        self, manifest: ManifestFile, entries: ManifestColumns
    ) -> Iterable[tuple[tuple[str, int | None], tuple[int, str, int]]]:
        indices = np.flatnonzero(_is_about(entries, "file_path", self._paths)).tolist()
        for index, entry in zip(indices, entries.entries(indices), strict=True):
            key = (identity(entry.data_file.file_path), entry.data_file.content_offset)
            yield key, (entry.sequence_number or 0, manifest.manifest_path, index)


class _Corrected:
    """Entries corrected from their files."""

    def __init__(self, files: Mapping[str, DataFile]) -> None:
        self._files = files
        self._paths = _texts(files)

    def __call__(self, manifest: ManifestFile, entries: ManifestColumns) -> commit.Fixed:
        wrong = _is_about(entries, "file_path", self._paths)
        if manifest.content is not ManifestContent.DATA or not wrong.any():
            return commit.Fixed(entries)
        corrected = columns_of(
            [replace(entry, data_file=self._corrected(entry.data_file)) for entry in entries.filter(wrong).entries()],
            entries.partition_type,
            entries.spec_id,
        )
        rest = entries.filter(~wrong)
        return commit.Fixed(commit.concat_entries([part for part in (rest, corrected) if len(part)]))

    def _corrected(self, file: DataFile) -> DataFile:
        # Row ids are inherited from the manifest, using the record counts of all entries before the correction.
        return replace(self._files[identity(file.file_path)], first_row_id=file.first_row_id)


def _raise_ids(table: MaintainedTable, proposal: Proposal, branch: str) -> None:
    if updates := tuple(_raised(table)):
        _send(table, updates)
    highest = highest_row_id(table.refresh().metadata)
    if highest > table.metadata.next_row_id:
        # A snapshot of the same files, whose row ids start after all those in use.
        raised = commit.RepairEntries(lambda _: _unchanged, recount=True, first_row_id=highest)
        _commit(table, proposal, branch, raised)


def _raised(table: MaintainedTable) -> Iterable[up.TableUpdate]:
    """Return updates that add existing schemas and specs again, which raises the last assigned ids to theirs."""
    metadata = table.metadata
    schema = max(metadata.schemas, key=lambda each: each.highest_field_id)
    if schema.highest_field_id > metadata.last_column_id:
        yield up.AddSchemaUpdate(schema)
    spec = max(metadata.partition_specs, key=lambda each: each.last_field_id)
    if spec.last_field_id > metadata.last_partition_id:
        yield up.AddPartitionSpecUpdate(spec)


def _dropped(table: MaintainedTable) -> Iterable[up.TableUpdate]:
    metadata = table.metadata
    known = metadata.snapshots_by_id
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in known and name != MAIN_BRANCH:
            yield up.RemoveSnapshotRefUpdate(name)
    for file in metadata.statistics:
        if file.snapshot_id not in known:
            yield up.RemoveStatisticsUpdate(file.snapshot_id)
    for other in metadata.partition_statistics:
        if other.snapshot_id not in known:
            yield up.RemovePartitionStatisticsUpdate(other.snapshot_id)
