"""The check of a whole table: which parts are looked at in which order. Nothing is ever changed."""

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from icefloe import errors, manifests as mf, metadata as md, parallel, planning
from icefloe.progress import Listener, Stage, listener_or_bar
from icefloe.storage import Storage, is_in_no_store
from icefloe.verification import subject as subjects
from icefloe.verification.codes import Code, Level
from icefloe.verification.digest import Digest, digest_of, is_in_sample, joined, recorded, wanted_of
from icefloe.verification.document import check_document
from icefloe.verification.entries import EntryCheck
from icefloe.verification.files import FileCheck, StoredFile, stored_files
from icefloe.verification.report import Figures, Findings, VerificationReport
from icefloe.verification.snapshots import SnapshotCheck, check_added_again, check_ids_of_rows, check_row_ids

_UNREADABLE = (Code.FILE_MISSING, Code.FILE_UNREADABLE)

MOST_FINDINGS = 1000
"""Of each code so many findings are kept; the rest is counted."""


def verify(
    metadata: md.TableMetadata,
    storage: Storage,
    metadata_location: str | None = None,
    *,
    snapshot_id: int | None = None,
    ref: str | None = None,
    snapshots: str = subjects.ALL_SNAPSHOTS,
    level: Level | str = Level.FOOTERS,
    sample: float = 1.0,
    locations: Sequence[str] = (),
    workers: int | None = None,
    progress: Listener | None = None,
) -> VerificationReport:
    """Check one snapshot, those of all branches and tags (`snapshots="refs"`), or all that the table has.

    `sample` is the part of the files to look into at the levels `footers` and `data`; all of them are asked for. Files
    under `locations` are as good as those under the table's own.
    """
    chosen, is_whole = subjects.choose_snapshots(metadata, snapshot_id, ref, snapshots)
    subject = subjects.Subject(
        metadata,
        metadata_location,
        storage,
        chosen,
        is_whole,
        subjects.check_level(level),
        subjects.check_sample(sample),
        subjects.check_locations(locations),
        planning.default_workers() if workers is None else max(1, workers),
        Findings(MOST_FINDINGS),
        listener_or_bar(progress),
    )
    return _Run(subject).report()


class _Run:
    """One check, stage by stage."""

    def __init__(self, subject: subjects.Subject) -> None:
        self._subject = subject
        self._numbers: dict[mf.ManifestFile, int] = {}
        self._manifests: list[mf.ManifestFile] = []
        self._listed: dict[int, list[int]] = {}
        self._owners: dict[int, int] = {}
        """The first snapshot that lists each manifest, by the manifest's number."""
        self._entries = 0
        self._paths = lru_cache(maxsize=4)(self._read_paths)

    def report(self) -> VerificationReport:
        started = time.perf_counter()
        subject = self._subject
        check_document(subject)
        self._read_lists()
        digests = self._read_manifests()
        self._check_snapshots(digests)
        everything = joined(digests.values())
        digests.clear()
        check_row_ids(subject, everything, self._path_of)
        check_added_again(subject, everything, self._manifests, self._path_of)
        files = FileCheck(subject, everything)
        if subject.level.includes(Level.FILES):
            files.expect(len(everything) + len(self._manifests))
            self._check_metadata_files(files)
            self._check_files(files, everything)
        check_ids_of_rows(subject)
        seconds = time.perf_counter() - started
        figures = Figures(len(subject.snapshots), len(self._numbers), self._entries, seconds=seconds, **files.done)
        return VerificationReport(subject.level, subject.findings.sorted(), figures, dict(subject.findings.counts))

    def _read_lists(self) -> None:
        subject = self._subject
        stage = Stage("snapshots", len(subject.snapshots), subject.listener)
        for snapshot in subject.snapshots:
            try:
                manifests = subject.source(snapshot.snapshot_id).manifests(snapshot)
            except errors.IcefloeError as error:
                self._unreadable(error, snapshot.manifest_list, snapshot.snapshot_id)
            else:
                numbers = [self._numbers.setdefault(manifest, len(self._numbers)) for manifest in manifests]
                self._listed[snapshot.snapshot_id] = numbers
                for number, manifest in zip(numbers, manifests, strict=True):
                    self._owners.setdefault(number, snapshot.snapshot_id)
                    self._check_listed(manifest, snapshot.snapshot_id, snapshot.sequence_number)
            stage.step()
        self._manifests = list(self._numbers)

    def _check_listed(self, manifest: mf.ManifestFile, snapshot_id: int, sequence_number: int) -> None:
        findings, path = self._subject.findings, manifest.manifest_path
        if manifest.sequence_number > sequence_number:
            message = f"its sequence number {manifest.sequence_number} is above {sequence_number}, that of the snapshot"
            findings.add(Code.MANIFEST_SEQUENCE, message, path, snapshot_id)
        if not self._subject.is_inside(path):
            findings.add(Code.OUTSIDE_LOCATION, "it is outside of the table's locations", path, snapshot_id)

    def _read_manifests(self) -> dict[int, Digest]:
        """The live files of all manifests; those that cannot be read are reported and left out."""
        digests: dict[int, Digest] = {}
        numbers = range(len(self._manifests))
        stage = Stage("manifests", len(numbers), self._subject.listener)
        results = parallel.in_order(self._read_manifest, numbers, self._subject.workers)
        for number, (digest, entries) in enumerate(results):
            self._entries += entries
            if digest is not None:
                digests[number] = digest
            stage.step()
        return digests

    def _read_manifest(self, number: int) -> tuple[Digest | None, int]:
        subject, snapshot_id, manifest = self._subject, self._owners[number], self._manifests[number]
        spec = subject.metadata.specs_by_id.get(manifest.partition_spec_id)
        if spec is None:
            message = f"its partition spec id is {manifest.partition_spec_id}; the table has no such spec"
            subject.findings.add(Code.SPEC_UNRESOLVED, message, manifest.manifest_path, snapshot_id)
            return None, 0
        try:
            columns = subject.source(snapshot_id).read(manifest, wanted_of(manifest.content))
        except errors.IcefloeError as error:
            self._unreadable(error, manifest.manifest_path, snapshot_id)
            return None, 0
        is_inline = subject.metadata.snapshot(snapshot_id).manifest_list is None
        EntryCheck(subject, manifest, columns, snapshot_id, is_inline).run()
        return digest_of(columns, number, spec.is_unpartitioned), len(columns)

    def _unreadable(self, error: errors.IcefloeError, location: str | None, snapshot_id: int) -> None:
        problem = str(error)
        if isinstance(error, errors.CorruptFileError | errors.StorageError):
            location, problem = error.location, error.problem
        code = Code.FILE_MISSING if isinstance(error, errors.LocationNotFoundError) else Code.FILE_UNREADABLE
        self._subject.findings.add(code, problem, location, snapshot_id)

    def _check_snapshots(self, digests: dict[int, Digest]) -> None:
        for snapshot in self._subject.snapshots:
            numbers = self._listed.get(snapshot.snapshot_id)
            # What is missing would make half of the rest look wrong.
            if numbers is not None and all(number in digests for number in numbers):
                files = joined(digests[number] for number in numbers)
                SnapshotCheck(self._subject, snapshot, files, self._path_of).run()

    def _path_of(self, manifest: int, index: int) -> str:
        """The path of a file that something is wrong with, from its manifest, which is read again."""
        return str(self._paths(manifest).column("file_path")[index].as_py())

    def _read_paths(self, number: int) -> mf.ManifestColumns:
        return self._subject.source(self._owners[number]).read(self._manifests[number], mf.WITHOUT_METRICS)

    def _check_metadata_files(self, files: FileCheck) -> None:
        subject = self._subject
        metadata = subject.metadata
        reported = {finding.location for finding in subject.findings.sorted() if finding.code in _UNREADABLE}
        numbers = {manifest.manifest_path: number for manifest, number in self._numbers.items()}

        def check_manifest(number: int) -> None:
            manifest = self._manifests[number]
            if manifest.manifest_path not in reported:
                files.check_stored(manifest.manifest_path, manifest.manifest_length, self._owners[number])

        parallel.for_each(check_manifest, numbers.values(), subject.workers, "icefloe-verify")
        if not subject.is_whole:
            return
        if subject.metadata_location is not None and not is_in_no_store(subject.metadata_location):
            files.check_stored(subject.metadata_location, None)
        for entry in metadata.metadata_log:
            files.check_stored(subject.resolved(entry.metadata_file), None, None, Code.LOG_UNRESOLVED)
        for file in metadata.statistics:
            location, size = subject.resolved(file.statistics_path), file.file_size_in_bytes
            if files.check_stored(location, size, file.snapshot_id) and subject.level.includes(Level.FOOTERS):
                files.check_statistics(file, location)
        for other in metadata.partition_statistics:
            files.check_stored(subject.resolved(other.statistics_path), other.file_size_in_bytes, other.snapshot_id)

    def _check_files(self, files: FileCheck, everything: Digest) -> None:
        """Each file once, though many manifests may name it."""
        first = np.unique(recorded(everything), return_index=True)[1]
        chosen = everything.take(first[np.lexsort((everything.index[first], everything.manifest[first]))])
        stage = Stage("files", len(chosen), self._subject.listener)

        def work(stored: StoredFile) -> None:
            files.check(stored)
            for _ in stored.entries:
                stage.step()

        parallel.for_each(work, self._stored_files(chosen), self._subject.workers, "icefloe-verify")

    def _stored_files(self, chosen: Digest) -> Iterator[StoredFile]:
        subject = self._subject
        wanted = mf.EVERYTHING if subject.level.includes(Level.FOOTERS) else mf.WITHOUT_METRICS
        numbers, starts = np.unique(chosen.manifest, return_index=True)
        ends = [*starts.tolist(), len(chosen)][1:]
        for number, start, end in zip(numbers.tolist(), starts.tolist(), ends, strict=True):
            indices = pa.array(chosen.index[start:end])
            snapshot_id = self._owners[number]
            columns = subject.source(snapshot_id).read(self._manifests[number], wanted).take(indices)
            looks = is_in_sample(columns.column("file_path"), subject.sample).tolist()
            yield from stored_files(columns.files(), looks, snapshot_id)
