"""Decides what becomes of dropped tables: for how long they can be had back, when their files go, and what cannot be dropped.

A drop and the record of it are one transaction; so are an undrop and the end of the record. When the time is over, the record
goes first, and then the files: whoever is killed in between leaves files behind, and never a table without them.
"""

import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from icefloe import errors
from icefloe.catalog import Alongside, Database, Identifier, RefusedAlongsideError, parse_namespace, show
from icefloe.commit import now_ms
from icefloe.rest import dropped_codec
from icefloe.server.tables import DROPPED, PROTECTED
from icefloe.server.warehouses import Warehouse

LOG = logging.getLogger("icefloe.server")
_BATCH = 100


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A table that can be had back."""

    number: str
    identifier: Identifier
    location: str
    principal: str
    is_purged: bool
    """Whether its files go with it in the end."""
    dropped_at_ms: int


@dataclass(frozen=True, slots=True)
class Holds:
    """The dropped and the protected tables of one warehouse."""

    warehouse: Warehouse
    database: Database
    hold: timedelta

    @property
    def is_on(self) -> bool:
        """Whether dropped tables are kept at all."""
        return self.hold > timedelta(0)

    def record(self, connection: Connection, table: DroppedTable) -> None:
        """Write down that a table is dropped, in the transaction of that."""
        connection.execute(
            sa.insert(DROPPED).values(
                id=table.number,
                warehouse=self.warehouse.name,
                namespace=show(table.identifier[:-1]),
                name=table.identifier[-1],
                location=table.location,
                principal=table.principal[:255],
                is_purged=table.is_purged,
                dropped_at_ms=table.dropped_at_ms,
            )
        )

    def dropped(self) -> list[DroppedTable]:
        """The tables that can be had back, the newest first."""
        order = sa.select(DROPPED).where(self._is_ours(DROPPED)).order_by(DROPPED.c.dropped_at_ms.desc(), DROPPED.c.id)
        return [_dropped(row) for row in self.database.read(order)]

    def shown(self, table: DroppedTable) -> dropped_codec.DroppedTable:
        """A dropped table as clients see it."""
        since = datetime.fromtimestamp(table.dropped_at_ms / 1000, UTC)
        return dropped_codec.DroppedTable(
            table.number, table.identifier, table.location, table.principal, since, since + self.hold, table.is_purged
        )

    def find(self, number: str) -> DroppedTable:
        """The dropped table of that number."""
        rows = self.database.read(sa.select(DROPPED).where(self._is_ours(DROPPED), DROPPED.c.id == number))
        if not rows:
            raise errors.NoSuchObjectError(f"no dropped table has the number {number!r:.60}; it may be gone by now")
        return _dropped(rows[0])

    def ending(self, table: DroppedTable) -> Alongside:
        """What ends the time of a dropped table, in the transaction that gives it a name again."""

        def end(connection: Connection, _: str | None) -> None:
            if not _deleted(connection, table.number):
                raise RefusedAlongsideError

        return end

    def purge_old(self) -> None:
        """Let go of tables whose time is over, with their files where that was asked for; never while nothing is held."""
        if not self.is_on:
            return
        for table in self._overdue():
            if self.database.write(partial(_deleted, number=table.number)) and table.is_purged:
                try:
                    self.warehouse.served.catalog.delete_reachable_files(table.location)
                except errors.IcefloeError as error:
                    LOG.warning("the files of dropped table %s stay behind: %s", show(table.identifier), error)

    def _overdue(self) -> Iterator[DroppedTable]:
        oldest = now_ms() - int(self.hold.total_seconds() * 1000)
        query = sa.select(DROPPED).where(self._is_ours(DROPPED), DROPPED.c.dropped_at_ms < oldest).limit(_BATCH)
        for row in self.database.read(query):
            yield _dropped(row)

    # Protection

    def is_protected(self, identifier: Identifier, noun: str | None) -> bool:
        """Whether something cannot be dropped."""
        return bool(self.database.read(self._protection(identifier, noun)))

    def protect(self, identifier: Identifier, noun: str | None) -> None:
        """Let something be safe from drops."""
        row = self._row(identifier, noun)

        def insert(connection: Connection) -> None:
            if not connection.execute(self._protection(identifier, noun)).all():
                connection.execute(sa.insert(PROTECTED).values(row))

        self.database.write(insert)

    def unprotect(self, identifier: Identifier, noun: str | None) -> None:
        """Let it be dropped again."""
        statement = sa.delete(PROTECTED).where(*self._is_row(identifier, noun))
        self.database.write(lambda connection: connection.execute(statement))

    def check_unprotected(self, identifier: Identifier, noun: str | None) -> Alongside:
        """What fails, in the transaction of a drop, if it is protected."""

        def check(connection: Connection, _: str | None) -> None:
            if connection.execute(self._protection(identifier, noun)).all():
                raise errors.ForbiddenError(
                    f"{noun or 'namespace'} {show(identifier)} is protected from drops; take the protection off first"
                )

        return check

    def moved(self, source: Identifier, target: Identifier, noun: str) -> Alongside:
        """What lets protection follow a rename, in the transaction of that."""
        new = self._row(target, noun)

        def move(connection: Connection, _: str | None) -> None:
            connection.execute(sa.update(PROTECTED).where(*self._is_row(source, noun)).values(new))

        return move

    def _protection(self, identifier: Identifier, noun: str | None) -> sa.Select[tuple[str]]:
        return sa.select(PROTECTED.c.name).where(*self._is_row(identifier, noun))

    def _row(self, identifier: Identifier, noun: str | None) -> dict[str, str]:
        namespace, name = (identifier, "") if noun is None else (identifier[:-1], identifier[-1])
        return {"warehouse": self.warehouse.name, "namespace": show(namespace), "name": name}

    def _is_row(self, identifier: Identifier, noun: str | None) -> list[sa.ColumnElement[bool]]:
        return [PROTECTED.c[key] == value for key, value in self._row(identifier, noun).items()]

    def _is_ours(self, table: sa.Table) -> sa.ColumnElement[bool]:
        return table.c.warehouse == self.warehouse.name


def new_number() -> str:
    """A number for a dropped table."""
    return str(uuid.uuid4())


def _deleted(connection: Connection, number: str) -> bool:
    return bool(connection.execute(sa.delete(DROPPED).where(DROPPED.c.id == number)).rowcount == 1)


def _dropped(row: sa.Row[tuple[object, ...]]) -> DroppedTable:
    identifier = (*parse_namespace(row.namespace), row.name)
    return DroppedTable(row.id, identifier, row.location, row.principal, row.is_purged, row.dropped_at_ms)
