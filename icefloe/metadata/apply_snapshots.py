"""How snapshots, refs, logs, statistics and keys of a table change; every function returns new metadata."""

from collections.abc import Collection

from icefloe import errors, properties as props
from icefloe.metadata.refs import MAIN_BRANCH, SnapshotRef
from icefloe.metadata.snapshot import Snapshot, SnapshotLogEntry
from icefloe.metadata.table import EncryptedKey, OfSnapshot, PartitionStatisticsFile, StatisticsFile, TableMetadata
from icefloe.versions import Feature, allows, require

CLOCK_TOLERANCE_MS = 60_000
"""How far a time in a log may be before the one in front of it: Java refuses to read logs that go back further."""


def add_snapshot(metadata: TableMetadata, snapshot: Snapshot) -> TableMetadata:
    """The table with one more snapshot, which no branch points to yet."""
    if not (metadata.schemas and metadata.partition_specs and metadata.sort_orders):
        raise errors.InvalidMetadataError(
            "a snapshot is added before the table has a schema, a partition spec and a sort order"
        )
    if snapshot.snapshot_id in metadata.snapshots_by_id:
        raise errors.AlreadyExistsError(f"snapshot {snapshot.snapshot_id} is in the table already; ids must be unique")
    _check_form(metadata, snapshot)
    _check_sequence_number(metadata, snapshot)
    added = metadata.evolve(
        snapshots=(*metadata.snapshots, snapshot),
        last_sequence_number=max(metadata.last_sequence_number, snapshot.sequence_number),
        next_row_id=_next_row_id(metadata, snapshot),
    )
    # The lookup table is carried over too: rebuilding it for every one of many snapshots would take quadratic time.
    added.__dict__["snapshots_by_id"] = {**metadata.snapshots_by_id, snapshot.snapshot_id: snapshot}
    return added


def set_ref(metadata: TableMetadata, name: str, ref: SnapshotRef, changed_ms: int) -> TableMetadata:
    """The table with a branch or tag at a snapshot; `main` makes it current, and adds an entry to the snapshot log."""
    if metadata.refs.get(name) == ref:
        return metadata
    if ref.snapshot_id not in metadata.snapshots_by_id:
        raise errors.NoSuchSnapshotError(
            f"{ref.ref_type} {name!r} cannot be set to snapshot {ref.snapshot_id}: it does not exist"
        )
    refs = {**metadata.refs, name: ref}
    if name != MAIN_BRANCH:
        return metadata.evolve(refs=refs)
    if not ref.is_branch:
        raise errors.InvalidMetadataError(f"{MAIN_BRANCH!r} cannot be set to a tag; it must be a branch")
    if ref.snapshot_id == metadata.current_snapshot_id:
        return metadata.evolve(refs=refs)
    log = metadata.snapshot_log
    logged_ms = not_long_before(log[-1].timestamp_ms, changed_ms) if log else changed_ms
    return metadata.evolve(
        refs=refs,
        current_snapshot_id=ref.snapshot_id,
        snapshot_log=(*log, SnapshotLogEntry(ref.snapshot_id, logged_ms)),
    )


def not_long_before(earlier_ms: int, later_ms: int) -> int:
    """The time of the later event, or that of the earlier one if the clocks differ by more than the tolerance."""
    return earlier_ms if later_ms < earlier_ms - CLOCK_TOLERANCE_MS else later_ms


def remove_ref(metadata: TableMetadata, name: str) -> TableMetadata:
    """The table without a branch or tag; without `main` it has no current snapshot."""
    if name not in metadata.refs:
        return metadata
    refs = {other: ref for other, ref in metadata.refs.items() if other != name}
    current = None if name == MAIN_BRANCH else metadata.current_snapshot_id
    return metadata.evolve(refs=refs, current_snapshot_id=current)


def remove_snapshots(metadata: TableMetadata, snapshot_ids: Collection[int]) -> TableMetadata:
    """The table without these snapshots, their statistics, the refs to them, and the history that ends with them."""
    removed = frozenset(snapshot_ids) & metadata.snapshots_by_id.keys()
    if not removed:
        return metadata
    current = metadata.current_snapshot_id
    return metadata.evolve(
        snapshots=tuple(snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id not in removed),
        refs={name: ref for name, ref in metadata.refs.items() if ref.snapshot_id not in removed},
        current_snapshot_id=None if current in removed else current,
        statistics=tuple(file for file in metadata.statistics if file.snapshot_id not in removed),
        partition_statistics=tuple(file for file in metadata.partition_statistics if file.snapshot_id not in removed),
        snapshot_log=_log_after_gap(metadata, removed),
    )


def set_statistics(metadata: TableMetadata, file: StatisticsFile) -> TableMetadata:
    """The table with this as the only statistics file of its snapshot."""
    return metadata.evolve(statistics=(*_without_files(metadata.statistics, file.snapshot_id), file))


def remove_statistics(metadata: TableMetadata, snapshot_id: int) -> TableMetadata:
    """The table without statistics of a snapshot."""
    return metadata.changed(statistics=_without_files(metadata.statistics, snapshot_id))


def set_partition_statistics(metadata: TableMetadata, file: PartitionStatisticsFile) -> TableMetadata:
    """The table with this as the only partition statistics file of its snapshot."""
    others = _without_files(metadata.partition_statistics, file.snapshot_id)
    return metadata.evolve(partition_statistics=(*others, file))


def remove_partition_statistics(metadata: TableMetadata, snapshot_id: int) -> TableMetadata:
    """The table without partition statistics of a snapshot."""
    return metadata.changed(partition_statistics=_without_files(metadata.partition_statistics, snapshot_id))


def add_encryption_key(metadata: TableMetadata, key: EncryptedKey) -> TableMetadata:
    """The table with an encryption key; one of the same id stays as it is."""
    require(metadata.format_version, Feature.ENCRYPTION_KEYS, f"encryption key {key.key_id!r}")
    if any(known.key_id == key.key_id for known in metadata.encryption_keys):
        return metadata
    return metadata.evolve(encryption_keys=(*metadata.encryption_keys, key))


def remove_encryption_key(metadata: TableMetadata, key_id: str) -> TableMetadata:
    """The table without an encryption key, which nothing needs any more."""
    needing = [f"snapshot {each.snapshot_id}" for each in metadata.snapshots if each.key_id == key_id]
    # A statistics file says in its key metadata which entry has its key.
    needing += [
        f"statistics of {each.snapshot_id}" for each in metadata.statistics if each.key_metadata == key_id.encode()
    ]
    needing += [f"key {each.key_id!r}" for each in metadata.encryption_keys if each.encrypted_by_id == key_id]
    if needing and any(each.key_id == key_id for each in metadata.encryption_keys):
        raise errors.EncryptionError(
            f"encryption key {key_id!r} cannot be removed: {needing[0]} could no longer be opened"
        )
    return metadata.changed(encryption_keys=tuple(key for key in metadata.encryption_keys if key.key_id != key_id))


def _check_form(metadata: TableMetadata, snapshot: Snapshot) -> None:
    """A new snapshot has all fields that the version requires, and none that the version lacks (spec: Snapshots)."""
    version = metadata.format_version
    name = f"snapshot {snapshot.snapshot_id}"
    if snapshot.snapshot_id < 0:
        raise errors.InvalidMetadataError(
            f"snapshot id {snapshot.snapshot_id} is negative; it must be a positive number"
        )
    if snapshot.manifests is not None:
        require(version, Feature.INLINE_MANIFESTS, f"{name} without a manifest list")
    if snapshot.summary is None and allows(version, Feature.SNAPSHOT_SUMMARY_REQUIRED):
        raise errors.InvalidMetadataError(f"{name} has no summary; v{version} requires one")
    if snapshot.key_id is not None:
        require(version, Feature.ENCRYPTION_KEYS, f"{name} with key {snapshot.key_id!r}")
    elif props.ENCRYPTION_KEY_ID.of(metadata.properties) is not None:
        raise errors.EncryptionError(
            f"{name} has no key, but the table is encrypted: its manifest list would be in plain text; write it with a client that"
            " encrypts"
        )
    if snapshot.first_row_id is not None:
        require(version, Feature.ROW_LINEAGE, f"{name} with a first row id")
    elif allows(version, Feature.ROW_LINEAGE):
        raise errors.InvalidMetadataError(f"{name} has no first row id; v{version} requires one")


def _check_sequence_number(metadata: TableMetadata, snapshot: Snapshot) -> None:
    number, last = snapshot.sequence_number, metadata.last_sequence_number
    if not allows(metadata.format_version, Feature.SEQUENCE_NUMBERS):
        if number != 0:
            require(metadata.format_version, Feature.SEQUENCE_NUMBERS, f"snapshot {snapshot.snapshot_id} with {number}")
        return
    if number <= last and snapshot.parent_snapshot_id is not None:
        raise errors.CommitFailed(
            f"snapshot {snapshot.snapshot_id} has sequence number {number}, but the table is at {last} by now;"
            f" it must be above, like {last + 1}"
        )


def _next_row_id(metadata: TableMetadata, snapshot: Snapshot) -> int:
    if snapshot.first_row_id is None or snapshot.added_rows is None:
        return metadata.next_row_id
    if snapshot.first_row_id < metadata.next_row_id:
        raise errors.CommitFailed(
            f"snapshot {snapshot.snapshot_id} has first row id {snapshot.first_row_id}, but the table is at"
            f" {metadata.next_row_id} by now; ids must not be given twice"
        )
    # From the snapshot's own first id: with a gap before it, adding to the table's number would give ids out twice.
    return snapshot.first_row_id + snapshot.added_rows


def _log_after_gap(metadata: TableMetadata, removed: Collection[int]) -> tuple[SnapshotLogEntry, ...]:
    """The log after its last entry of a removed snapshot: with gaps it would claim that other snapshots were current then."""
    log = metadata.snapshot_log
    for position in range(len(log) - 1, -1, -1):
        snapshot_id = log[position].snapshot_id
        if snapshot_id in removed or snapshot_id not in metadata.snapshots_by_id:
            return log[position + 1 :]
    return log


def _without_files(files: tuple[OfSnapshot, ...], snapshot_id: int) -> tuple[OfSnapshot, ...]:
    return tuple(file for file in files if file.snapshot_id != snapshot_id)
