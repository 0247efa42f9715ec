"""A place that Java Iceberg and we share: one SQLite catalog, one folder of file-system tables, and rows compared."""

from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa

import icefloe
from icefloe.catalog import Catalog
from icefloe.table import Table
from icefloe.versions import Feature, allows
from tests.formats.rows import contents
from tests.peers.java import Installation, JavaPeer

SQL, FILES = "peers", "folders"
"""The names of both catalogs, here and there."""
MODES = ("copy-on-write", "merge-on-read")


class Lake:
    """Both catalogs, opened by us and by Java."""

    def __init__(self, installation: Installation, folder: Path) -> None:
        warehouse, folders, database = folder / "warehouse", folder / "folders", folder / "catalog.db"
        self.sql_catalog = icefloe.load_catalog(
            SQL, type="sql", uri=f"sqlite:///{database}", warehouse=warehouse.as_uri()
        )
        self.file_catalog = icefloe.load_catalog(FILES, type="hadoop", warehouse=folders.as_uri())
        for catalog in (self.sql_catalog, self.file_catalog):
            catalog.create_namespace("db")
        ours = {"type": "jdbc", "uri": f"jdbc:sqlite:{database}", "warehouse": warehouse.as_uri()}
        files = {"type": "hadoop", "warehouse": folders.as_uri()}
        self.java = JavaPeer(installation, folder, _catalog(SQL, **ours) | _catalog(FILES, **files))
        self._numbers = count(1)

    def close(self) -> None:
        """End Java, and close our catalogs."""
        self.java.stop()
        self.sql_catalog.close()
        self.file_catalog.close()

    def new_name(self) -> str:
        """A name that no table has yet."""
        return f"db.t{next(self._numbers)}"

    def create(self, version: int, schema: Any, *, catalog: Catalog | None = None, **options: Any) -> Table:
        """A new table of ours."""
        properties = {"format-version": str(version), **options.pop("properties", {})}
        chosen = self.sql_catalog if catalog is None else catalog
        return chosen.create_table(self.new_name(), schema, properties=properties, **options)

    def made_by_java(self, version: int, columns: str, tail: str = "", mode: str = MODES[0]) -> tuple[str, str]:
        """A new table of Java's, as its name here and its name there."""
        name = self.new_name()
        properties = {"format-version": str(version), **row_level(mode)}
        text = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        self.java.sql(f"CREATE TABLE {SQL}.{name} ({columns}) USING iceberg {tail} TBLPROPERTIES ({text})")
        return name, f"{SQL}.{name}"

    def their_name(self, table: Table) -> str:
        """What Java calls a table."""
        catalog = FILES if str(table.location()).startswith(str(self.file_catalog.warehouse)) else SQL
        return ".".join((catalog, *table.name()))

    def same(self, table: Table, key: str = "id", columns: Iterable[str] = ("*",), **travel: Any) -> list[Any]:
        """What both read from a table, which must be the same rows, by the order of a column."""
        chosen = tuple(columns)
        ours = table.scan(selected_fields=chosen, **travel).to_arrow()
        text = f"SELECT {', '.join(chosen)} FROM {self.their_name(table)}{_travel(**travel)}"
        theirs = self.java.sql(text)
        assert theirs.schema.names == ours.schema.names
        found = comparable(ours, key)
        assert comparable(theirs, key) == found
        return found


def comparable(table: Any, key: str = "id") -> list[Any]:
    """The rows by the order of a column; UUIDs, which Spark has as texts, are texts."""
    columns = [_texts(column) if column.type == pa.uuid() else column for column in table.columns]
    return sorted(contents(pa.table(columns, names=table.schema.names)), key=lambda row: str(row[key]).rjust(30))


def versions_and_modes(versions: Iterable[int]) -> list[tuple[int, str]]:
    """Each version with the modes that it has."""
    return [
        (version, mode)
        for version in versions
        for mode in MODES
        if mode == MODES[0] or allows(version, Feature.DELETE_FILES)
    ]


def row_level(mode: str) -> dict[str, str]:
    """The properties that choose a mode for all changes of rows."""
    return {f"write.{change}.mode": mode for change in ("delete", "update", "merge")}


def _texts(column: Any) -> Any:
    values = [each if each is None or isinstance(each, UUID) else UUID(bytes=each) for each in column.to_pylist()]
    return pa.array([None if each is None else str(each) for each in values], pa.string())


def _travel(snapshot_id: int | None = None, ref: str | None = None) -> str:
    if snapshot_id is not None:
        return f" VERSION AS OF {snapshot_id}"
    return "" if ref is None else f" VERSION AS OF '{ref}'"


def _catalog(name: str, **properties: str) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{name}"
    fixed = {"cache-enabled": "false", "jdbc.schema-version": "V1"}
    settings = {f"{prefix}.{key}": value for key, value in (fixed | properties).items()}
    return {prefix: "org.apache.iceberg.spark.SparkCatalog", **settings}
