"""Manifest rewrites: plan, commit and result."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field

from icefloe import commit as cm, errors, manifests as mf, metadata as md
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.metadata import summary as totals
from icefloe.progress import Listener, listener_or_bar
from icefloe.schema import JSON


@dataclass(frozen=True, slots=True)
class RewrittenManifests:
    """Result of a manifest rewrite: the counts of Java's procedure, and the new snapshot, if any."""

    rewritten_manifests_count: int = 0
    added_manifests_count: int = 0
    snapshot_id: int | None = field(default=None, kw_only=True)

    @property
    def counts(self) -> tuple[int, int]:
        """Return the counts in the order of Java's procedure."""
        return self.rewritten_manifests_count, self.added_manifests_count


@dataclass(frozen=True, slots=True)
class PlannedManifests:
    """Manifests of one spec and content to rewrite."""

    spec_id: int
    content: str
    reason: str
    files: int
    bytes: int
    manifests: tuple[str, ...]


@dataclass(frozen=True)
class RewriteManifestsPlan:
    """Manifests to rewrite, with reasons; `run` rewrites exactly these, or fails if the table has changed."""

    groups: tuple[PlannedManifests, ...]
    snapshot_id: int | None
    sort_by: tuple[str, ...]
    branch: str
    _table: MaintainedTable = field(repr=False, compare=False)

    def __str__(self) -> str:
        if not self.groups:
            return "manifests need no rewrite"
        return "\n".join(
            f"spec {each.spec_id}, {each.content}: {len(each.manifests)} manifests of {each.bytes} bytes with {each.files} "
            f"files: {each.reason}"
            for each in self.groups
        )

    def to_json(self) -> JSON:
        """Return the plan as JSON."""
        return {
            "snapshot-id": self.snapshot_id,
            "branch": self.branch,
            "sort-by": list(self.sort_by),
            "groups": [{**asdict(each), "manifests": list(each.manifests)} for each in self.groups],
        }

    def run(self, progress: Listener | None = None) -> RewrittenManifests:
        """Rewrite these manifests; fails if one of them is no longer in the table."""
        if not self.groups:
            return RewrittenManifests()
        only = frozenset(path for each in self.groups for path in each.manifests)
        return _commit(self._table, cm.ManifestChoice(sort_by=self.sort_by, only=only), self.branch, None, progress)


def rewrite_manifests(
    table: MaintainedTable,
    choice: cm.ManifestChoice,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    progress: Listener | None = None,
) -> RewrittenManifests:
    """Rewrite data and delete manifests that are worth it, in one commit."""
    return _commit(table, choice, branch, snapshot_properties, progress)


def plan_manifests(
    table: MaintainedTable, choice: cm.ManifestChoice, branch: str | None = None
) -> RewriteManifestsPlan:
    """Plan `rewrite_manifests` on the current state."""
    metadata = table.metadata
    choice.check(metadata)
    name = branch or md.MAIN_BRANCH
    ref = metadata.refs.get(name)
    snapshot = metadata.current_snapshot() if ref is None else metadata.snapshot(ref.snapshot_id)
    live = () if snapshot is None else _live_manifests(table, snapshot)
    outdated = cm.outdated_manifests(metadata, live, table.storage.read, table.storage.limits)
    groups = tuple(map(_shown, cm.groups_to_rewrite(metadata, live, choice, outdated)))
    return RewriteManifestsPlan(
        groups, None if snapshot is None else snapshot.snapshot_id, choice.sort_by, name, _table=table
    )


def manifest_choice(
    spec_id: int | None, sort_by: Iterable[str] | None, choose: Callable[[mf.ManifestFile], bool] | None
) -> cm.ManifestChoice:
    """Return the choice for the arguments of a call."""
    if sort_by is not None and (isinstance(sort_by, str) or not (sort_by := tuple(sort_by))):
        raise errors.InvalidInputError(f"sort_by must be a list of partition field names, not {sort_by!r}")
    return cm.ManifestChoice(spec_id=spec_id, sort_by=tuple(sort_by or ()), choose=choose)


def _live_manifests(table: MaintainedTable, snapshot: md.Snapshot) -> list[mf.ManifestFile]:
    storage = table.storage
    source = mf.SnapshotManifests(table.metadata, storage.read, storage.limits, keyring=storage.keyring)
    return [manifest for manifest in source.counted(snapshot) if manifest.has_live_files]


def _shown(group: cm.ManifestGroup) -> PlannedManifests:
    return PlannedManifests(
        group.spec_id,
        group.content.name.lower(),
        group.reason,
        group.live_files,
        sum(manifest.manifest_length for manifest in group.manifests),
        tuple(manifest.manifest_path for manifest in group.manifests),
    )


def _commit(
    table: MaintainedTable,
    choice: cm.ManifestChoice,
    branch: str | None,
    properties: Mapping[str, str] | None,
    progress: Listener | None,
) -> RewrittenManifests:
    choice.check(table.metadata)
    operation = cm.RewriteManifests(choice=choice, progress=listener_or_bar(progress))
    change = cm.SnapshotChange(operation, cm.target_of(table.metadata, branch, properties))
    with table.transaction() as tx:
        tx.add(change)
        done = tx.commit()
    if not change.snapshot_ids:
        return RewrittenManifests()
    [snapshot_id] = change.snapshot_ids
    made = done.state.metadata.snapshot_by_id(snapshot_id)
    summary = {} if made is None or made.summary is None else made.summary.properties
    replaced, added = (int(summary.get(key, 0)) for key in (totals.MANIFESTS_REPLACED, totals.MANIFESTS_CREATED))
    return RewrittenManifests(replaced, added, snapshot_id=snapshot_id)
