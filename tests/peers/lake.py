"""A place that Java Iceberg and we share: one SQLite catalog, one folder of file-system tables, and rows compared."""

from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import icefloe
from icefloe.catalog import Catalog
from icefloe.table import Table
from icefloe.versions import Feature, allows
from tests.peers.comparing import comparable
from tests.peers.java import JavaPeer
from tests.shared_rows import row_modes

SQL, FILES = "peers", "folders"
"""The names of both catalogs, here and there."""
SESSION = "spark_catalog"
"""Spark's own catalog, in which Java has Iceberg's tables, too; we know it as another name in the SQL catalog's database."""
MODES = ("copy-on-write", "merge-on-read")


class Lake:
    """Both catalogs, opened by us and, once it is started, by Java."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sql_catalog = icefloe.load_catalog(
            SQL, type="sql", uri=f"sqlite:///{self._database}", warehouse=self._warehouse
        )
        self.session_catalog = icefloe.load_catalog(SESSION, type="sql", uri=f"sqlite:///{self._database}")
        self.session_catalog.create_namespace("default")
        self.file_catalog = icefloe.load_catalog(FILES, type="hadoop", warehouse=self._folders)
        for catalog in (self.sql_catalog, self.file_catalog):
            catalog.create_namespace("db")
        self._java: JavaPeer | None = None
        self._numbers = count(1)

    @property
    def java(self) -> JavaPeer:
        """Java Iceberg, which was started."""
        assert self._java is not None, "a test with Java asks for the fixture `lake`"
        return self._java

    @property
    def java_settings(self) -> dict[str, str]:
        """The settings with which Java opens both catalogs."""
        ours = {"type": "jdbc", "uri": f"jdbc:sqlite:{self._database}", "warehouse": self._warehouse}
        files = {"type": "hadoop", "warehouse": self._folders}
        session = {key.replace(SQL, SESSION, 1): value for key, value in _catalog(SQL, **ours).items()}
        own = {f"spark.sql.catalog.{SESSION}": "org.apache.iceberg.spark.SparkSessionCatalog"}
        return _catalog(SQL, **ours) | _catalog(FILES, **files) | session | own

    def share_with(self, java: JavaPeer) -> None:
        """Let tests ask a Java that has the settings."""
        self._java = java

    def close(self) -> None:
        """Close our catalogs."""
        self.sql_catalog.close()
        self.session_catalog.close()
        self.file_catalog.close()

    @property
    def _database(self) -> Path:
        return self.folder / "catalog.db"

    @property
    def _warehouse(self) -> str:
        return (self.folder / "warehouse").as_uri()

    @property
    def _folders(self) -> str:
        return (self.folder / "folders").as_uri()

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
        text = f"SELECT {', '.join(chosen)} FROM {self.their_name(table)}{travel_clause(**travel)}"
        theirs = self.java.sql(text)
        assert theirs.schema.names == ours.schema.names
        found = comparable(ours, key)
        assert comparable(theirs, key, ours.schema) == found
        return found


def versions_and_modes(versions: Iterable[int]) -> list[Any]:
    """Each version with the modes that it has; copies where a version adds nothing to them are slow."""
    adds_to_copies = (1, 3)
    return [
        pytest.param(version, mode, marks=pytest.mark.slow if is_copy and version not in adds_to_copies else ())
        for version in versions
        for mode, is_copy in zip(MODES, (True, False), strict=True)
        if is_copy or allows(version, Feature.DELETE_FILES)
    ]


def row_level(mode: str) -> dict[str, str]:
    """The properties that choose a mode for all changes of rows."""
    return row_modes(mode)


def travel_clause(snapshot_id: int | None = None, ref: str | None = None) -> str:
    """How Java's SQL names a snapshot or a ref."""
    if snapshot_id is not None:
        return f" VERSION AS OF {snapshot_id}"
    return "" if ref is None else f" VERSION AS OF '{ref}'"


def _catalog(name: str, **properties: str) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{name}"
    fixed = {"cache-enabled": "false", "jdbc.schema-version": "V1"}
    settings = {f"{prefix}.{key}": value for key, value in (fixed | properties).items()}
    return {prefix: "org.apache.iceberg.spark.SparkCatalog", **settings}
