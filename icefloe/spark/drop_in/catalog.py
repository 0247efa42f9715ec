"""`spark.catalog` on a session whose calls know our catalogs."""

# ruff: noqa: N802, N803 - the names are Spark's
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql.catalog import Catalog, CatalogMetadata, Column, Database, Table

from icefloe.catalog import Catalog as OurCatalog, show
from icefloe.errors import NoSuchNamespaceError
from icefloe.partitioning import transforms as tr
from icefloe.spark.drop_in.names import DropInNames
from icefloe.spark.gateway import Gateway
from icefloe.spark.sql.caches import cache, is_cached
from icefloe.spark.sql.names import Place
from icefloe.spark.sql.namespaces import matches
from icefloe.spark.types import mapping_of, user_type
from icefloe.spark.user_side import quoted_name
from icefloe.table import Table as OurTable

_COMMENT = "comment"


class DropInCatalog(Catalog):  # type: ignore[misc]  # PySpark is Any to mypy
    """Spark's catalog functions, which ask us first; functions and temporary views stay Spark's."""

    def __init__(self, spark: SparkSession, names: DropInNames) -> None:
        super().__init__(spark)
        self._spark = spark
        self._ours = names

    # -- catalogs

    def currentCatalog(self) -> str:
        """The catalog that names without a catalog are in."""
        current = self._ours.names.current
        return super().currentCatalog() if current is None else current[0]

    def setCurrentCatalog(self, catalogName: str) -> None:
        """Make a catalog current."""
        if catalogName in self._ours.names.catalogs:
            self._ours.names.current = (catalogName, ())
        else:
            super().setCurrentCatalog(catalogName)
            self._ours.names.current = None

    def listCatalogs(self, pattern: str | None = None) -> list[CatalogMetadata]:
        """All catalogs."""
        ours = [CatalogMetadata(name, None) for name in self._ours.names.catalogs if matches(pattern, name)]
        known = {catalog.name for catalog in ours}
        return [*(catalog for catalog in super().listCatalogs(pattern) if catalog.name not in known), *ours]

    # -- namespaces

    def currentDatabase(self) -> str:
        """The current namespace; empty where there is none."""
        current = self._ours.names.current
        if current is None:
            return str(super().currentDatabase())
        return show(current[1]) if current[1] else ""

    def setCurrentDatabase(self, dbName: str) -> None:
        """Make a namespace of the current catalog current, or one with its catalog."""
        place = self._namespace(dbName)
        if place is None:
            super().setCurrentDatabase(dbName)
            return
        self._check(place)
        self._ours.names.current = (place.catalog.name, place.parts)

    def listDatabases(self, pattern: str | None = None) -> list[Database]:
        """The namespaces of the current catalog."""
        current = self._ours.names.current
        if current is None:
            return list(super().listDatabases(pattern))
        catalog = self._ours.names.catalogs[current[0]]
        namespaces = [(*namespace,) for namespace in catalog.list_namespaces()]
        return [_database(catalog, namespace) for namespace in namespaces if matches(pattern, show(namespace))]

    def getDatabase(self, dbName: str) -> Database:
        """A namespace."""
        place = self._namespace(dbName)
        return super().getDatabase(dbName) if place is None else _database(self._check(place), place.parts)

    def databaseExists(self, dbName: str) -> bool:
        """Whether the namespace exists."""
        place = self._namespace(dbName)
        return super().databaseExists(dbName) if place is None else place.catalog.namespace_exists(place.parts)

    # -- tables

    def listTables(self, dbName: str | None = None, pattern: str | None = None) -> list[Table]:
        """Tables and views of a namespace, and temporary views."""
        place = self._namespace(dbName)
        if place is None:
            return list(super().listTables(dbName, pattern))
        catalog = self._check(place)
        namespace = list(place.parts)
        tables = [
            Table(identifier[-1], catalog.name, namespace, None, table_type, False)
            for table_type, names in (
                ("MANAGED", catalog.list_tables(place.parts)),
                ("VIEW", catalog.list_views(place.parts)),
            )
            for identifier in names
            if matches(pattern, identifier[-1])
        ]
        default = f"{quoted_name('spark_catalog')}.default"
        return tables + [table for table in super().listTables(default, pattern) if table.isTemporary]

    def getTable(self, tableName: str) -> Table:
        """A table or view."""
        place = self._table(tableName, None)
        if place is None:
            return super().getTable(tableName)
        catalog, namespace = place.catalog, list(place.parts[:-1])
        if catalog.view_exists(place.parts):
            return Table(place.parts[-1], catalog.name, namespace, None, "VIEW", False)
        table = catalog.load_table(place.parts)
        return Table(place.parts[-1], catalog.name, namespace, table.properties.get(_COMMENT), "MANAGED", False)

    def tableExists(self, tableName: str, dbName: str | None = None) -> bool:
        """Whether the table or view exists."""
        place = self._table(tableName, dbName)
        if place is None:
            return bool(super().tableExists(tableName, dbName))
        return place.catalog.table_exists(place.parts) or place.catalog.view_exists(place.parts)

    def listColumns(self, tableName: str, dbName: str | None = None) -> list[Column]:
        """The columns of a table or view."""
        place = self._table(tableName, dbName)
        if place is None:
            return list(super().listColumns(tableName, dbName))
        if place.catalog.view_exists(place.parts):
            frame = self._spark.table(".".join(map(quoted_name, (place.catalog.name, *place.parts))))
            return [
                _column(field.name, None, field.dataType.simpleString(), field.nullable, False)
                for field in frame.schema
            ]
        return _columns(place.catalog.load_table(place.parts), self._spark)

    def refreshTable(self, tableName: str) -> None:
        """Cache the newest rows of a cached table; frames and queries read the newest snapshot anyway."""
        place = self._table(tableName, None)
        if place is None:
            super().refreshTable(tableName)
        else:
            self._spark.sql(f"REFRESH TABLE {_full_name(place)}")

    def cacheTable(self, tableName: str, storageLevel: StorageLevel | None = None) -> None:
        """Cache the rows of a table or view, at their first use."""
        place = self._table(tableName, None)
        if place is None:
            super().cacheTable(tableName, storageLevel)
            return
        frame = self._spark.table(tableName)
        level = self._spark.sparkContext._getJavaStorageLevel(storageLevel or StorageLevel.MEMORY_AND_DISK_DESER)
        cache(frame, (place.catalog.name, *place.parts), level, Gateway(self._spark))

    def uncacheTable(self, tableName: str) -> None:
        """Uncache the rows of a table or view."""
        place = self._table(tableName, None)
        if place is None:
            super().uncacheTable(tableName)
        else:
            self._spark.sql(f"UNCACHE TABLE {_full_name(place)}")

    def isCached(self, tableName: str) -> bool:
        """Whether the newest snapshot of a table or view is cached."""
        place = self._table(tableName, None)
        if place is None:
            return bool(super().isCached(tableName))
        return is_cached(self._spark.table(tableName), Gateway(self._spark))

    # -- parts

    def _namespace(self, name: str | None) -> Place | None:
        names = self._ours.names
        if name is None:
            return None if names.current is None else Place(names.catalogs[names.current[0]], names.current[1])
        parts = self._ours.parts(name)
        if parts[0] in names.catalogs:
            return Place(names.catalogs[parts[0]], parts[1:])
        if names.current is not None:
            catalog = names.catalogs[names.current[0]]
            # Spark's own namespaces are still found by their bare names, as scripts mix both.
            if catalog.namespace_exists(parts) or not super().databaseExists(f"spark_catalog.{name}"):
                return Place(catalog, parts)
        return None

    def _table(self, name: str, namespace: str | None) -> Place | None:
        parts = (*(() if namespace is None else self._ours.parts(namespace)), *self._ours.parts(name))
        if len(parts) == 1 and (self._ours.names.current is None or super().tableExists(name)):
            return None
        return self._ours.names.table(parts)

    def _check(self, place: Place) -> OurCatalog:
        if place.parts and not place.catalog.namespace_exists(place.parts):
            raise NoSuchNamespaceError(f"no namespace {show(place.parts)} in catalog {place.catalog.name!r}")
        return place.catalog


def _full_name(place: Place) -> str:
    return ".".join(map(quoted_name, (place.catalog.name, *place.parts)))


def _database(catalog: OurCatalog, namespace: tuple[str, ...]) -> Database:
    properties = catalog.load_namespace_properties(namespace)
    return Database(show(namespace), catalog.name, properties.get(_COMMENT), properties.get("location", ""))


def _columns(table: OurTable, spark: SparkSession) -> list[Column]:
    mapping = mapping_of(spark)
    by = {field.source_id for field in table.spec().fields if isinstance(field.transform, tr.IdentityTransform)}
    return [
        _column(
            field.name,
            field.doc,
            user_type(field.field_type, mapping).simpleString(),
            not field.required,
            field.field_id in by,
        )
        for field in table.schema().fields
    ]


def _column(name: str, doc: str | None, data_type: str, nullable: bool, partition: bool) -> Column:
    values: dict[str, Any] = {"isPartition": partition, "isBucket": False, "isCluster": False}
    known = {key: value for key, value in values.items() if key in Column._fields}
    return Column(name=name, description=doc, dataType=data_type, nullable=nullable, **known)
