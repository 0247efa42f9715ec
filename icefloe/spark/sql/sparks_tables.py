"""Tables of Spark's own catalog: what files they are made of, and the changes that a migration makes to them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from py4j.java_gateway import JavaObject
from pyspark.sql.types import StructType

from icefloe import errors, partitioning as pt
from icefloe.data import ForeignPartition, ForeignTable
from icefloe.formats.file_formats import DATA_FORMATS
from icefloe.spark.sql.context import SqlContext
from icefloe.spark.sql.names import Parts
from icefloe.spark.sql.nodes import items, mapping, option
from icefloe.spark.types import schema_of_query
from icefloe.storage import absolute_location

_CATALOG = "spark_catalog"
_MANAGED = "MANAGED"


@dataclass(frozen=True, slots=True)
class SparksTables:
    """The tables of the session catalog, by names with or without their database."""

    context: SqlContext

    def find(self, name: Parts) -> ForeignTable:
        """A table of files, with the partitions that the catalog lists."""
        shown = ".".join(name)
        if self.context.source(name) is not None:
            raise errors.InvalidInputError(f"{shown} is a table of Iceberg already; this takes files of others")
        metadata = self._metadata(name)
        serde, provider = (option(value) for value in (metadata.storage().serde(), metadata.provider()))
        description = f"{serde} {provider}".lower()
        file_format = next((known for known in DATA_FORMATS if known in description), None)
        if file_format is None:
            raise errors.InvalidInputError(
                f"{shown} is {provider or 'a view'}; files can be added of {', '.join(DATA_FORMATS)}"
            )
        columns = tuple(items(metadata.partitionColumnNames()))
        return ForeignTable(
            absolute_location(_folder(metadata.location())),
            file_format,
            columns,
            self._partitions(metadata, columns),
            schema_of_query(StructType.fromJson(json.loads(metadata.schema().json()))),
            {str(key): str(value) for key, value in mapping(self.context.gateway, metadata.properties()).items()},
            (metadata.identifier().database().get(), metadata.identifier().table()),
            metadata.tableType().name() == _MANAGED,
            option(metadata.bucketSpec()) is not None,
        )

    def rename(self, name: Parts, new: Parts) -> None:
        """Give a table another name in its database."""
        self._catalog.renameTable(self._identifier(name), self._identifier(new))

    def drop(self, name: Parts) -> None:
        """Drop a table; files of one that is not managed stay."""
        self._catalog.dropTable(self._identifier(name), False, False)

    def set_properties(self, name: Parts, properties: Mapping[str, str]) -> None:
        """Set some properties of a table."""
        self._change_properties(name, lambda known: {**known, **properties})

    def remove_properties(self, name: Parts, keys: Sequence[str]) -> None:
        """Remove some properties of a table, if it has them."""
        self._change_properties(name, lambda known: {key: text for key, text in known.items() if key not in keys})

    def _change_properties(self, name: Parts, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        """Not by SQL, which loads the format of the table; that of Avro is not part of PySpark."""
        metadata = self._metadata(name)
        texts = {str(key): str(text) for key, text in mapping(self.context.gateway, metadata.properties()).items()}
        fields = [metadata.productElement(index) for index in range(metadata.productArity())]
        names = [metadata.productElementName(index) for index in range(len(fields))]
        fields[names.index("properties")] = self.context.gateway.map(change(texts))
        self._catalog.alterTable(metadata.copy(*fields))

    @property
    def _catalog(self) -> JavaObject:
        return self.context.state.catalog()

    def _metadata(self, name: Parts) -> JavaObject:
        if len(_own(name)) > 2 or not self._catalog.tableExists(self._identifier(name)):
            raise errors.NoSuchTableError(f"no table {'.'.join(name)} in Spark's own catalog")
        return self._catalog.getTableMetadata(self._identifier(name))

    def _identifier(self, name: Parts) -> JavaObject:
        database, table = self._whole(name)
        return self.context.catalyst.TableIdentifier(table, self.context.gateway.jvm.scala.Option.apply(database))

    def _whole(self, name: Parts) -> tuple[str, str]:
        own = _own(name)
        return (own[0] if len(own) == 2 else self._catalog.getCurrentDatabase()), own[-1]

    def _partitions(self, metadata: JavaObject, columns: Parts) -> tuple[ForeignPartition, ...] | None:
        if not columns or not metadata.tracksPartitionsInCatalog():
            return None
        listed = items(self._catalog.listPartitions(metadata.identifier(), self.context.gateway.none()))
        return tuple(self._partition(partition, columns) for partition in listed)

    def _partition(self, partition: JavaObject, columns: Parts) -> ForeignPartition:
        values = mapping(self.context.gateway, partition.spec())
        texts = {column: pt.HIVE_NULL if values[column] is None else str(values[column]) for column in columns}
        return ForeignPartition(absolute_location(_folder(partition.location())), texts)


def _own(name: Parts) -> Parts:
    return name[1:] if len(name) == 3 and name[0] == _CATALOG else name


def _folder(uri: JavaObject) -> str:
    """A location from Spark as our storage writes it: local paths are decoded from their URIs."""
    return str(uri.getPath() if uri.getScheme() in (None, "file") else uri.toString())
