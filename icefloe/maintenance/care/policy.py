"""Decides which maintenance is worthwhile: from health and a policy to steps and file groups with reasons; no I/O."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

from icefloe import properties as props
from icefloe.maintenance.care.health import ManifestHealth, PartitionHealth, TableHealth
from icefloe.maintenance.options import unknown
from icefloe.maintenance.rewrite.job import RewriteGroup
from icefloe.versions import Feature, allows

OPEN_COST = 4 << 20
"""Cost of opening a file, in bytes read, as in `read.split.open-file-cost`."""
_KEY_COST = 50
"""Cost of an equality delete row in a scan, in bytes read."""
_MANY_DELETES = 5
"""Number of position delete files in a partition that make a rewrite worthwhile: the default of `min-input-files`."""
_DELETED_SHARE = 0.3
"""Fraction of deleted rows from which a file is rewritten: the default of `delete-ratio-threshold`."""


class Step(StrEnum):
    """Steps of a run, in order: equality deletes before compaction, and expiry after everything that creates snapshots."""

    CONVERT = "convert_equality_deletes"
    COMPACT = "rewrite_data_files"
    SORT = "rewrite_data_files by the table's order"
    DANGLING_DELETES = "remove_dangling_deletes"
    POSITION_DELETES = "rewrite_position_delete_files"
    MANIFESTS = "rewrite_manifests"
    EXPIRE = "expire_snapshots"
    STATISTICS = "compute_table_stats"
    ORPHANS = "remove_orphan_files"


@dataclass(frozen=True, slots=True)
class MaintenancePolicy:
    """What may be done automatically, and when it is worthwhile; each field is a table property (docs/maintenance.md)."""

    enabled: bool
    rewrite: bool
    deletes: bool
    manifests: bool
    expire: bool
    statistics: bool
    orphans: bool
    convert_equality: bool
    scans_expected: int
    quiet_ms: int
    hot_file_limit: int
    max_bytes: int
    cooldown_ms: int
    min_overlap_depth: int
    min_manifests: int
    min_fill: float
    max_snapshot_age_ms: int
    min_snapshots: int
    gc: bool

    @staticmethod
    def of(properties: Mapping[str, str], overrides: Mapping[str, object] | None = None) -> "MaintenancePolicy":
        """Return the policy from table properties, with overrides for one run."""
        texts = {key: _text(value) for key, value in (overrides or {}).items()}
        known = {known.key for known in _PROPERTIES.values() if known.key.startswith("maintenance.")}
        if others := sorted(texts.keys() - known):
            raise unknown("a policy", others[0], sorted(known))
        merged = {**properties, **texts}
        return MaintenancePolicy(**{name: known.of(merged) for name, known in _PROPERTIES.items()})  # type: ignore[arg-type]  # each property has the type of its field


_PROPERTIES: dict[str, props.Property[bool] | props.Property[int] | props.Property[float]] = {
    "enabled": props.MAINTENANCE_ENABLED,
    "rewrite": props.MAINTENANCE_REWRITE,
    "deletes": props.MAINTENANCE_DELETES,
    "manifests": props.MAINTENANCE_MANIFESTS,
    "expire": props.MAINTENANCE_EXPIRE,
    "statistics": props.MAINTENANCE_STATISTICS,
    "orphans": props.MAINTENANCE_ORPHANS,
    "convert_equality": props.MAINTENANCE_CONVERT_EQUALITY,
    "scans_expected": props.MAINTENANCE_SCANS_EXPECTED,
    "quiet_ms": props.MAINTENANCE_QUIET_MS,
    "hot_file_limit": props.MAINTENANCE_HOT_FILE_LIMIT,
    "max_bytes": props.MAINTENANCE_MAX_BYTES,
    "cooldown_ms": props.MAINTENANCE_COOLDOWN_MS,
    "min_overlap_depth": props.MAINTENANCE_MIN_OVERLAP_DEPTH,
    "min_manifests": props.MAINTENANCE_MIN_MANIFESTS,
    "min_fill": props.MAINTENANCE_MIN_FILL,
    "max_snapshot_age_ms": props.MAX_SNAPSHOT_AGE_MS,
    "min_snapshots": props.MIN_SNAPSHOTS_TO_KEEP,
    "gc": props.GC_ENABLED,
}
assert set(_PROPERTIES) == {field.name for field in fields(MaintenancePolicy)}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a step is due, and why."""

    step: Step
    is_due: bool
    reason: str

    def __str__(self) -> str:
        return f"{self.step}: {'due' if self.is_due else 'not due'}: {self.reason}"


def decide(health: TableHealth, policy: MaintenancePolicy) -> tuple[Decision, ...]:
    """Return the decisions on all steps, in order."""
    compact = _compact(health, policy)
    sort = _sort(health, policy)
    convert = _convert(health, policy)
    return (
        convert,
        compact,
        sort,
        _dangling(health, policy, follows=convert.is_due or compact.is_due or sort.is_due),
        _positions(health, policy),
        _manifests(health, policy),
        _expire(health, policy),
        _statistics(health, policy),
        _orphans(policy),
    )


# -- files


def _compact(health: TableHealth, policy: MaintenancePolicy) -> Decision:
    if not policy.rewrite:
        return Decision(Step.COMPACT, False, _off(props.MAINTENANCE_REWRITE.key))
    worth = [each for each in health.partitions if _has_work(each, health, policy)]
    small = sum(each.small_files for each in worth)
    deleted = sum(each.vector_deletes + each.position_deletes for each in worth)
    if worth:
        why = f"{small} small files and {deleted} deleted rows in {len(worth)} partitions that are not hot"
        return Decision(Step.COMPACT, True, why)
    total = health.total("small_files")
    return Decision(Step.COMPACT, False, f"{total} small files, none where a rewrite is worthwhile now")


def _has_work(each: PartitionHealth, health: TableHealth, policy: MaintenancePolicy) -> bool:
    misfits = each.small_files > 1 or each.large_files > 0
    return (misfits or _is_full_of_deletes(each)) and heat(each, health.now_ms, policy) is None


def _is_full_of_deletes(each: PartitionHealth) -> bool:
    return each.vector_deletes + each.position_deletes >= _DELETED_SHARE * max(each.records, 1)


def heat(each: PartitionHealth, now_ms: int, policy: MaintenancePolicy) -> str | None:
    """Return why a partition should be left alone for now; None if it need not."""
    if each.small_files >= policy.hot_file_limit:
        return None
    if each.changed_ms is not None and now_ms - each.changed_ms < policy.quiet_ms:
        return f"a writer changed it {_seconds(now_ms - each.changed_ms)} ago"
    if each.maintained_ms is not None and now_ms - each.maintained_ms < policy.cooldown_ms:
        return f"it was maintained {_seconds(now_ms - each.maintained_ms)} ago"
    return None


def _sort(health: TableHealth, policy: MaintenancePolicy) -> Decision:
    if not policy.rewrite:
        return Decision(Step.SORT, False, _off(props.MAINTENANCE_REWRITE.key))
    depths = [each.overlap_depth for each in health.partitions if each.overlap_depth is not None]
    if not depths:
        return Decision(Step.SORT, False, "the table has no sort order that file bounds can be compared with")
    count = len(overlapping(health, policy))
    why = f"{count} partitions with an overlap of {policy.min_overlap_depth} or more files; the highest is {max(depths):.1f}"
    return Decision(Step.SORT, count > 0, why)


def overlapping(health: TableHealth, policy: MaintenancePolicy) -> list[PartitionHealth]:
    """Return the partitions whose files overlap so much in the sort order that sorting them again is worthwhile."""
    return [
        each
        for each in health.partitions
        if each.overlap_depth is not None
        and each.overlap_depth >= policy.min_overlap_depth
        and heat(each, health.now_ms, policy) is None
    ]


@dataclass(frozen=True, slots=True)
class ChosenGroups:
    """The worthwhile groups of a rewrite, best first, and why the others are left out."""

    groups: tuple[RewriteGroup, ...]
    left: tuple[str, ...]
    bytes: int


def choose_groups(
    groups: Iterable[RewriteGroup],
    health: TableHealth,
    policy: MaintenancePolicy,
    budget: int,
    only: Sequence[PartitionHealth] | None = None,
) -> ChosenGroups:
    """Return the groups whose gain over the expected scans exceeds the cost, up to a budget of bytes.

    `only` restricts them to partitions that are rewritten regardless of the gain: those to sort again.
    """
    partitions = {(each.spec_id, each.partition): each for each in health.partitions}
    named = None if only is None else {(each.spec_id, each.partition) for each in only}
    left: list[str] = []
    scored: list[tuple[float, RewriteGroup]] = []
    for group in groups:
        key = (group.spec_id, group.partition)
        if named is not None and key not in named:
            continue
        partition = partitions.get(key, PartitionHealth(*key))
        value, price = gain(group, partition) * policy.scans_expected, 3 * group.size_in_bytes
        if (hot := heat(partition, health.now_ms, policy)) is not None:
            left.append(f"{_shown(group)}: {hot}")
        elif named is None and value < price:
            left.append(
                f"{_shown(group)}: {policy.scans_expected} scans would save {value} bytes, the rewrite costs {price}"
            )
        else:
            scored.append((value / max(price, 1), group))
    return _within(sorted(scored, key=lambda each: -each[0]), budget, left)


def _within(scored: Iterable[tuple[float, RewriteGroup]], budget: int, left: list[str]) -> ChosenGroups:
    chosen: list[RewriteGroup] = []
    spent = 0
    for _, group in scored:
        if spent + group.size_in_bytes > budget:
            left.append(f"{_shown(group)}: {group.size_in_bytes} bytes exceed the budget")
        else:
            chosen.append(group)
            spent += group.size_in_bytes
    return ChosenGroups(tuple(chosen), tuple(left), spent)


def gain(group: RewriteGroup, partition: PartitionHealth) -> int:
    """Return how many bytes a scan of the group's files saves once they are rewritten."""
    files = len(group.files)
    share = files / max(partition.data_files, files, 1)
    deletes = partition.delete_bytes + partition.equality_deletes * _KEY_COST
    deletes += OPEN_COST * (
        partition.position_delete_files + partition.deletion_vectors + partition.equality_delete_files
    )
    before = max(group.size_in_bytes, files * OPEN_COST) + int(share * deletes)
    deleted = min(partition.vector_deletes + partition.position_deletes, partition.records)
    live = group.size_in_bytes - group.size_in_bytes * deleted // max(partition.records, 1)
    return before - max(live, group.expected_files * OPEN_COST)


def _shown(group: RewriteGroup) -> str:
    return f"{group.partition or 'the table'} (spec {group.spec_id}, {len(group.files)} files)"


# -- deletes, manifests, snapshots, statistics


def _dangling(health: TableHealth, policy: MaintenancePolicy, follows: bool) -> Decision:
    count = health.dangling.removed_delete_files_count
    has_deletes = health.delete_manifests.entries > 0
    if not policy.deletes:
        return Decision(Step.DANGLING_DELETES, False, _off(props.MAINTENANCE_DELETES.key))
    if count:
        return Decision(Step.DANGLING_DELETES, True, f"{count} dangling delete files")
    if follows and has_deletes:
        return Decision(Step.DANGLING_DELETES, True, "earlier steps rewrite files, which may leave dangling deletes")
    return Decision(Step.DANGLING_DELETES, False, "no dangling delete files")


def _convert(health: TableHealth, policy: MaintenancePolicy) -> Decision:
    if not (policy.deletes and policy.convert_equality):
        return Decision(
            Step.CONVERT, False, _off(f"{props.MAINTENANCE_DELETES.key} or {props.MAINTENANCE_CONVERT_EQUALITY.key}")
        )
    if not allows(health.format_version, Feature.DELETION_VECTORS):
        return Decision(Step.CONVERT, False, f"v{health.format_version} does not support deletion vectors")
    count = health.total("equality_delete_files") - health.dangling.removed_equality_delete_files_count
    cold = [
        each for each in health.partitions if each.equality_delete_files and heat(each, health.now_ms, policy) is None
    ]
    why = f"{count} equality delete files delete rows, in {len(cold)} partitions that are not hot"
    return Decision(Step.CONVERT, count > 0 and bool(cold), why)


def _positions(health: TableHealth, policy: MaintenancePolicy) -> Decision:
    if not policy.deletes:
        return Decision(Step.POSITION_DELETES, False, _off(props.MAINTENANCE_DELETES.key))
    cold = [each for each in health.partitions if heat(each, health.now_ms, policy) is None]
    many = max((each.position_delete_files for each in cold), default=0)
    if allows(health.format_version, Feature.DELETION_VECTORS):
        return Decision(
            Step.POSITION_DELETES,
            many > 0,
            f"{many} position delete files in a partition that could be deletion vectors",
        )
    return Decision(
        Step.POSITION_DELETES, many >= _MANY_DELETES, f"at most {many} position delete files in a partition"
    )


def _orphans(policy: MaintenancePolicy) -> Decision:
    is_on = policy.orphans and policy.gc
    return Decision(
        Step.ORPHANS, is_on, f"{'enabled' if is_on else 'disabled'} by {props.MAINTENANCE_ORPHANS.key} and gc.enabled"
    )


def _manifests(health: TableHealth, policy: MaintenancePolicy) -> Decision:
    if not policy.manifests:
        return Decision(Step.MANIFESTS, False, _off(props.MAINTENANCE_MANIFESTS.key))
    for each in (health.data_manifests, health.delete_manifests):
        if _is_worth_it(each, health.manifest_target, policy):
            return Decision(
                Step.MANIFESTS, True, f"{each.count} manifests of {each.bytes} bytes: {'; '.join(each.reasons)}"
            )
    count = health.data_manifests.count + health.delete_manifests.count
    return Decision(Step.MANIFESTS, False, f"{count} manifests, few or large enough")


def _is_worth_it(each: ManifestHealth, target: int, policy: MaintenancePolicy) -> bool:
    is_many = each.count > policy.min_manifests
    is_thin = each.bytes < policy.min_fill * target * each.count
    return bool(each.reasons) and (each.bytes > 2 * target * each.count or (is_many and (is_thin or _is_spread(each))))


def _is_spread(each: ManifestHealth) -> bool:
    return any("spread" in reason for reason in each.reasons)


def _expire(health: TableHealth, policy: MaintenancePolicy) -> Decision:
    if not policy.expire:
        return Decision(Step.EXPIRE, False, _off(props.MAINTENANCE_EXPIRE.key))
    if not policy.gc:
        return Decision(Step.EXPIRE, False, _off(props.GC_ENABLED.key))
    if health.oldest_snapshot_ms is None or health.snapshots <= policy.min_snapshots:
        return Decision(Step.EXPIRE, False, f"{health.snapshots} snapshots, no more than the number to keep")
    age = health.now_ms - health.oldest_snapshot_ms
    why = f"the oldest of {health.snapshots} snapshots is {_seconds(age)} old; the retention is {_seconds(policy.max_snapshot_age_ms)}"
    return Decision(Step.EXPIRE, age > policy.max_snapshot_age_ms, why)


def _statistics(health: TableHealth, policy: MaintenancePolicy) -> Decision:
    if not policy.statistics:
        return Decision(Step.STATISTICS, False, _off(props.MAINTENANCE_STATISTICS.key))
    if health.snapshot_id is None or health.has_statistics:
        return Decision(Step.STATISTICS, False, "the current snapshot has statistics or no rows")
    return Decision(Step.STATISTICS, True, "the current snapshot has no statistics")


def _off(key: str) -> str:
    return f"disabled by {key}"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.0f} s"
