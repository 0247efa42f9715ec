"""`spark.catalog` on a session whose calls know our catalogs."""

# ruff: noqa: N802, N803 - the names are Spark's

from collections.abc import Callable

from pyspark import StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql.catalog import Catalog, CatalogMetadata, Column, Database, Table
from pyspark.sql.types import DataType

from icefloe.catalog import show
from icefloe.partitioning import transforms as tr
from icefloe.spark.drop_in.reader import DropInNames
from icefloe.spark.gateway import Gateway
from icefloe.spark.sql.caches import cache, is_cached
from icefloe.spark.sql.names import ResolvedName
from icefloe.spark.sql.namespaces import matches, shown_namespace
from icefloe.spark.types import mapping_of, user_type
from icefloe.table import Table as OurTable

_COMMENT = "comment"


class DropInCatalog(Catalog):  # type: ignore[misc]  # mypy knows nothing of PySpark
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
        return str(super().currentDatabase()) if current is None else shown_namespace(current)

    def setCurrentDatabase(self, dbName: str) -> None:
        """Make a namespace of the current catalog current, or one with its catalog."""
        namespace = self._namespace(dbName)
        if namespace is None:
            super().setCurrentDatabase(dbName)
            return
        if namespace.parts:
            namespace.check_namespace()
        self._ours.names.current = (namespace.catalog.name, namespace.parts)

    def listDatabases(self, pattern: str | None = None) -> list[Database]:
        """The namespaces of the current catalog."""
        current = self._ours.names.current
        if current is None:
            return list(super().listDatabases(pattern))
        catalog = self._ours.names.catalogs[current[0]]
        namespaces = [ResolvedName(catalog, parts) for parts in catalog.list_namespaces()]
        return [_database(namespace) for namespace in namespaces if matches(pattern, show(namespace.parts))]

    def getDatabase(self, dbName: str) -> Database:
        """A namespace."""
        namespace = self._namespace(dbName)
        return super().getDatabase(dbName) if namespace is None else _database(namespace)

    def databaseExists(self, dbName: str) -> bool:
        """Whether the namespace exists."""
        namespace = self._namespace(dbName)
        if namespace is None:
            return bool(super().databaseExists(dbName))
        return namespace.catalog.namespace_exists(namespace.parts)

    # -- tables

    def listTables(self, dbName: str | None = None, pattern: str | None = None) -> list[Table]:
        """Tables and views of a namespace, and temporary views."""
        namespace = self._namespace(dbName)
        if namespace is None:
            return list(super().listTables(dbName, pattern))
        catalog, parts = namespace.catalog, namespace.parts
        tables = [
            Table(identifier[-1], catalog.name, list(parts), None, table_type, False)
            for table_type, list_names in (("MANAGED", catalog.list_tables), ("VIEW", catalog.list_views))
            for identifier in list_names(parts)
            if matches(pattern, identifier[-1])
        ]
        return tables + [table for table in super().listTables("`spark_catalog`.default", pattern) if table.isTemporary]

    def getTable(self, tableName: str) -> Table:
        """A table or view."""
        target = self._table(tableName)
        if target is None:
            return super().getTable(tableName)
        catalog, *namespace, name = target.full
        if target.view_exists():
            return Table(name, catalog, namespace, None, "VIEW", False)
        return Table(name, catalog, namespace, target.load_table().properties.get(_COMMENT), "MANAGED", False)

    def tableExists(self, tableName: str, dbName: str | None = None) -> bool:
        """Whether the table or view exists."""
        target = self._table(tableName, dbName)
        return bool(super().tableExists(tableName, dbName)) if target is None else target.exists()

    def listColumns(self, tableName: str, dbName: str | None = None) -> list[Column]:
        """The columns of a table or view."""
        target = self._table(tableName, dbName)
        if target is None:
            return list(super().listColumns(tableName, dbName))
        if target.view_exists():
            fields = self._spark.table(target.quoted).schema
            return [_column(field.name, None, field.dataType, field.nullable, False) for field in fields]
        return _columns(target.load_table(), self._spark)

    def refreshTable(self, tableName: str) -> None:
        """Cache the newest rows of a cached table; frames and queries read the newest snapshot anyway."""
        self._run("REFRESH", tableName, super().refreshTable)

    def cacheTable(self, tableName: str, storageLevel: StorageLevel | None = None) -> None:
        """Cache the rows of a table or view, at their first use."""
        target = self._table(tableName)
        if target is None:
            super().cacheTable(tableName, storageLevel)
            return
        frame = self._spark.table(tableName)
        level = self._spark.sparkContext._getJavaStorageLevel(storageLevel or StorageLevel.MEMORY_AND_DISK_DESER)
        cache(frame, target.full, level, Gateway(self._spark))

    def uncacheTable(self, tableName: str) -> None:
        """Uncache the rows of a table or view."""
        self._run("UNCACHE", tableName, super().uncacheTable)

    def isCached(self, tableName: str) -> bool:
        """Whether the newest snapshot of a table or view is cached."""
        target = self._table(tableName)
        if target is None:
            return bool(super().isCached(tableName))
        return is_cached(self._spark.table(tableName), Gateway(self._spark))

    # -- parts

    def _run(self, verb: str, name: str, sparks: Callable[[str], None]) -> None:
        target = self._table(name)
        if target is None:
            sparks(name)
        else:
            self._spark.sql(f"{verb} TABLE {target.quoted}")

    def _namespace(self, name: str | None) -> ResolvedName | None:
        names = self._ours.names
        if name is None:
            return None if names.current is None else ResolvedName(names.catalogs[names.current[0]], names.current[1])
        parts = self._ours.parts(name)
        if parts[0] in names.catalogs:
            return ResolvedName(names.catalogs[parts[0]], parts[1:])
        if names.current is not None:
            catalog = names.catalogs[names.current[0]]
            # Spark's own namespaces keep their bare names, as scripts mix both.
            if catalog.namespace_exists(parts) or not super().databaseExists(f"spark_catalog.{name}"):
                return ResolvedName(catalog, parts)
        return None

    def _table(self, name: str, namespace: str | None = None) -> ResolvedName | None:
        parts = (*(() if namespace is None else self._ours.parts(namespace)), *self._ours.parts(name))
        if len(parts) == 1 and (self._ours.names.current is None or super().tableExists(name)):
            return None
        return self._ours.names.table(parts)


def _database(namespace: ResolvedName) -> Database:
    catalog = namespace.catalog
    properties = catalog.load_namespace_properties(namespace.parts)
    return Database(show(namespace.parts), catalog.name, properties.get(_COMMENT), properties.get("location", ""))


def _columns(table: OurTable, spark: SparkSession) -> list[Column]:
    mapping = mapping_of(spark)
    by = {field.source_id for field in table.spec().fields if isinstance(field.transform, tr.IdentityTransform)}
    return [
        _column(field.name, field.doc, user_type(field.field_type, mapping), field.optional, field.field_id in by)
        for field in table.schema().fields
    ]


def _column(name: str, doc: str | None, data_type: DataType, nullable: bool, partition: bool) -> Column:
    values = {"isPartition": partition, "isBucket": False, "isCluster": False}
    known = {key: value for key, value in values.items() if key in Column._fields}
    return Column(name=name, description=doc, dataType=data_type.simpleString(), nullable=nullable, **known)
