"""Tables of files in Spark's own catalog, as far as `add_files` must know them."""

from typing import Any

from icefloe.catalog.identifiers import Identifier
from icefloe.errors import InvalidInputError, NoSuchTableError
from icefloe.formats.file_formats import DATA_FORMATS
from icefloe.partitioning.paths import HIVE_NULL
from icefloe.spark.sql.context import SqlContext
from icefloe.spark.sql.nodes import items, mapping, option
from icefloe.sql.calling import ForeignPartition, ForeignTable
from icefloe.storage.locations import absolute_location


def sparks_table(name: Identifier, context: SqlContext) -> ForeignTable:
    """A table of files in Spark's own catalog, with the partitions that it keeps."""
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
    found = catalog.getTableMetadata(identifier)
    serde, provider = (option(each) for each in (found.storage().serde(), found.provider()))
    said = " ".join(str(each).lower() for each in (serde, provider))
    file_format = next((each for each in DATA_FORMATS if each in said), None)
    if file_format is None:
        raise InvalidInputError(f"{shown} is {provider or 'a view'}; files can be added of {', '.join(DATA_FORMATS)}")
    columns = tuple(items(found.partitionColumnNames()))
    kept = _partitions(catalog, identifier, columns, context) if columns and found.tracksPartitionsInCatalog() else None
    return ForeignTable(absolute_location(_folder(found.location())), file_format, columns, kept)


def _partitions(
    catalog: Any, identifier: Any, columns: tuple[str, ...], context: SqlContext
) -> tuple[ForeignPartition, ...]:
    found = []
    for each in items(catalog.listPartitions(identifier, context.gateway.jvm.scala.Option.empty())):
        values = mapping(context.gateway, each.spec())
        texts = {column: HIVE_NULL if values[column] is None else str(values[column]) for column in columns}
        found.append(ForeignPartition(absolute_location(_folder(each.location())), texts))
    return tuple(found)


def _folder(uri: Any) -> str:
    """A location of Spark as storage has it: folders of this machine without what a URI encodes."""
    return str(uri.getPath() if uri.getScheme() in (None, "file") else uri.toString())
