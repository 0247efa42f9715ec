"""Plan of a data file rewrite, made from a snapshot's manifests alone; it can be shown, saved and run.

Files are ordered by (data sequence number, path), so that the plan of a snapshot is deterministic, and grouped by (spec,
partition). A plan is run exactly as it is or fails; it is never silently replaced.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import (
    commit as cm,
    errors,
    expressions as ex,
    manifests as mf,
    metadata as md,
    partitioning as pt,
    planning,
)
from icefloe.maintenance.engines import engine_of
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.maintenance.options import Options, OptionValue, options_of
from icefloe.maintenance.rewrite.choice import Choice, choice_of
from icefloe.maintenance.rewrite.file_sizes import FileSizes
from icefloe.maintenance.rewrite.job import PROCEDURE, RewriteGroup, RewriteJob, output_spec, sizes_of
from icefloe.maintenance.rewrite.options import (
    COMPRESSION_FACTOR,
    JOB_ORDER,
    MAX_FILES,
    REWRITE_OPTIONS,
)
from icefloe.maintenance.rewrite.result import RewriteResult
from icefloe.maintenance.rewrite.run import run_rewrite
from icefloe.maintenance.rewrite.strategies import strategy_of, strategy_options
from icefloe.schema import JSON, Value
from icefloe.verification import Listener

_COLUMNS = pa.schema(
    {"path": pa.string(), "number": pa.int64(), "size": pa.int64(), "rows": pa.int64(), "partition": pa.int64()}
    | {"due": pa.bool_()}
)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files of one partition to rewrite together."""

    spec_id: int
    partition: tuple[Value, ...]
    files: tuple[str, ...]
    sizes: tuple[int, ...]
    rows: tuple[int, ...]

    @property
    def size_in_bytes(self) -> int:
        """Total size of the files."""
        return sum(self.sizes)

    def first(self, count: int) -> "FileGroup":
        """Return the group limited to a number of files."""
        return replace(self, files=self.files[:count], sizes=self.sizes[:count], rows=self.rows[:count])


@dataclass(slots=True, eq=False)
class _Partitions:
    """The partitions of files so far, numbered."""

    numbers: dict[object, int] = field(default_factory=dict)
    values: list[tuple[int, tuple[Value, ...]]] = field(default_factory=list)

    def of(self, batch: planning.ScanBatch) -> planning.Numbers:
        """Return the partition number of each file."""
        numbers = []
        for key, values in zip(batch.groups.keys(), batch.groups.tuples, strict=True):
            if key not in self.numbers:
                self.numbers[key] = len(self.values)
                self.values.append((batch.files.spec_id, values))
            numbers.append(self.numbers[key])
        return np.array(numbers, np.int64)[batch.groups.of]


def file_groups(scan: planning.TableScan, where: str | ex.Expression | None, choice: Choice) -> list[FileGroup]:
    """Return the groups worth rewriting; `where` selects whole files that may contain matching rows.

    The filter only selects files: planning a scan with it would leave out deletes of other rows in a file.
    """
    chosen = (
        None if isinstance(planning.parsed_filter(where), ex.AlwaysTrue) else _paths(replace(scan, row_filter=where))
    )
    partitions = _Partitions()
    parts = [_candidates(batch, scan, choice, chosen, partitions) for batch in _batches(scan)]
    files = pa.concat_tables([_COLUMNS.empty_table(), *parts])
    files = files.sort_by([("number", "ascending"), ("path", "ascending")])
    return list(_grouped(files, partitions, choice.sizes))


def _batches(scan: planning.TableScan) -> Iterator[planning.ScanBatch]:
    plan = scan.plan()
    if plan is not None:
        with plan:
            yield from plan


def _paths(scan: planning.TableScan) -> pa.Array:
    parts = [batch.files.column("file_path") for batch in _batches(scan)]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


def _candidates(
    batch: planning.ScanBatch,
    scan: planning.TableScan,
    choice: Choice,
    chosen: pa.Array | None,
    partitions: _Partitions,
) -> pa.Table:
    files = batch.files
    sizes = files.column("file_size_in_bytes").to_numpy(zero_copy_only=False).astype(np.int64)
    due = _has_many_deletes(batch, scan, choice) | choice.is_due(batch)
    taken = due | (choice.sizes.misfits(sizes) & ~choice.is_recent(files)) | choice.sizes.rewrite_all
    taken &= ~choice.is_young(batch)
    if chosen is not None:
        taken &= np.asarray(pc.is_in(files.column("file_path"), value_set=chosen))
    columns = [
        files.column("file_path").cast(pa.string()),
        pc.fill_null(files.column("sequence_number"), 0),
        pa.array(sizes),
        files.column("record_count"),
        pa.array(partitions.of(batch)),
        pa.array(due),
    ]
    return pa.table(columns, schema=_COLUMNS).filter(pa.array(taken))


def _has_many_deletes(batch: planning.ScanBatch, scan: planning.TableScan, choice: Choice) -> ex.Mask:
    """Which files have too many deletes, or too many rows that are known to be deleted."""
    rows = batch.files.column("record_count").to_numpy(zero_copy_only=False)
    if batch.deletes is None:
        return np.zeros(len(batch), np.bool_)
    if (of_vectors := batch.rows_of_vectors) is not None:
        count, deleted = (of_vectors >= 0).astype(np.int64), np.maximum(of_vectors, 0)
    else:
        single = planning.single_file_deletes(scan) if any(map(_names_none, _all_of(batch.deletes))) else frozenset()
        count = np.array([len(deletes) for deletes in batch.deletes], np.int64)
        deleted = np.array([_known_deleted(deletes, single) for deletes in batch.deletes], np.int64)
    deleted = np.minimum(deleted, rows)
    ratio = np.divide(deleted, rows, out=np.zeros(len(rows)), where=rows > 0)
    has_many = (count >= choice.most_deletes) | (ratio >= choice.most_deleted)
    return np.asarray((count > 0) & has_many)


def _all_of(deletes: Sequence[tuple[mf.DataFile, ...]]) -> Iterator[mf.DataFile]:
    return (file for files in deletes for file in files)


def _names_none(file: mf.DataFile) -> bool:
    return file.content is mf.FileContent.POSITION_DELETES and file.referenced_data_file is None


def _known_deleted(deletes: Sequence[mf.DataFile], single: frozenset[str]) -> int:
    """How many rows are deleted by what is about this file alone."""
    positions = (file for file in deletes if file.content is mf.FileContent.POSITION_DELETES)
    return sum(
        file.record_count for file in positions if file.referenced_data_file is not None or file.file_path in single
    )


def _grouped(files: pa.Table, partitions: _Partitions, sizes: FileSizes) -> Iterator[FileGroup]:
    """The groups, in the order of their first files."""
    of, due = files.column("partition").to_numpy(), files.column("due").to_numpy()
    size, rows = files.column("size").to_numpy(), files.column("rows").to_numpy()
    by_partition: dict[int, list[int]] = {}
    for row, number in enumerate(of.tolist()):
        by_partition.setdefault(number, []).append(row)
    groups = [
        group
        for members in by_partition.values()
        for group in sizes.groups(members, lambda row: int(size[row]), lambda row: bool(due[row]))
    ]
    paths = files.column("path")
    for group in sorted(groups):
        spec_id, values = partitions.values[of[group[0]]]
        names = tuple(paths.take(pa.array(group)).to_pylist())
        yield FileGroup(spec_id, values, names, tuple(size[group].tolist()), tuple(rows[group].tolist()))


_FORMAT = 1


@dataclass(frozen=True, slots=True)
class RewritePlan(RewriteJob):
    """A planned rewrite that can be shown, saved and run."""

    def run(self, engine: object | None = None, progress: Listener | None = None) -> RewriteResult:
        """Rewrite and commit the groups. Groups that conflict with another commit are not planned again."""
        return run_rewrite(self, engine_of(engine), progress)

    def to_json(self) -> str:
        """Return the plan as JSON for `from_json`."""
        fields = {name: getattr(self, name) for name in _SAVED}
        groups = [{name: getattr(group, name) for name in _GROUP_FIELDS} for group in self.groups]
        return json.dumps({"procedure": PROCEDURE, "format": _FORMAT, **fields, "groups": groups}, indent=1)

    @staticmethod
    def from_json(text: str, table: MaintainedTable) -> "RewritePlan":
        """Load a saved plan for its table."""
        try:
            saved = json.loads(text)
            if (saved["procedure"], saved["format"]) != (PROCEDURE, _FORMAT):
                raise errors.InvalidInputError(f"this is a plan of {saved['procedure']!r}, not of {PROCEDURE!r}")
            groups = tuple(_group_of(group) for group in saved["groups"])
            plan = RewritePlan(table, groups=groups, **{name: saved[name] for name in _SAVED})
        except (KeyError, TypeError, json.JSONDecodeError) as problem:
            raise errors.InvalidInputError(f"this is not a saved plan of {PROCEDURE}: {problem!r}") from None
        if plan.table_uuid != str(table.metadata.table_uuid):
            raise errors.StateError(f"the plan is for table {plan.table_uuid}; this is {table.metadata.table_uuid}")
        return plan


_SAVED = (
    "table_uuid",
    "branch",
    "snapshot_id",
    "strategy",
    "sort_order",
    "where",
    "options",
    "snapshot_properties",
)
_GROUP_FIELDS = tuple(RewriteGroup.__dataclass_fields__)


def _group_of(saved: Mapping[str, JSON]) -> RewriteGroup:
    values = {name: saved[name] for name in _GROUP_FIELDS}
    return RewriteGroup(**values | {"files": tuple(saved["files"])})  # type: ignore[arg-type]  # as JSON has them


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """A rewrite request with validated options."""

    table: MaintainedTable
    strategy: str | None = None
    sort_order: str | None = None
    where: str | ex.Expression | None = None
    options: Options = field(default_factory=dict)
    branch: str | None = None
    snapshot_properties: Mapping[str, str] | None = None

    @staticmethod
    def options_of(
        strategy: str | None,
        sort_order: str | None,
        options: Mapping[str, OptionValue] | None,
        keywords: Mapping[str, OptionValue | None] | None,
    ) -> Options:
        """Return the options of a call as text; raises an error if one does not belong to the strategy."""
        return options_of(PROCEDURE, (*REWRITE_OPTIONS, *strategy_options(sort_order, strategy)), options, keywords)

    def again(self, lost: Sequence[RewriteGroup], first_number: int) -> RewritePlan:
        """Plan again the partitions of groups that conflicted with another commit, on the latest state, with at most as many files."""
        partitions = {(group.spec_id, group.partition) for group in lost}
        limited = replace(self, options={**self.options, MAX_FILES.key: str(sum(len(each.files) for each in lost))})
        request = self if MAX_FILES.of(self.options) is None else limited
        return plan_rewrite(request, partitions, first_number)


def plan_rewrite(
    request: RewriteRequest, partitions: Collection[tuple[int, str]] | None = None, first_number: int = 1
) -> RewritePlan:
    """Plan a rewrite of the latest state of the table, or of some partitions; input is validated before anything is read."""
    table, texts = request.table, request.options
    metadata = table.refresh().metadata
    arrangement = strategy_of(request.strategy, request.sort_order, metadata, texts)
    name = _branch(metadata, request.branch)
    cm.target_of(metadata, name, request.snapshot_properties)
    cm.RowFilter.of(planning.parsed_filter(request.where), metadata)
    sizes = sizes_of(metadata, texts)
    ref = metadata.refs.get(name)
    scan = planning.TableScan(metadata, table.storage, ref=name if ref is not None else None)
    choice = choice_of(scan, sizes, output_spec(metadata, texts).spec_id, arrangement, texts)
    chosen = [
        group
        for group in file_groups(scan, request.where, choice)
        if partitions is None or (group.spec_id, _shown(group, metadata)) in partitions
    ]
    factor = COMPRESSION_FACTOR.of(texts) if arrangement.is_sort else 1.0
    return RewritePlan(
        table,
        str(metadata.table_uuid),
        name,
        None if ref is None else ref.snapshot_id,
        request.strategy,
        request.sort_order,
        None if request.where is None else str(request.where),
        texts,
        tuple(_numbered(_cut(_ordered(chosen, texts), texts), metadata, sizes, factor, first_number)),
        dict(request.snapshot_properties or {}),
    )


def _branch(metadata: md.TableMetadata, branch: str | None) -> str:
    name = md.MAIN_BRANCH if branch is None else branch
    ref = metadata.refs.get(name)
    if ref is None and name != md.MAIN_BRANCH:
        raise errors.StateError(f"the table has no branch {name!r}; a rewrite needs one that exists")
    if ref is not None and ref.is_tag:
        raise errors.StateError(f"{name!r} is a tag; a rewrite needs a branch")
    return name


_ORDERS = {
    "bytes-asc": lambda group: group.size_in_bytes,
    "bytes-desc": lambda group: -group.size_in_bytes,
    "files-asc": lambda group: len(group.files),
    "files-desc": lambda group: -len(group.files),
}


def _ordered(groups: list[FileGroup], options: Options) -> list[FileGroup]:
    key = _ORDERS.get(JOB_ORDER.of(options))
    return groups if key is None else sorted(groups, key=key)


def _cut(groups: list[FileGroup], options: Options) -> list[FileGroup]:
    """Return the first groups, the last one truncated, up to the maximum number of files."""
    left = MAX_FILES.of(options)
    if left is None:
        return groups
    kept = []
    for group in groups:
        if left > 0:
            kept.append(group.first(left))
            left -= len(kept[-1].files)
    return kept


def _numbered(
    groups: list[FileGroup], metadata: md.TableMetadata, sizes: FileSizes, factor: float, first: int
) -> list[RewriteGroup]:
    return [
        RewriteGroup(
            number,
            group.spec_id,
            _shown(group, metadata),
            group.files,
            group.size_in_bytes,
            sum(group.rows),
            sizes.expected_files(int(group.size_in_bytes * factor)),
        )
        for number, group in enumerate(groups, first)
    ]


def _shown(group: FileGroup, metadata: md.TableMetadata) -> str:
    try:
        return pt.partition_path(metadata.spec(group.spec_id), group.partition, metadata.schema())
    except errors.IcefloeError:
        # The column may have been dropped.
        return ", ".join(map(str, group.partition))
