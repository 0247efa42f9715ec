"""Possible repairs of a branch: findings of `verify` with the evidence that a repair needs, without changing anything.

Nothing is guessed: findings that cannot be resolved from metadata and files are refused, with a reason.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import commit as cm, errors, manifests as mf, metadata as md, partitioning as pt
from icefloe.data import ForeignFile, describe_files
from icefloe.maintenance.care.lost_manifests import rebuilt, unreadable_manifests
from icefloe.maintenance.care.united_vectors import RivalVectors, rival_vectors
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.storage import identities, identity
from icefloe.verification import Code, Finding, VerificationReport
from icefloe.versions import Feature, allows


class RepairKind(StrEnum):
    """Kinds of repairs, in the order they are done."""

    RESTORE_FILES = "restore-files"
    """Copy a missing file from one with the same name and length under the table's location."""
    METADATA_IDS = "metadata-ids"
    """Raise the last assigned ids of columns, partition fields and rows to the highest ones in use."""
    REBUILT_MANIFESTS = "rebuilt-manifests"
    """Rebuild a missing manifest from entries in other manifests that add up to it exactly."""
    MISSING_MANIFESTS = "missing-manifests"
    """Roll the branch back to its latest snapshot with a readable manifest list and manifests."""
    MISSING_DATA_FILES = "missing-data-files"
    """Remove entries of missing data files, so that the rest can be read."""
    MISSING_DELETE_FILES = "missing-delete-files"
    """Remove entries of missing delete files; rows that they deleted reappear."""
    DUPLICATE_ENTRIES = "duplicate-entries"
    """Remove the later of two equal live entries of a file."""
    TWO_VECTORS = "two-vectors"
    """Merge several deletion vectors of a data file into one, which deletes what any of them deletes."""
    FILE_METRICS = "file-metrics"
    """Correct lengths, counts and bounds from the file footers."""
    MANIFEST_COUNTS = "manifest-counts"
    """Rewrite manifests whose counts or partition summaries do not match their entries."""
    SUMMARY_TOTALS = "summary-totals"
    """Recompute the totals in the snapshot summary."""
    DANGLING_DELETES = "dangling-deletes"
    """Remove dangling delete files."""
    REFS = "refs"
    """Drop branches, tags and statistics of missing snapshots."""

    @property
    def changes_rows(self) -> bool:
        """Whether scans may return other rows afterwards, so that the kind must be accepted by name."""
        return self in _CHANGE_ROWS


_CHANGE_ROWS = (
    RepairKind.MISSING_MANIFESTS,
    RepairKind.MISSING_DATA_FILES,
    RepairKind.MISSING_DELETE_FILES,
    RepairKind.DUPLICATE_ENTRIES,
    RepairKind.TWO_VECTORS,
)

_METRIC_CODES = (Code.RECORD_COUNT, Code.COLUMN_COUNTS, Code.COLUMN_BOUNDS, Code.FILE_LENGTH)
_LISTED_CODES = (Code.MANIFEST_COUNTS, Code.MANIFEST_SUMMARY)
_MISSING_CODES = (Code.FILE_MISSING, Code.FILE_UNREADABLE)


@dataclass(frozen=True, slots=True)
class Proposal:
    """One repair: its files and evidence."""

    kind: RepairKind
    evidence: tuple[str, ...]
    locations: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """Source of the restored file for each location."""
    files: tuple[mf.DataFile, ...] = field(default=(), repr=False)
    """The entries corrected from their files."""
    snapshot_id: int | None = None
    """The snapshot to roll back to."""

    def __str__(self) -> str:
        must = " (changes rows: must be accepted by name)" if self.kind.changes_rows else ""
        return "\n".join([f"{self.kind}{must}", *(f"  {each}" for each in self.evidence)])


@dataclass(frozen=True, slots=True)
class Findings:
    """Proposed repairs, and findings that cannot be repaired with their reasons."""

    proposals: tuple[Proposal, ...]
    refused: tuple[str, ...]


def find_repairs(table: MaintainedTable, head: md.Snapshot | None, report: VerificationReport) -> Findings:
    """Return the possible repairs for the findings of a verification."""
    return _Search(table, head, report).run()


class _Search:
    """Collects evidence for the findings of one report."""

    def __init__(self, table: MaintainedTable, head: md.Snapshot | None, report: VerificationReport) -> None:
        self._table = table
        self._head = head
        self._findings = report.findings
        self._handled: set[int] = set()
        self._refused: list[str] = []
        self._parent = cm.Parent(table.metadata, cm.Workbench(table.storage, cm.Caches(), cm.now_ms), head)

    def run(self) -> Findings:
        lost = self._lost_manifests()
        searches: tuple[Callable[[], Iterable[Proposal]], ...] = (
            (lambda: lost, self._ids, self._refs)
            if lost or self._refused
            else (
                self._ids,
                self._missing,
                self._duplicates,
                self._two_vectors,
                self._metrics,
                self._listed,
                self._totals,
                self._dangling,
                self._refs,
            )
        )
        proposals = tuple(proposal for search in searches for proposal in search())
        rest = (finding for index, finding in enumerate(self._findings) if index not in self._handled)
        order = list(RepairKind)
        return Findings(
            tuple(sorted(proposals, key=lambda each: order.index(each.kind))),
            (*self._refused, *(f"{finding}: no repair available" for finding in rest)),
        )

    @property
    def _metadata(self) -> md.TableMetadata:
        return self._table.metadata

    def _take(self, *codes: Code) -> list[Finding]:
        """Take the findings with these codes, so that they count as handled."""
        return self._take_if(lambda each: each.code in codes)

    def _take_if(self, is_chosen: Callable[[Finding], bool]) -> list[Finding]:
        chosen = [(index, each) for index, each in enumerate(self._findings) if is_chosen(each)]
        self._handled.update(index for index, _ in chosen)
        return [each for _, each in chosen]

    # -- lists and manifests

    def _lost_manifests(self) -> list[Proposal]:
        if self._head is None or _is_whole(self._parent, self._head):
            return []
        names = [str(finding) for finding in self._take(*_MISSING_CODES)]
        try:
            return [_rebuilt(self._parent, self._head)]
        except errors.IcefloeError as error:
            names.append(f"the lost entries cannot be reconstructed: {error}")
        ancestors = list(self._metadata.ancestors(self._head.snapshot_id))[1:]
        for lost, snapshot in enumerate(ancestors, 1):
            if _is_whole(self._parent, snapshot):
                changes = f"{lost} later snapshots are removed from the branch"
                why = f"snapshot {snapshot.snapshot_id} is the latest one with readable manifests; {changes}"
                return [Proposal(RepairKind.MISSING_MANIFESTS, (*names, why), snapshot_id=snapshot.snapshot_id)]
        self._refused += [f"{name}: no earlier snapshot can be read either" for name in names]
        return []

    # -- ids

    def _ids(self) -> Iterator[Proposal]:
        """Raise ids that are too low; other problems of row ids are not repaired: rows that share one cannot be distinguished."""
        findings = self._take(Code.LAST_ASSIGNED_ID)
        next_id, highest = self._metadata.next_row_id, highest_row_id(self._metadata)
        if highest > next_id:
            late = {each.snapshot_id for each in self._metadata.snapshots if end_of_row_ids(each) > next_id}
            findings += self._take_if(lambda each: each.code is Code.SNAPSHOT_ROW_IDS and each.snapshot_id in late)
            places = [each.location or "" for each in self._findings if each.code is Code.ROW_IDS]
            files = {
                entry.data_file.file_path
                for entry in self._entries(places)
                if next_id < (entry.data_file.first_row_id or 0) + entry.data_file.record_count <= highest
            }
            findings += self._take_if(lambda each: each.code is Code.ROW_IDS and each.location in files)
        if findings:
            yield Proposal(RepairKind.METADATA_IDS, tuple(map(str, findings)))

    # -- files

    def _missing(self) -> Iterator[Proposal]:
        missing = {finding.location or "": finding for finding in self._take(Code.FILE_MISSING)}
        entries = self._entries(missing)
        for location in missing.keys() - {identity(entry.data_file.file_path) for entry in entries} - _paths(entries):
            self._refused.append(f"{missing[location]}: all files of the branch are missing")
        sources = _same_files(self._table, [entry.data_file for entry in entries])
        lost = [entry.data_file for entry in entries if entry.data_file.file_path in sources]
        if lost:
            pairs = tuple((file.file_path, sources[file.file_path]) for file in lost)
            yield Proposal(
                RepairKind.RESTORE_FILES,
                tuple(f"{path} is also at {source}" for path, source in pairs),
                tuple(path for path, _ in pairs),
                tuple(source for _, source in pairs),
            )
        rest = [entry.data_file for entry in entries if entry.data_file.file_path not in sources]
        for kind, chosen in (
            (RepairKind.MISSING_DATA_FILES, [file for file in rest if file.content is mf.FileContent.DATA]),
            (RepairKind.MISSING_DELETE_FILES, [file for file in rest if file.content is not mf.FileContent.DATA]),
        ):
            if chosen:
                evidence = tuple(f"{file.file_path} is missing, {self._lost(file)}" for file in chosen)
                yield Proposal(kind, evidence, tuple(file.file_path for file in chosen))

    def _lost(self, file: mf.DataFile) -> str:
        what = "rows are lost" if file.content is mf.FileContent.DATA else "deletes are lost, and their rows reappear"
        try:
            where = pt.partition_path(self._metadata.spec(file.spec_id), file.partition, self._metadata.schema())
        except errors.IcefloeError:
            where = str(file.partition)
        return f"with it {file.record_count} {what}" + (f" of {where}" if where else "")

    def _duplicates(self) -> Iterator[Proposal]:
        locations = {finding.location or "" for finding in self._take(Code.PATH_TWICE)}
        entries = self._entries(locations)
        chosen: list[str] = []
        for location in sorted(locations):
            own = [entry.data_file for entry in entries if entry.data_file.file_path == location]
            if len({_comparable(file) for file in own}) == 1:
                chosen.append(location)
            else:
                self._refused.append(
                    f"{location} is in the branch {len(own)} times with different entries; resolve it manually"
                )
        if chosen:
            evidence = tuple(f"{location} has equal entries; the oldest is kept" for location in chosen)
            yield Proposal(RepairKind.DUPLICATE_ENTRIES, evidence, tuple(chosen))

    def _two_vectors(self) -> Iterator[Proposal]:
        findings = self._take(Code.VECTOR_TWICE)
        chosen: list[RivalVectors] = []
        evidence: list[str] = []
        for rivals in rival_vectors(self._parent) if findings else ():
            names = " and ".join(entry.data_file.file_path for entry in rivals.entries)
            try:
                count = rivals.union(self._table.storage).cardinality
            except errors.IcefloeError as error:
                self._refused.append(f"{rivals.file.file_path} has several deletion vectors, in {names}: {error}")
                continue
            most = max(entry.data_file.record_count for entry in rivals.entries)
            chosen.append(rivals)
            evidence.append(
                f"{rivals.file.file_path} has deletion vectors in {names}; a single one deletes at most {most} rows,"
                f" all together delete {count}"
            )
        if chosen:
            paths = tuple(rivals.file.file_path for rivals in chosen)
            yield Proposal(RepairKind.TWO_VECTORS, tuple(evidence), paths)

    def _metrics(self) -> Iterator[Proposal]:
        findings = self._take(*_METRIC_CODES)
        entries = {entry.data_file.file_path: entry.data_file for entry in self._entries(_locations(findings))}
        files: list[mf.DataFile] = []
        evidence: list[str] = []
        for path in dict.fromkeys(finding.location or "" for finding in findings):
            said = [str(finding) for finding in findings if finding.location == path]
            try:
                files.append(self._described(entries[path]))
                evidence += said
            except (errors.IcefloeError, KeyError) as error:
                self._refused += [f"{each}: {_problem(error)}" for each in said]
        if files:
            paths = tuple(file.file_path for file in files)
            yield Proposal(RepairKind.FILE_METRICS, tuple(evidence), paths, files=tuple(files))

    def _described(self, file: mf.DataFile) -> mf.DataFile:
        """Return the entry corrected from its file."""
        if file.content is not mf.FileContent.DATA:
            raise _Refused("only entries of data files can be corrected")
        size = self._table.storage.stat(file.file_path).size
        foreign = ForeignFile(file.file_path, size, file.file_format, {})
        [own] = describe_files([foreign], self._metadata, self._table.storage, pt.UNPARTITIONED, workers=1).files
        if own.record_count > file.record_count and allows(self._metadata.format_version, Feature.ROW_LINEAGE):
            raise _Refused(
                f"it has {own.record_count} rows but row ids for {file.record_count}, so the rest would share ids with"
                " rows of other files; rewrite its rows"
            )
        return replace(
            own,
            spec_id=file.spec_id,
            partition=file.partition,
            key_metadata=file.key_metadata,
            sort_order_id=file.sort_order_id,
            first_row_id=file.first_row_id,
        )

    # -- manifests, totals, deletes, refs

    def _listed(self) -> Iterator[Proposal]:
        findings = self._take(*_LISTED_CODES)
        if findings:
            locations = tuple(dict.fromkeys(finding.location or "" for finding in findings))
            yield Proposal(RepairKind.MANIFEST_COUNTS, tuple(map(str, findings)), locations)

    def _totals(self) -> Iterator[Proposal]:
        if findings := self._take(Code.SUMMARY_TOTALS):
            yield Proposal(RepairKind.SUMMARY_TOTALS, tuple(map(str, findings)))

    def _dangling(self) -> Iterator[Proposal]:
        if findings := self._take(Code.DELETE_DANGLING):
            yield Proposal(RepairKind.DANGLING_DELETES, tuple(map(str, findings)))

    def _refs(self) -> Iterator[Proposal]:
        if findings := self._take(Code.REF_UNRESOLVED, Code.STATISTICS_UNRESOLVED):
            yield Proposal(RepairKind.REFS, tuple(map(str, findings)))

    def _entries(self, locations: Iterable[str]) -> list[mf.ManifestEntry]:
        """Return the live entries of the branch for files at some locations."""
        wanted = {identity(location) for location in locations if location}
        entries: list[mf.ManifestEntry] = []
        for manifest in self._parent.manifests_of(self._head) if wanted else ():
            columns = self._parent.read(manifest)
            mask = pc.is_in(identities(columns.column("file_path")), value_set=_texts(wanted))
            entries += columns.filter(pc.and_(mask, columns.is_live)).entries()
        return entries


def _rebuilt(parent: cm.Parent, head: md.Snapshot) -> Proposal:
    """Return the lost manifests of a snapshot; raises an error if one cannot be reconstructed."""
    lost = unreadable_manifests(parent, head)
    evidence = []
    for manifest in lost:
        entries = rebuilt(parent, manifest)
        evidence.append(
            f"{manifest.manifest_path} cannot be read; its {len(entries)} entries are known from other manifests and match the"
            " files, rows and partitions in the manifest list"
        )
    return Proposal(RepairKind.REBUILT_MANIFESTS, tuple(evidence), tuple(manifest.manifest_path for manifest in lost))


def highest_row_id(metadata: md.TableMetadata) -> int:
    """Return the end of the row ids that snapshots have reserved."""
    return max(map(end_of_row_ids, metadata.snapshots), default=0)


def end_of_row_ids(snapshot: md.Snapshot) -> int:
    """Return the end of the row ids that a snapshot has reserved; 0 if it has none."""
    return (snapshot.first_row_id or 0) + (snapshot.added_rows or 0)


class _Refused(errors.IcefloeError):
    """A repair that is refused."""


def _problem(error: Exception) -> str:
    return "it has no live entry" if isinstance(error, KeyError) else str(error)


def _locations(findings: Iterable[Finding]) -> list[str]:
    return [finding.location or "" for finding in findings]


def _texts(values: Iterable[str]) -> pa.Array:
    return pa.array(sorted(values), pa.string())


def _paths(entries: Iterable[mf.ManifestEntry]) -> set[str]:
    return {entry.data_file.file_path for entry in entries}


def _comparable(file: mf.DataFile) -> str:
    """Return an entry without its row ids, which differ between entries."""
    return repr(replace(file, first_row_id=None))


def _is_whole(parent: cm.Parent, snapshot: md.Snapshot) -> bool:
    """Whether the manifest list and all manifests of a snapshot can be read."""
    try:
        for manifest in parent.manifests_of(snapshot):
            parent.read(manifest, mf.EVERYTHING)
    except errors.IcefloeError:
        return False
    return True


def _same_files(table: MaintainedTable, missing: Sequence[mf.DataFile]) -> dict[str, str]:
    """Return the files under the table's location with the same name and length, if there is exactly one."""
    if not missing or table.metadata.location is None:
        return {}
    keys = {(file.file_path.rpartition("/")[2], file.file_size_in_bytes): file.file_path for file in missing}
    locations: dict[str, list[str]] = {}
    for info in table.storage.list_prefix(table.metadata.location):
        path = keys.get((info.location.rpartition("/")[2], info.size))
        if path is not None and identity(path) != identity(info.location):
            locations.setdefault(path, []).append(info.location)
    return {path: places[0] for path, places in locations.items() if len(places) == 1}
