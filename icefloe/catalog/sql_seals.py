"""Where a SQL catalog keeps what it knows of encrypted tables: a table of its own, changed in the transaction of the pointer.

The tables of the Java library's JDBC catalog stay as they are. A program that does not know this table changes a pointer without
it, and the table is refused from then on: its metadata is not what the hash says.
"""

from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from icefloe import errors
from icefloe.catalog.seals import Seal
from icefloe.catalog.sql_database import Database, TakenError

_SCHEMA = sa.MetaData()
SEALS = sa.Table(
    "icefloe_table_seals",
    _SCHEMA,
    sa.Column("catalog_name", sa.String(255), nullable=False, primary_key=True),
    sa.Column("table_namespace", sa.String(255), nullable=False, primary_key=True),
    sa.Column("table_name", sa.String(255), nullable=False, primary_key=True),
    sa.Column("key_id", sa.Text, nullable=False),
    sa.Column("key_length", sa.Integer, nullable=False),
    sa.Column("metadata_hash", sa.String(64), nullable=False),
)
COLUMNS = (SEALS.c.key_id, SEALS.c.key_length, SEALS.c.metadata_hash)


class SqlSeals:
    """The seals of one catalog's tables."""

    def __init__(self, database: Database, catalog: str) -> None:
        self._database = database
        self._catalog = catalog
        self._is_there = False

    @property
    def is_there(self) -> bool:
        """Whether the database has the table; another program may have made it since this was asked last."""
        self._is_there = self._is_there or self._database.inspect(lambda inspector: inspector.has_table(SEALS.name))
        return self._is_there

    def create(self) -> None:
        """Create the table if it is missing, as far as this user may; without it no table can be encrypted."""
        if self.is_there:
            return
        # Another program may be faster, or the user may not create tables: what counts is whether it is there.
        with suppress(errors.StorageError, TakenError):
            self._database.create_tables(_SCHEMA)
        self._is_there = self.is_there

    def keep(self, connection: Connection, name: tuple[str, str], seal: Seal) -> None:
        """Set the seal of a table, given as the text of its namespace and its name."""
        if not self._is_there:
            raise errors.EncryptionError(
                f"{self._database} has no table {SEALS.name}, and this user cannot create it; without it tables cannot be"
                " encrypted"
            )
        self.forget(connection, name)
        connection.execute(sa.insert(SEALS).values({**self._names(name), **_values(seal)}))

    def forget(self, connection: Connection, name: tuple[str, str]) -> None:
        """Remove the seal of a table, if it has one."""
        if self._is_there:
            connection.execute(sa.delete(SEALS).where(self._is_named(name)))

    def move(self, connection: Connection, source: tuple[str, str], target: tuple[str, str]) -> None:
        """Give the seal of a table to another name."""
        if self._is_there:
            self.forget(connection, target)
            connection.execute(sa.update(SEALS).where(self._is_named(source)).values(self._names(target)))

    def _names(self, name: tuple[str, str]) -> dict[str, str]:
        return {"catalog_name": self._catalog, "table_namespace": name[0], "table_name": name[1]}

    def _is_named(self, name: tuple[str, str]) -> sa.ColumnElement[bool]:
        return sa.and_(*(SEALS.c[key] == value for key, value in self._names(name).items()))


def seal_in(row: Any) -> Seal | None:
    """The seal in the columns of a row, if they hold one."""
    return None if row.key_id is None else Seal(row.key_id, row.key_length, row.metadata_hash)


def _values(seal: Seal) -> dict[str, str | int]:
    return {"key_id": seal.key_id, "key_length": seal.key_length, "metadata_hash": seal.metadata_hash}
