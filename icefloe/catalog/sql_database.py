"""Decides how a SQL database is reached, and what its errors say about what happened: certainly nothing, or nobody knows.

Every change is one transaction. As long as its COMMIT was not sent, nothing can have happened: such a failure is a
StorageError. A failure of the COMMIT itself leaves everything open: CommitStateUnknown; but a SQLite whose disk is full has
written no commit, since that comes last, and rolls back. A server may have more to write in the transaction of a change,
such as that a request was answered: `alongside`.
"""

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.engine.reflection import Inspector
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, SQLAlchemyError

from icefloe.errors import CommitStateUnknown, InvalidPropertyError, NotInstalledError, StorageError
from icefloe.storage import redacted

Result = TypeVar("Result")
Alongside = Callable[[Connection, str | None], None]
"""More work in the transaction of a change; it gets the metadata location that the change sets, if it sets one."""

BUSY_TIMEOUT_SECONDS = 60
"""How long a writer of SQLite waits for others."""

_WRITING: Mapping[str, Any] = {"pool_pre_ping": True, "isolation_level": "READ COMMITTED"}
_READING: Mapping[str, Any] = {"isolation_level": "AUTOCOMMIT", "pool_reset_on_return": None}
"""Without a transaction around it, and without a look at the connection before, a query is one question."""
_POSTGRESQL_DRIVER = "postgresql+psycopg"
_WRITES = "icefloe_writes"
_CREATION_LOCK = 0x1CEF10E


class TakenError(Exception):
    """A unique key is in use; nothing happened."""


class Database:
    """A database by its URI; connections are opened when needed, and never shared with a forked process."""

    def __init__(self, catalog: str, uri: str | None) -> None:
        self._url = _parsed(catalog, uri)
        self._catalog = catalog
        self._lock = threading.Lock()
        self._engine: tuple[int, Engine] | None = None
        self._reader: tuple[int, Engine] | None = None
        self._texts: dict[sa.Select[Any], tuple[str, Mapping[str, object]]] = {}
        self._more = threading.local()

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of SQLite."""
        return self._url.get_backend_name() == "sqlite"

    @property
    def uri(self) -> str:
        """Where it is, with all that is needed to reach it."""
        return self._url.render_as_string(hide_password=False)

    def __str__(self) -> str:
        """Where it is, without users and passwords."""
        url = self._url
        address = f"//{url.host or ''}{f':{url.port}' if url.port else ''}/{url.database or ''}"
        return f"{url.get_backend_name()}:{address}"

    def read(self, statement: sa.Select[Any], values: Mapping[str, object] | None = None) -> list[Any]:
        """The rows of a query, by one question to the database."""
        if self.is_sqlite:
            return self._connected(lambda connection: list(connection.execute(statement, values).all()))
        try:
            return self._ask(statement, values)
        except SQLAlchemyError as error:
            # A connection that was idle may have been closed by the other end; a new one will do.
            if not getattr(error, "connection_invalidated", False):
                raise self._failure(error) from None
        try:
            return self._ask(statement, values)
        except SQLAlchemyError as error:
            raise self._failure(error) from None

    def read_by_driver(self, statement: sa.Select[Any], values: Mapping[str, object]) -> list[Any] | None:
        """The rows of a query by PostgreSQL's driver alone, to which SQLAlchemy hands it slower than it is answered.

        None: there is no such driver here, or it failed; `read` does better then, or says what is wrong.
        """
        if self._url.drivername != _POSTGRESQL_DRIVER:
            return None
        try:
            engine = self._opened_reader()
            text, constants = self._texts.get(statement) or self._compiled(statement, engine)
            connection = engine.raw_connection()
        except SQLAlchemyError:
            return None
        try:
            cursor = connection.cursor()
            cursor.execute(text, {**constants, **values})
            return list(cursor.fetchall())
        except engine.dialect.loaded_dbapi.Error:
            connection.invalidate()
            return None
        finally:
            connection.close()

    def _compiled(self, statement: sa.Select[Any], engine: Engine) -> tuple[str, Mapping[str, object]]:
        compiled = statement.compile(engine)
        self._texts[statement] = str(compiled), compiled.params
        return self._texts[statement]

    def _ask(self, statement: sa.Select[Any], values: Mapping[str, object] | None) -> list[Any]:
        with self._opened_reader().connect() as connection:
            return list(connection.execute(statement, values).all())

    def inspect(self, look: Callable[[Inspector], Result]) -> Result:
        """What `look` sees in the database's own description."""
        return self._connected(lambda connection: look(sa.inspect(connection)))

    def _connected(self, work: Callable[[Connection], Result]) -> Result:
        try:
            with self._opened().connect() as connection:
                return work(connection)
        except SQLAlchemyError as error:
            raise self._failure(error) from None

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """What the work returns, done in one transaction: see `writing`."""
        with self.writing() as connection:
            return work(connection)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """The block is one transaction: see the module for what its errors mean. TakenError: a unique key is in use."""
        try:
            connection = self._opened().connect().execution_options(**{_WRITES: True})
        except SQLAlchemyError as error:
            raise self._failure(error) from None
        with connection:
            try:
                transaction = connection.begin()
                yield connection
            except IntegrityError as error:
                raise TakenError(_reason(error)) from None
            except SQLAlchemyError as error:
                raise self._failure(error) from None
            try:
                transaction.commit()
            except SQLAlchemyError as error:
                # A connection in an unknown state is not used again.
                connection.invalidate()
                if getattr(error.__cause__, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                    raise self._failure(error) from None
                raise CommitStateUnknown(
                    f"it is unknown whether a change of catalog {self._catalog!r} was committed: {self._text(error)}"
                ) from None

    def transaction(self, work: Callable[[Connection], Result]) -> Result:
        """The same, to change the tables of the database themselves."""
        if self.is_sqlite:
            self._prefer_wal()
        return self.write(work)

    @contextmanager
    def alongside(self, more: Alongside) -> Iterator[None]:
        """In this block, and this thread, every change does more work in its transaction, if it changes anything."""
        self._more.work = more
        try:
            yield
        finally:
            self._more.work = None

    def changed(self, connection: Connection, location: str | None = None) -> None:
        """To be called in the transaction of a change of names, once it has changed something."""
        more: Alongside | None = getattr(self._more, "work", None)
        if more is not None:
            more(connection, location)

    def create_tables(self, tables: sa.MetaData) -> None:
        """Create what is missing; others may do the same at the same time."""

        def create(connection: Connection) -> None:
            if not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATION_LOCK)))
            tables.create_all(connection)

        self.transaction(create)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            opened, self._engine, self._reader = (self._engine, self._reader), None, None
        for engine in opened:
            if engine is not None and engine[0] == os.getpid():
                engine[1].dispose()

    def _opened(self) -> Engine:
        with self._lock:
            if self._engine is None or self._engine[0] != os.getpid():
                patient = {"connect_args": {"timeout": BUSY_TIMEOUT_SECONDS}}
                self._engine = (os.getpid(), self._open(patient if self.is_sqlite else _WRITING))
            return self._engine[1]

    def _opened_reader(self) -> Engine:
        with self._lock:
            if self._reader is None or self._reader[0] != os.getpid():
                self._reader = (os.getpid(), self._open(_READING))
            return self._reader[1]

    def _open(self, options: Mapping[str, Any]) -> Engine:
        try:
            engine = sa.create_engine(self._url, **options)
        except (ArgumentError, NoSuchModuleError) as error:
            raise InvalidPropertyError(
                f"the uri of catalog {self._catalog!r} cannot be used: {self._text(error)}"
            ) from None
        except ModuleNotFoundError as error:
            raise NotInstalledError(
                f"catalog {self._catalog!r} needs the package {error.name!r} for {self}: pip install 'icefloe[postgres]'"
            ) from None
        if self.is_sqlite:
            sa.event.listen(engine, "connect", _leave_transactions_to_us)
            sa.event.listen(engine, "begin", _begin)
        weakref.finalize(self, _dispose, engine, os.getpid())
        return engine

    def _prefer_wal(self) -> None:
        """Let readers and a writer of a new file go on side by side; where that cannot be had, it works without."""
        try:
            raw = self._opened().raw_connection()
            try:
                raw.cursor().execute("PRAGMA journal_mode=WAL")
            finally:
                raw.close()
        except Exception as error:  # noqa: BLE001 - a driver's own error; whatever it is, the default will do
            if isinstance(error, SQLAlchemyError) and "unable to open" in str(error):
                raise self._failure(error) from None

    def _failure(self, error: SQLAlchemyError) -> StorageError:
        return StorageError(str(self), f"the database of catalog {self._catalog!r} failed: {self._text(error)}")

    def _text(self, error: Exception) -> str:
        secrets = [str(self._url.password)] if self._url.password else []
        return redacted(_reason(error), secrets)


def _parsed(catalog: str, uri: str | None) -> URL:
    if not uri:
        raise InvalidPropertyError(
            f"catalog {catalog!r} of type sql has no `uri`; give one such as sqlite:///catalog.db"
            " or postgresql://user:password@host/database"
        )
    try:
        url = sa.make_url(uri.removeprefix("jdbc:"))
    except (ArgumentError, ValueError):
        raise InvalidPropertyError(
            f"the uri of catalog {catalog!r} is not a database URI; expected sqlite:///catalog.db"
            " or postgresql://user:password@host/database"
        ) from None
    match url.drivername.partition("+"):
        case ("sqlite", _, _):
            return _sqlite(catalog, url)
        case ("postgresql" | "postgres", plus, driver):
            return url.set(drivername=f"postgresql+{driver}" if plus else _POSTGRESQL_DRIVER)
        case _:
            raise InvalidPropertyError(
                f"the uri of catalog {catalog!r} is for {url.drivername!r}; sqlite and postgresql are supported"
            )


def _sqlite(catalog: str, url: URL) -> URL:
    path = url.database
    if not path or path == ":memory:" or path.startswith("file:"):
        raise InvalidPropertyError(
            f"the uri of catalog {catalog!r} has no file; give sqlite:///path/of/file.db, or type='memory' for a catalog"
            " that ends with the process"
        )
    absolute = os.path.abspath(os.path.expanduser(path))
    if not os.path.isdir(folder := os.path.dirname(absolute)):
        raise InvalidPropertyError(f"the database of catalog {catalog!r} is in {folder!r}, which is not a folder")
    # A catalog that travels to another process, or outlives a change of folder, means the same file.
    return url.set(database=absolute)


def _leave_transactions_to_us(connection: Any, record: Any) -> None:  # noqa: ARG001 - the signature of the event
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    # A transaction that begins by reading could not become a writing one once another writer was faster.
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _dispose(engine: Engine, process: int) -> None:
    if os.getpid() == process:
        engine.dispose()


def _reason(error: Exception) -> str:
    original = getattr(error, "orig", None)
    return str(original if original is not None else error).strip()
