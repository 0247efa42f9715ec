"""What a rewrite of data files will do: a value that can be shown, saved and run, made of a snapshot's manifests alone.

A plan is run as it is or fails; it is never made anew in silence.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from icefloe.commit import target_of
from icefloe.errors import IcefloeError, InvalidInputError, StateError
from icefloe.expressions import Expression
from icefloe.maintenance.engines import engine_of
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.maintenance.options import Options, OptionValue, options_of
from icefloe.maintenance.rewrite.candidates import Choice, FileGroup, file_groups
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
from icefloe.metadata import MAIN_BRANCH, TableMetadata
from icefloe.partitioning import partition_path
from icefloe.planning import TableScan
from icefloe.schema import JSON
from icefloe.verification import Listener

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class RewritePlan(RewriteJob):
    """A rewrite that is planned: it can be shown, saved, and run."""

    def run(self, engine: object | None = None, progress: Listener | None = None) -> RewriteResult:
        """Do it: rewrite the groups, and commit them."""
        return run_rewrite(self, engine_of(engine), progress)

    def to_json(self) -> str:
        """The plan as text, for `from_json`."""
        fields = {name: getattr(self, name) for name in _SAVED}
        groups = [{name: getattr(group, name) for name in _GROUP_FIELDS} for group in self.groups]
        return json.dumps({"procedure": PROCEDURE, "format": _FORMAT, **fields, "groups": groups}, indent=1)

    @staticmethod
    def from_json(text: str, table: MaintainedTable) -> "RewritePlan":
        """A plan that was saved, for the table that it was made for."""
        try:
            saved = json.loads(text)
            if (saved["procedure"], saved["format"]) != (PROCEDURE, _FORMAT):
                raise InvalidInputError(f"the text is a plan of {saved['procedure']!r}, not of {PROCEDURE!r}")
            groups = tuple(_group_of(group) for group in saved["groups"])
            plan = RewritePlan(table, groups=groups, **{name: saved[name] for name in _SAVED})
        except (KeyError, TypeError, json.JSONDecodeError) as problem:
            raise InvalidInputError(f"the text is no saved plan of {PROCEDURE}: {problem!r}") from None
        if plan.table_uuid != str(table.metadata.table_uuid):
            raise StateError(f"the plan is for table {plan.table_uuid}; this is {table.metadata.table_uuid}")
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


def plan_rewrite(
    table: MaintainedTable,
    *,
    strategy: str | None = None,
    sort_order: str | None = None,
    where: str | Expression | None = None,
    options: Mapping[str, OptionValue] | None = None,
    keywords: Mapping[str, OptionValue | None] | None = None,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
) -> RewritePlan:
    """The plan for the newest state of the table; bad input is refused before anything is read."""
    metadata = table.refresh().metadata
    known = (*REWRITE_OPTIONS, *strategy_options(sort_order, strategy))
    texts = options_of(PROCEDURE, known, options, keywords)
    arrangement = strategy_of(strategy, sort_order, metadata, texts)
    name = _branch(metadata, branch)
    target_of(metadata, name, snapshot_properties)
    sizes = sizes_of(metadata, texts)
    spec = output_spec(metadata, texts)
    ref = metadata.refs.get(name)
    scan = TableScan(metadata, table.storage, ref=name if ref is not None else None)
    chosen = file_groups(scan, where, Choice.of(texts, sizes, spec.spec_id))
    factor = COMPRESSION_FACTOR.of(texts) if arrangement.is_sort else 1.0
    return RewritePlan(
        table,
        str(metadata.table_uuid),
        name,
        None if ref is None else ref.snapshot_id,
        strategy,
        sort_order,
        None if where is None else str(where),
        texts,
        tuple(_numbered(_cut(_ordered(chosen, texts), texts), metadata, sizes, factor)),
        dict(snapshot_properties or {}),
    )


def _branch(metadata: TableMetadata, branch: str | None) -> str:
    name = MAIN_BRANCH if branch is None else branch
    ref = metadata.refs.get(name)
    if ref is None and name != MAIN_BRANCH:
        raise StateError(f"the table has no branch {name!r}; a rewrite needs one that exists")
    if ref is not None and ref.is_tag:
        raise StateError(f"{name!r} is a tag; a rewrite needs a branch")
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
    """The first groups, and the first files of the last of them, up to the number of files that the caller allows."""
    left = MAX_FILES.of(options)
    if left is None:
        return groups
    kept = []
    for group in groups:
        if left > 0:
            kept.append(group.first(left))
            left -= len(kept[-1].files)
    return kept


def _numbered(groups: list[FileGroup], metadata: TableMetadata, sizes: FileSizes, factor: float) -> list[RewriteGroup]:
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
        for number, group in enumerate(groups, 1)
    ]


def _shown(group: FileGroup, metadata: TableMetadata) -> str:
    try:
        return partition_path(metadata.spec(group.spec_id), group.partition, metadata.schema())
    except IcefloeError:
        # Its column may be gone.
        return ", ".join(map(str, group.partition))
