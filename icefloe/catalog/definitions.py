"""Decides what a user's words for a new table mean: schema, partition spec, sort order and properties."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from icefloe import properties as props
from icefloe.errors import (
    InvalidPartitionSpecError,
    InvalidPropertyError,
    InvalidSchemaError,
    InvalidSortOrderError,
)
from icefloe.metadata import TableMetadata, new_table_metadata
from icefloe.partitioning import (
    UNPARTITIONED,
    UNSORTED,
    PartitionSpec,
    SortOrder,
    parse_partition_spec,
    parse_sort_order,
)
from icefloe.schema import Schema, parse_ddl, schema_from_arrow
from icefloe.versions import Feature, allows

SchemaLike: TypeAlias = Schema | pa.Schema | str
"""A schema, one of Arrow, or a definition like `id long not null, name string`."""
SpecLike = PartitionSpec | str | Iterable[str] | None
"""A partition spec, or texts like `["days(ts)", "bucket(16, id)"]`; None for no partitions."""
OrderLike = SortOrder | str | Iterable[str] | None
"""A sort order, or texts like `["ts desc nulls last"]`; None for no order."""


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """What a table is to be: spec and order are over the ids of this schema, which a table gives afresh."""

    schema: Schema
    spec: PartitionSpec
    order: SortOrder
    properties: Mapping[str, str]
    """Without the format version."""
    format_version: int | None
    """None: the default for a new table, what it is for a replaced one."""

    def new_metadata(self, location: str, uuid: str, timestamp_ms: int) -> TableMetadata:
        """The metadata of a new table with this definition."""
        version = props.requested_version(
            {} if self.format_version is None else {props.FORMAT_VERSION: str(self.format_version)}
        )
        return new_table_metadata(
            self.schema,
            self.spec,
            self.order,
            location,
            self.properties,
            version,
            uuid=uuid,
            timestamp_ms=timestamp_ms,
        )


def define_table(
    schema: SchemaLike, spec: SpecLike, order: OrderLike, properties: Mapping[str, object] | None
) -> TableDefinition:
    """The definition, with everything that can be wrong in it checked as far as it can be without a table."""
    texts = checked_table_properties(properties)
    version = props.requested_version(texts) if props.FORMAT_VERSION in texts else None
    stored = {key: value for key, value in texts.items() if key != props.FORMAT_VERSION}
    real = read_schema(schema, version)
    return TableDefinition(real, _spec(spec, real), _order(order, real), stored, version)


def read_schema(schema: SchemaLike, format_version: int | None = None) -> Schema:
    """The schema that is meant."""
    given: object = schema
    match given:
        case Schema():
            return given
        case str():
            return parse_ddl(given)
        case pa.Schema():
            fine = allows(
                props.requested_version({}) if format_version is None else format_version, Feature.NANOSECOND_TIMESTAMPS
            )
            return schema_from_arrow(schema, downcast_ns_timestamp_to_us=not fine)
        case _:
            raise InvalidSchemaError(
                f"a schema is an icefloe Schema, a pyarrow.Schema or a text like 'id long, name string',"
                f" not {type(schema).__name__}"
            )


def checked_table_properties(properties: Mapping[str, object] | None) -> dict[str, str]:
    """Properties as texts; reserved ones other than the format version are refused."""
    checked: dict[str, str] = {}
    given: object = properties
    if given is not None and not isinstance(given, Mapping):
        raise InvalidPropertyError(f"properties are a mapping from texts to texts, not {type(given).__name__}")
    for key, value in (given or {}).items():
        if not isinstance(key, str) or not isinstance(value, str | int | float):
            raise InvalidPropertyError(f"property {key!r} is {value!r:.100}; a text, number or truth value is expected")
        if key in props.RESERVED and key != props.FORMAT_VERSION:
            raise InvalidPropertyError(f"property {key!r} is reserved: it describes the table and cannot be set")
        props.refuse_misspelt([key])
        checked[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return checked


def _spec(spec: Any, schema: Schema) -> PartitionSpec:
    if spec is None:
        return UNPARTITIONED
    if isinstance(spec, PartitionSpec):
        return spec
    texts = _texts(spec)
    if texts is None:
        raise InvalidPartitionSpecError(
            f"a partition spec is a PartitionSpec or texts like ['days(ts)', 'bucket(16, id)'], not {spec!r:.100}"
        )
    return parse_partition_spec(texts, schema)


def _order(order: Any, schema: Schema) -> SortOrder:
    if order is None:
        return UNSORTED
    if isinstance(order, SortOrder):
        return order
    texts = _texts(order)
    if texts is None:
        raise InvalidSortOrderError(
            f"a sort order is a SortOrder or texts like ['ts desc nulls last'], not {order!r:.100}"
        )
    return parse_sort_order(texts, schema)


def _texts(value: object) -> list[str] | None:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Iterable):
        return None
    items = list(value)
    return items if all(isinstance(item, str) for item in items) else None
