"""Checks that the parts of a document of table or view metadata fit together; errors name the offending field."""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NoReturn

from icefloe.errors import InvalidMetadataError
from icefloe.metadata.locations import is_absolute
from icefloe.metadata.refs import MAIN_BRANCH
from icefloe.metadata.table import TableMetadata
from icefloe.metadata.view import ViewMetadata
from icefloe.partitioning import transforms as tr
from icefloe.versions import Feature, allows

_TABLE, _VIEW = "table metadata", "view metadata"


def check_table(metadata: TableMetadata) -> None:
    """Fail unless ids are unique and everything referenced by id exists."""
    _check_unique("schemas", "schema-id", (schema.schema_id for schema in metadata.schemas))
    _check_unique("partition-specs", "spec-id", (spec.spec_id for spec in metadata.partition_specs))
    _check_unique("sort-orders", "order-id", (order.order_id for order in metadata.sort_orders))
    _check_unique("encryption-keys", "key-id", (key.key_id for key in metadata.encryption_keys))
    check_member("current-schema-id", metadata.current_schema_id, "schemas", metadata.schemas_by_id)
    check_member("default-spec-id", metadata.default_spec_id, "partition-specs", metadata.specs_by_id)
    check_member("default-sort-order-id", metadata.default_sort_order_id, "sort-orders", metadata.sort_orders_by_id)
    _check_sources(metadata)
    _check_snapshots(metadata)
    _check_refs(metadata)
    _check_location(metadata)
    if metadata.next_row_id < 0:
        _refuse("next-row-id", f"is {metadata.next_row_id}; it must not be negative")


def check_view(view: ViewMetadata) -> None:
    """Fail unless ids are unique and the current version and its schema exist."""
    version_ids, schema_ids = [version.version_id for version in view.versions], [s.schema_id for s in view.schemas]
    _check_unique("versions", "version-id", version_ids, _VIEW)
    _check_unique("schemas", "schema-id", schema_ids, _VIEW)
    check_member("current-version-id", view.current_version_id, "versions", version_ids, _VIEW)
    check_member("schema-id", view.version().schema_id, "schemas", schema_ids, _VIEW)


def _check_snapshots(metadata: TableMetadata) -> None:
    if len(metadata.snapshots_by_id) != len(metadata.snapshots):
        _check_unique("snapshots", "snapshot-id", (snapshot.snapshot_id for snapshot in metadata.snapshots))
    highest = max(metadata.snapshots, key=lambda snapshot: snapshot.sequence_number, default=None)
    if highest is not None and highest.sequence_number > metadata.last_sequence_number:
        _refuse(
            "last-sequence-number",
            f"is {metadata.last_sequence_number}, but snapshot {highest.snapshot_id} has {highest.sequence_number}",
        )
    if metadata.current_snapshot_id is not None:
        check_member("current-snapshot-id", metadata.current_snapshot_id, "snapshots", metadata.snapshots_by_id)


def _check_refs(metadata: TableMetadata) -> None:
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in metadata.snapshots_by_id:
            _refuse(f"refs.{name}", f"points to snapshot {ref.snapshot_id}, which is not in `snapshots`")
    main = metadata.refs.get(MAIN_BRANCH)
    if main is None:
        return
    if not main.is_branch:
        _refuse(f"refs.{MAIN_BRANCH}", "is a tag; it must be a branch")
    if main.snapshot_id != metadata.current_snapshot_id:
        _refuse(
            "current-snapshot-id",
            f"is {metadata.current_snapshot_id}, but `refs.{MAIN_BRANCH}` points to {main.snapshot_id}; they must agree",
        )


def _check_sources(metadata: TableMetadata) -> None:
    """The default spec and order must fit the current schema; older ones need not."""
    columns = metadata.schema().fields_by_id
    for partition_field in metadata.spec().fields:
        missing = [source_id for source_id in partition_field.source_ids if source_id not in columns]
        if missing and not isinstance(partition_field.transform, tr.VoidTransform):
            _refuse(
                "default-spec-id",
                f"{metadata.default_spec_id} has the partition field {partition_field.name!r} of column {missing[0]},"
                " which is not in the current schema",
            )
    for sort_field in metadata.sort_order().fields:
        if missing := [source_id for source_id in sort_field.source_ids if source_id not in columns]:
            _refuse(
                "default-sort-order-id",
                f"{metadata.default_sort_order_id} sorts by column {missing[0]}, which is not in the current schema",
            )


def _check_location(metadata: TableMetadata) -> None:
    location = metadata.location
    if (
        allows(metadata.format_version, Feature.OPTIONAL_LOCATION)
        and location is not None
        and not is_absolute(location)
    ):
        _refuse("location", f"is {location!r}; in v{metadata.format_version} it must start with a scheme")


def _check_unique(field: str, key: str, ids: Iterable[object], what: str = _TABLE) -> None:
    [(most, count)] = Counter(ids).most_common(1) or [(None, 1)]
    if count > 1:
        _refuse(field, f"has {count} entries with `{key}` {most}; ids must be unique", what)


def check_member(field: str, value: int, holder: str, members: Collection[int], what: str = _TABLE) -> None:
    """Fail unless the id in a field is in the list that it refers to."""
    if value not in members:
        known = ", ".join(map(str, list(members)[:20])) or "nothing"
        _refuse(field, f"is {value}, which is not in `{holder}`; there is {known}", what)


def _refuse(field: str, problem: str, what: str = _TABLE) -> NoReturn:
    raise InvalidMetadataError(f"{what}: `{field}` {problem}")
