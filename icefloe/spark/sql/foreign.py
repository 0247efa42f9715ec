"""Tables of files in Spark's own catalog, as far as `add_files` needs to know them."""

from typing import Any

from icefloe.catalog import Identifier
from icefloe.errors import InvalidInputError, NoSuchTableError
from icefloe.formats.file_formats import DATA_FORMATS
from icefloe.partitioning import HIVE_NULL
from icefloe.spark.sql.context import SqlContext
from icefloe.spark.sql.nodes import items, mapping, option
from icefloe.sql.calling import ForeignPartition, ForeignTable
from icefloe.storage import absolute_location


def sparks_table(name: Identifier, context: SqlContext) -> ForeignTable:
    """A table of files in Spark's own catalog, with the partitions that the catalog lists."""
    jvm, state = context.gateway.jvm, context.gateway.spark._jsparkSession.sessionState()
    names = name[1:] if len(name) == 3 and name[0] == "spark_catalog" else name
    shown = ".".join(name)
    if context.names.source(name, default=context.default) is not None:
        raise InvalidInputError(f"{shown} is a table of Iceberg; add_files takes files of others: read it and insert")
    if len(names) > 2:
        raise NoSuchTableError(f"no table {shown} in Spark's own catalog")
    catalog = state.catalog()
    database = names[0] if len(names) == 2 else catalog.getCurrentDatabase()
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(names[-1], jvm.scala.Option.apply(database))
    if not catalog.tableExists(identifier):
        raise NoSuchTableError(f"no table {shown} in Spark's own catalog")
    metadata = catalog.getTableMetadata(identifier)
    serde, provider = (option(value) for value in (metadata.storage().serde(), metadata.provider()))
    said = " ".join(str(value).lower() for value in (serde, provider))
    file_format = next((name for name in DATA_FORMATS if name in said), None)
    if file_format is None:
        raise InvalidInputError(f"{shown} is {provider or 'a view'}; files can be added of {', '.join(DATA_FORMATS)}")
    columns = tuple(items(metadata.partitionColumnNames()))
    kept = (
        _partitions(catalog, identifier, columns, context) if columns and metadata.tracksPartitionsInCatalog() else None
    )
    return ForeignTable(absolute_location(_folder(metadata.location())), file_format, columns, kept)


def _partitions(
    catalog: Any, identifier: Any, columns: tuple[str, ...], context: SqlContext
) -> tuple[ForeignPartition, ...]:
    partitions = []
    for partition in items(catalog.listPartitions(identifier, context.gateway.jvm.scala.Option.empty())):
        values = mapping(context.gateway, partition.spec())
        texts = {column: HIVE_NULL if values[column] is None else str(values[column]) for column in columns}
        partitions.append(ForeignPartition(absolute_location(_folder(partition.location())), texts))
    return tuple(partitions)


def _folder(uri: Any) -> str:
    """A location from Spark as our storage writes it: local paths are decoded from their URIs."""
    return str(uri.getPath() if uri.getScheme() in (None, "file") else uri.toString())
