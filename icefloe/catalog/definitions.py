"""Decides what a user's description of a table means: schema, partition spec, sort order and properties."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

import pyarrow as pa

from icefloe import errors, metadata as md, partitioning as pt, properties as props
from icefloe.catalog.identifiers import Name
from icefloe.rows import engine_named
from icefloe.schema import Schema, parse_ddl, schema_from_arrow
from icefloe.versions import Feature, allows

SchemaLike: TypeAlias = Schema | pa.Schema | str
"""A schema, one of Arrow, a `StructType` of Spark, or a definition like `id long not null, name string`."""
SpecLike = pt.PartitionSpec | str | Iterable[str] | None
"""A partition spec, or texts like `["days(ts)", "bucket(16, id)"]`; None for no partitions."""
OrderLike = pt.SortOrder | str | Iterable[str] | None
"""A sort order, or texts like `["ts desc nulls last"]`; None for no order."""

P = ParamSpec("P")
Owner = TypeVar("Owner")
Description = TypeVar("Description")
Result = TypeVar("Result")


def described_by(
    description: Callable[P, Description],
) -> Callable[[Callable[[Owner, Description], Result]], Callable[Concatenate[Owner, P], Result]]:
    """Lets a method that takes a description be called with its parts, so that their names and types are written once."""

    def decorate(method: Callable[[Owner, Description], Result]) -> Callable[Concatenate[Owner, P], Result]:
        @wraps(method)
        def call(self: Owner, /, *parts: P.args, **named: P.kwargs) -> Result:
            return method(self, description(*parts, **named))

        own = inspect.signature(method)
        parameters = [own.parameters["self"], *inspect.signature(description).parameters.values()]
        vars(call)["__signature__"] = own.replace(parameters=parameters)
        return call

    return decorate


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table as a user describes it; `Catalog.create_table` says what each part may be."""

    identifier: Name
    schema: SchemaLike
    location: str | None = None
    partition_spec: SpecLike = None
    sort_order: OrderLike = None
    properties: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """What a description means: spec and order use the ids of this schema, which a table assigns afresh."""

    schema: Schema
    spec: pt.PartitionSpec
    order: pt.SortOrder
    properties: Mapping[str, str]
    """Without the format version."""
    format_version: int | None
    """None: the default for a new table, no change for a replaced one."""

    def new_metadata(self, location: str, uuid: str, timestamp_ms: int) -> md.TableMetadata:
        """The metadata of a new table with this definition."""
        version = props.requested_version({}) if self.format_version is None else self.format_version
        return md.new_table_metadata(
            self.schema, self.spec, self.order, location, self.properties, version, uuid=uuid, timestamp_ms=timestamp_ms
        )


def define_table(table: TableDescription, defaults: Mapping[str, str], overrides: Mapping[str, str]) -> TableDefinition:
    """The definition, with everything checked that can be checked without a table."""
    properties = {**defaults, **property_texts(table.properties), **overrides}
    for key in properties:
        if key in props.RESERVED and key != props.FORMAT_VERSION:
            raise errors.InvalidPropertyError(f"property {key!r} is reserved: it describes the table and cannot be set")
    props.refuse_misspelt(properties)
    version = props.requested_version(properties) if props.FORMAT_VERSION in properties else None
    properties.pop(props.FORMAT_VERSION, None)
    schema = read_schema(table.schema, version)
    spec, order = _read_spec(table.partition_spec, schema), _read_order(table.sort_order, schema)
    return TableDefinition(schema, spec, order, properties, version)


def read_schema(schema: SchemaLike, format_version: int | None = None) -> Schema:
    """The schema that is meant."""
    match schema:
        case Schema():
            return schema
        case str():
            return parse_ddl(schema)
        case pa.Schema():
            version = props.requested_version({}) if format_version is None else format_version
            has_nanoseconds = allows(version, Feature.NANOSECOND_TIMESTAMPS)
            return schema_from_arrow(schema, downcast_ns_timestamp_to_us=not has_nanoseconds)
        case _ if type(schema).__module__.startswith("pyspark."):
            return engine_named("spark").read_schema(schema)
        case _:
            raise errors.InvalidSchemaError(
                "a schema must be an icefloe Schema, a pyarrow.Schema, a Spark StructType or a string such as 'id long, name string',"
                f" not {type(schema).__name__}"
            )


def property_texts(properties: Mapping[str, object] | None) -> dict[str, str]:
    """Properties as texts."""
    given: object = {} if properties is None else properties
    if not isinstance(given, Mapping):
        raise errors.InvalidPropertyError(
            f"properties must be a mapping of strings to strings, not {type(given).__name__}"
        )
    for key, value in given.items():
        if not isinstance(key, str) or not key or not isinstance(value, str | int | float):
            raise errors.InvalidPropertyError(
                f"property {key!r} is {value!r:.100}; expected a string, number or boolean"
            )
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in given.items()}


def _read_spec(spec: SpecLike, schema: Schema) -> pt.PartitionSpec:
    if spec is None:
        return pt.UNPARTITIONED
    if isinstance(spec, pt.PartitionSpec):
        return spec
    if (texts := _texts(spec)) is None:
        raise errors.InvalidPartitionSpecError(
            f"a partition spec must be a PartitionSpec or strings such as ['days(ts)', 'bucket(16, id)'], not {spec!r:.100}"
        )
    return pt.parse_partition_spec(texts, schema)


def _read_order(order: OrderLike, schema: Schema) -> pt.SortOrder:
    if order is None:
        return pt.UNSORTED
    if isinstance(order, pt.SortOrder):
        return order
    if (texts := _texts(order)) is None:
        raise errors.InvalidSortOrderError(
            f"a sort order must be a SortOrder or strings such as ['ts desc nulls last'], not {order!r:.100}"
        )
    return pt.parse_sort_order(texts, schema)


def _texts(value: object) -> list[str] | None:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Iterable):
        return None
    items = list(value)
    return items if all(isinstance(item, str) for item in items) else None
