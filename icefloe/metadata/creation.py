"""The metadata of a new table, before the first commit."""

import uuid as uuids
from collections.abc import Mapping

from icefloe import errors, partitioning as pt, properties as props
from icefloe.metadata.locations import is_absolute, strip_trailing_slash
from icefloe.metadata.table import TableMetadata
from icefloe.schema import Schema, assign_fresh_ids, check_schema_for_version
from icefloe.versions import DEFAULT_VERSION, Feature, allows, check_version

INITIAL_SCHEMA_ID = 0
INITIAL_SPEC_ID = 0


def new_table_metadata(
    schema: Schema,
    spec: pt.PartitionSpec = pt.UNPARTITIONED,
    order: pt.SortOrder = pt.UNSORTED,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
    format_version: int = DEFAULT_VERSION,
    *,
    uuid: str | uuids.UUID,
    timestamp_ms: int,
) -> TableMetadata:
    """Metadata of a new table. All ids are assigned afresh; the spec and the order are rebound to the columns by name."""
    version = check_version(format_version)
    settings = dict(properties or {})
    props.check_new_table_properties(settings, version)
    fresh = assign_fresh_ids(schema).with_id(INITIAL_SCHEMA_ID)
    check_schema_for_version(fresh, version)
    first_spec = pt.rebind_spec(spec, schema, fresh).with_id(INITIAL_SPEC_ID)
    first_order = pt.rebind_order(order, schema, fresh).with_id(pt.FIRST_ORDER_ID)
    return TableMetadata(
        format_version=version,
        table_uuid=str(uuid),
        location=checked_location(location, version),
        last_updated_ms=timestamp_ms,
        last_column_id=fresh.highest_field_id,
        schemas=(fresh,),
        current_schema_id=fresh.schema_id,
        partition_specs=(first_spec,),
        default_spec_id=first_spec.spec_id,
        last_partition_id=first_spec.last_field_id,
        sort_orders=(first_order,),
        default_sort_order_id=first_order.order_id,
        properties=settings,
    )


def checked_location(location: str | None, version: int) -> str | None:
    """A table location as a writer stores it: without a slash at the end; from v4 on absolute, or left to the catalog."""
    optional = allows(version, Feature.OPTIONAL_LOCATION)
    if location is None and optional:
        return None
    if not location:
        raise errors.InvalidLocationError(f"a v{version} table has the location {location!r}; it must have one")
    if optional and not is_absolute(location):
        raise errors.InvalidLocationError(
            f"table location {location!r} has no scheme; in v{version} it must be absolute, like 's3://bucket/table'"
        )
    return strip_trailing_slash(location)
