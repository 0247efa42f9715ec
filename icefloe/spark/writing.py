"""How a DataFrame is written to a table by name: `ice.write(df).to("shop.orders").append()`, with options by Iceberg's names.

Bad options, and all that the two schemas tell, fail before a job runs. What is committed is what the table's own operations
commit; here it is only said which, and with which settings.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from icefloe import errors, metadata as md, properties as props
from icefloe.catalog import Catalog
from icefloe.expressions import AlwaysTrue, Expression
from icefloe.rows import RowOperations
from icefloe.schema import Schema
from icefloe.spark.auditing import Destination, destination
from icefloe.spark.column_names import check_no_twins, check_nullability, take_in_columns
from icefloe.spark.distribution import FANOUT
from icefloe.spark.loading import load_again
from icefloe.spark.spark_sessions import is_case_sensitive, setting
from icefloe.spark.types import schema_of_query
from icefloe.streaming import StreamBatch, once
from icefloe.table import Transaction

BRANCH = "branch"
CHECK_NULLABILITY = "check-nullability"
SNAPSHOT_PROPERTY = "snapshot-property."
FANOUT_ENABLED = "fanout-enabled"
MERGE_APPEND = "use-merge-append-for-streaming"
_MERGE_SCHEMA = ("mergeSchema", "merge-schema")
_COMPRESSION = {
    "compression-codec": {
        "parquet": props.PARQUET_COMPRESSION.key,
        "avro": props.AVRO_COMPRESSION.key,
        "orc": props.ORC_COMPRESSION.key,
    },
    "compression-level": {"parquet": props.PARQUET_COMPRESSION_LEVEL.key, "avro": props.AVRO_COMPRESSION_LEVEL.key},
}
_PROPERTIES = {
    "write-format": props.WRITE_FORMAT.key,
    "target-file-size-bytes": props.WRITE_TARGET_FILE_SIZE_BYTES.key,
    FANOUT_ENABLED: FANOUT,
    "distribution-mode": props.DISTRIBUTION_MODE.key,
    MERGE_APPEND: props.MANIFEST_MERGE_ENABLED.key,
    "shred-variants": props.PARQUET_SHRED_VARIANTS.key,
    "variant-inference-buffer-size": props.PARQUET_VARIANT_BUFFER_SIZE.key,
}
"""Options that are properties of the table for one write."""
_SESSION_SETTINGS = {
    "spark.sql.iceberg.shred-variants": props.PARQUET_SHRED_VARIANTS.key,
    "spark.sql.iceberg.variant-inference-buffer-size": props.PARQUET_VARIANT_BUFFER_SIZE.key,
}
"""Settings of a session that come before the table's properties, and after options of a write."""
_OPTIONS = (*_PROPERTIES, *_COMPRESSION, BRANCH, CHECK_NULLABILITY, *_MERGE_SCHEMA)


def session_properties(spark: SparkSession) -> dict[str, str]:
    """Properties that the settings of the session say for all tables."""
    settings = {name: setting(spark, key, None) for key, name in _SESSION_SETTINGS.items()}
    return {name: value for name, value in settings.items() if value is not None}


Change: TypeAlias = Callable[[RowOperations, DataFrame], md.Snapshot | None]
"""What a write does with the rows of a table and the frame."""


@dataclass(frozen=True)
class FrameWriter:
    """A frame to write; `to` names the table."""

    resolve: Callable[[str | Sequence[str]], tuple[Catalog, tuple[str, ...]]]
    """The catalog that a name means, and the name in it."""
    frame: DataFrame

    def to(self, name: str | Sequence[str]) -> "TableWrite":
        """The table of that name, whether it exists or not."""
        catalog, identifier = self.resolve(name)
        return TableWrite(self.frame, catalog, identifier)


@dataclass(frozen=True)
class TableWrite:
    """A write of a frame to a table; each setting returns a new one."""

    frame: DataFrame
    catalog: Catalog
    identifier: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    spec: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    table_location: str | None = None
    assign: Callable[[DataFrame, Schema, str], DataFrame] | None = None
    """How values of other types become those of an existing table; without it they are taken if nothing is lost."""
    batch: StreamBatch | None = None
    """The micro-batch of a stream that the frame is."""

    # -- settings

    def option(self, key: str, value: object) -> "TableWrite":
        """An option of this write, by Iceberg's name: `branch`, `target-file-size-bytes`, `snapshot-property.owner`, ..."""
        _check_option(key)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return replace(self, settings={**self.settings, key: text})

    def options(self, values: Mapping[str, object] | None = None, **more: object) -> "TableWrite":
        """Several options."""
        write = self
        for key, value in {**(values or {}), **more}.items():
            write = write.option(key, value)
        return write

    def table_property(self, key: str, value: object) -> "TableWrite":
        """A property of the new table, such as `format-version`."""
        return replace(self, properties={**self.properties, key: str(value)})

    def using(self, file_format: str) -> "TableWrite":
        """The file format of the new table: parquet, avro or orc; `iceberg` leaves it open, as in Spark's SQL."""
        return self if file_format.lower() == "iceberg" else self.table_property(props.WRITE_FORMAT.key, file_format)

    def partitioned_by(self, *terms: str) -> "TableWrite":
        """The partitions of the new table: `"days(ts)", "bucket(16, id)"`."""
        return replace(self, spec=_terms(terms))

    def sorted_by(self, *terms: str) -> "TableWrite":
        """The sort order of the new table: `"ts desc nulls last"`."""
        return replace(self, order=_terms(terms))

    def location(self, location: str) -> "TableWrite":
        """The location of the new table."""
        return replace(self, table_location=location)

    def once(self, query_id: str, batch_id: int) -> "TableWrite":
        """The frame is a micro-batch of a streaming query: it is committed once, however often it is written.

        Args:
            query_id: what tells the query from all others that write to the table, and stays the same when it restarts.
            batch_id: the number of the batch, as `foreachBatch` is given it; numbers of a query rise.

        A batch that is in the table already is not written again, and the call returns None.
        """
        return replace(self, batch=StreamBatch(query_id, batch_id))

    # -- into an existing table

    def append(self) -> md.Snapshot | None:
        """Add the rows."""
        return self._change(lambda rows, frame: rows.append(frame))

    def overwrite(self, row_filter: str | Expression | None = None) -> md.Snapshot | None:
        """Delete the rows that match, all of them without a filter, and add the frame's, in one commit."""
        chosen = AlwaysTrue() if row_filter is None else row_filter
        return self._change(lambda rows, frame: rows.overwrite(frame, chosen))

    def overwrite_partitions(self) -> md.Snapshot | None:
        """Replace the partitions that the rows fall in by the rows."""
        return self._change(lambda rows, frame: rows.dynamic_partition_overwrite(frame))

    # -- into a new table

    def create(self) -> md.Snapshot | None:
        """Create the table with the frame's columns and rows, in one commit; an error if the name is taken."""
        return self._create(self.catalog.create_table_transaction, lambda rows, frame: rows.append(frame))

    def replace(self) -> md.Snapshot | None:
        """Give the table the frame's columns and rows instead of its own, in one commit; its history stays."""
        return self._create(self.catalog.replace_table_transaction, lambda rows, frame: rows.fill(frame))

    def create_or_replace(self) -> md.Snapshot | None:
        """Replace the table if it exists, and create it if not."""
        return self._create(self.catalog.create_or_replace_table_transaction, lambda rows, frame: rows.fill(frame))

    # -- parts

    def _change(self, change: Change) -> md.Snapshot | None:
        for name, value in (
            ("properties", self.properties),
            ("spec", self.spec),
            ("order", self.order),
            ("location", self.table_location),
        ):
            if value:
                raise errors.InvalidInputError(
                    f"{name} applies only to a table made by create or replace; {'.'.join(self.identifier)} already exists"
                )
        self._check()
        table = load_again(self.catalog, self.identifier)
        to = destination(self.frame.sparkSession, table, self.settings.get(BRANCH), self._snapshot_properties)

        def run(tx: Transaction) -> md.Snapshot | None:
            return change(self._rows(self._evolved(tx), to), self._assigned(tx))

        try:
            return table.transaction().run(once(self.batch, to.branch, run))
        except errors.AlreadyCommittedError:
            return None

    def _create(self, begin: Callable[..., Transaction], change: Change) -> md.Snapshot | None:
        if self.batch is not None:
            raise errors.InvalidInputError(
                "a micro-batch is committed once to a table that exists; create the table before"
            )
        if BRANCH in self.settings:
            raise errors.InvalidInputError(f"a table is created on its main branch; leave out the option {BRANCH!r}")
        self._check()
        schema = schema_of_query(self.frame.schema)
        check_no_twins(schema, is_case_sensitive(self.frame.sparkSession))
        transaction = begin(
            self.identifier, schema, self.table_location, self.spec or None, self.order or None, self.properties
        )
        to = Destination(None, self._snapshot_properties)
        return transaction.run(lambda tx: change(self._rows(self._evolved(tx), to), self.frame))

    def _assigned(self, tx: Transaction) -> DataFrame:
        # Spark's rules do not apply to a frame that may change the schema.
        if self.assign is None or self._merges_schema:
            return self.frame
        return self.assign(self.frame, tx.table_metadata.schema(), ".".join(self.identifier))

    @property
    def _merges_schema(self) -> bool:
        return any(props.property_as_bool(self.settings, key, False) for key in _MERGE_SCHEMA)

    def _evolved(self, tx: Transaction) -> Transaction:
        """The transaction, with the schema that the frame needs."""
        if self._merges_schema:
            take_in_columns(tx, self.frame)
        if props.property_as_bool(self.settings, CHECK_NULLABILITY, False):
            check_nullability(self.frame, tx.table_metadata.schema())
        return tx

    @property
    def _snapshot_properties(self) -> dict[str, str]:
        prefix = len(SNAPSHOT_PROPERTY)
        own = {key[prefix:]: value for key, value in self.settings.items() if key.startswith(SNAPSHOT_PROPERTY)}
        return own if self.batch is None else {**own, **self.batch.summary}

    def _rows(self, tx: Transaction, to: Destination) -> RowOperations:
        properties = self._write_properties(tx.table_metadata.properties)
        return replace(tx.rows(to.branch, to.snapshot_properties), write_properties=properties)

    def _write_properties(self, table: Mapping[str, str]) -> dict[str, str]:
        properties = session_properties(self.frame.sparkSession)
        properties |= {_PROPERTIES[key]: value for key, value in self.settings.items() if key in _PROPERTIES}
        file_format = props.WRITE_FORMAT.of({**table, **properties})
        for key, by_format in _COMPRESSION.items():
            if key in self.settings and file_format in by_format:
                properties[by_format[file_format]] = self.settings[key]
        return properties

    def _check(self) -> None:
        """Fail on options with invalid values."""
        texts = self._write_properties({})
        for known in (
            props.WRITE_TARGET_FILE_SIZE_BYTES,
            props.DISTRIBUTION_MODE,
            props.PARQUET_SHRED_VARIANTS,
            props.PARQUET_VARIANT_BUFFER_SIZE,
        ):
            known.of(texts)
        for key in (FANOUT_ENABLED, MERGE_APPEND, CHECK_NULLABILITY, *_MERGE_SCHEMA):
            props.property_as_bool(self.settings, key, False)


def _check_option(key: str) -> None:
    if key in _OPTIONS or (key.startswith(SNAPSHOT_PROPERTY) and len(key) > len(SNAPSHOT_PROPERTY)):
        return
    near = difflib.get_close_matches(key, _OPTIONS, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"options are {', '.join(_OPTIONS)}"
    raise errors.InvalidPropertyError(f"unknown write option {key!r}; {hint}")


def _terms(terms: tuple[str, ...]) -> tuple[str, ...]:
    for term in terms:
        if not isinstance(term, str):
            raise errors.InvalidInputError(f"{term!r:.100} is not a text such as 'days(ts)' or 'bucket(16, id)'")
    return terms
