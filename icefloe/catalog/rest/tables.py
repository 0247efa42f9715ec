"""Decides how a REST server is asked about tables, and when what it said before is good enough."""

import time
from dataclasses import dataclass, replace

from icefloe import errors, properties as props
from icefloe.bounded_cache import BoundedCache
from icefloe.catalog.identifiers import Identifier, show
from icefloe.catalog.rest import http_codec as wire
from icefloe.catalog.rest.http import Response, RestClient
from icefloe.catalog.rest.outcomes import asked, changed, committed, dropped, is_there
from icefloe.catalog.rest.session import RestSession
from icefloe.rest import (
    ALL_SNAPSHOTS,
    REFERENCED_SNAPSHOTS,
    Context,
    LoadedTable,
    NewTable,
    Registration,
    Rename,
    TableCommit,
    decode_identifiers,
    decode_loaded_table,
    encode_commit,
    encode_new_table,
    encode_registration,
    encode_rename,
    encode_transaction,
    headers,
    paths,
)
from icefloe.rest.dropped_codec import LIST_DROPPED, UNDROP, DroppedTable, decode_dropped, encode_undrop

_KEPT_MS = "rest-table-cache.expire-after-write-ms"
_MOST_KEPT = "rest-table-cache.max-entries"
_FIVE_MINUTES_MS = 300_000


@dataclass(frozen=True, slots=True)
class _Kept:
    """A table as a server gave it, with the tag by which the server knows that version of it."""

    tag: str
    table: LoadedTable
    since: float


class RestTables:
    """The tables of one server."""

    def __init__(self, session: RestSession) -> None:
        self.session = session
        most = props.property_as_int(session.properties, _MOST_KEPT, 100, at_least=0)
        self._kept_seconds = props.property_as_int(session.properties, _KEPT_MS, _FIVE_MINUTES_MS, at_least=0) / 1000
        self._kept: BoundedCache[tuple[Identifier, str], _Kept] | None = BoundedCache(most) if most else None

    def exists(self, identifier: Identifier) -> bool:
        """Whether there is such a table."""
        endpoint = paths.TABLE_EXISTS if self.session.has(paths.TABLE_EXISTS) else paths.LOAD_TABLE
        if not self.session.has(endpoint):
            return False
        *namespace, name = identifier
        return is_there(
            self.session.request(endpoint, Context.TABLE, _about(identifier), tuple(namespace), names={"table": name})
        )

    def names(self, namespace: Identifier) -> set[Identifier]:
        """The tables of a namespace."""
        about = f"the tables of {show(namespace)}"
        return set(self.session.names(paths.LIST_TABLES, Context.NAMESPACE, about, decode_identifiers, namespace))

    def load(
        self,
        identifier: Identifier,
        snapshots: str = ALL_SNAPSHOTS,
        client: RestClient | None = None,
        *,
        is_new: bool = False,
    ) -> LoadedTable:
        """The table as it is now; what the server gave before if it says that this has not changed.

        Args:
            identifier: its name.
            snapshots: whether all snapshots are wanted, or those of branches and tags.
            client: in whose name it is asked.
            is_new: whether nothing will do that the server gave before, such as credentials.
        """
        if not self.session.has(paths.LOAD_TABLE):
            raise errors.NoSuchTableError(f"{_about(identifier)}: the server offers no tables to load")
        *namespace, name = identifier
        kept = None if is_new else self._find(identifier, snapshots)
        answer = asked(
            self.session.request(
                paths.LOAD_TABLE,
                Context.TABLE,
                _about(identifier),
                tuple(namespace),
                query=None if snapshots == ALL_SNAPSHOTS else {wire.SNAPSHOTS: snapshots},
                headers_too=None if kept is None else {headers.IF_NONE_MATCH: kept.tag},
                client=client,
                names={"table": name},
            )
        )
        if kept is not None and wire.is_not_modified(answer.status):
            return kept.table
        return self._read(identifier, answer, snapshots)

    def create(self, identifier: Identifier, table: NewTable) -> LoadedTable:
        """Create a table, or stage one."""
        request = self.session.request(
            paths.CREATE_TABLE, Context.TABLE, _about(identifier), identifier[:-1], body=encode_new_table(table)
        )
        return self._read(identifier, changed(request))

    def register(self, identifier: Identifier, metadata_location: str, overwrite: bool) -> LoadedTable:
        """Give a name to a table that exists as a metadata file."""
        body = encode_registration(Registration(identifier[-1], metadata_location, overwrite))
        request = self.session.request(
            paths.REGISTER_TABLE, Context.TABLE, _about(identifier), identifier[:-1], body=body
        )
        self.forget(identifier)
        return self._read(identifier, changed(request))

    def commit(
        self,
        identifier: Identifier,
        commit: TableCommit,
        client: RestClient | None = None,
        context: Context = Context.TABLE_COMMIT,
    ) -> LoadedTable:
        """Change a table once; the answer has its metadata, and nothing besides."""
        *namespace, name = identifier
        request = self.session.request(
            paths.UPDATE_TABLE,
            context,
            _about(identifier),
            tuple(namespace),
            body=encode_commit(commit),
            client=client,
            names={"table": name},
        )
        kept = self._find(identifier, ALL_SNAPSHOTS)
        self.forget(identifier)
        answer = committed(request)
        try:
            table = self._read(identifier, answer, keeps=False)
        except errors.InvalidInputError as error:
            raise errors.CommitStateUnknown(
                f"the server says that it changed {_about(identifier)}, in words that mean nothing here: {error}"
            ) from error
        if kept is not None:
            # What came with the table when it was loaded is with it still.
            self._keep(identifier, answer, replace(table, surplus=kept.table.surplus), ALL_SNAPSHOTS)
        return table

    def commit_all(self, commits: tuple[TableCommit, ...]) -> None:
        """Change several tables at once."""
        names = [commit.identifier for commit in commits if commit.identifier is not None]
        about = ", ".join(_about(identifier) for identifier in names)
        request = self.session.request(
            paths.COMMIT_TRANSACTION, Context.TRANSACTION, about, body=encode_transaction(commits)
        )
        for identifier in names:
            self.forget(identifier)
        committed(request)

    def dropped(self) -> list[DroppedTable]:
        """The dropped tables that the server keeps."""
        return decode_dropped(asked(self.session.request(LIST_DROPPED, Context.CONFIG, "the dropped tables")).body)

    def undrop(self, table: DroppedTable, name: Identifier | None) -> None:
        """Give a dropped table a name again."""
        body = encode_undrop(table.id, name)
        about = f"dropped table {show(table.identifier)}"
        changed(self.session.request(UNDROP, Context.TABLE, about, body=body))

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Give a table another name."""
        request = self.session.request(
            paths.RENAME_TABLE,
            Context.TABLE,
            f"{_about(source)} to {show(target)}",
            body=encode_rename(Rename(source, target)),
        )
        self.forget(source)
        changed(request)

    def drop(self, identifier: Identifier, purge: bool = False) -> bool:
        """Drop a table, with its files if they are to be purged; whether there was one."""
        *namespace, name = identifier
        request = self.session.request(
            paths.DROP_TABLE,
            Context.TABLE,
            _about(identifier),
            tuple(namespace),
            query={wire.PURGE: wire.TRUE} if purge else None,
            names={"table": name},
        )
        self.forget(identifier)
        return dropped(request)

    def forget(self, identifier: Identifier) -> None:
        """Do not use what the server gave before."""
        if self._kept is not None:
            for snapshots in (ALL_SNAPSHOTS, REFERENCED_SNAPSHOTS):
                self._kept.pop((identifier, snapshots))

    def _find(self, identifier: Identifier, snapshots: str) -> _Kept | None:
        kept = None if self._kept is None else self._kept.find((identifier, snapshots))
        return kept if kept is not None and time.monotonic() - kept.since < self._kept_seconds else None

    def _read(
        self,
        identifier: Identifier,
        answer: Response,
        snapshots: str = ALL_SNAPSHOTS,
        *,
        keeps: bool = True,
    ) -> LoadedTable:
        table = decode_loaded_table(answer.body)
        if table.metadata_location is None:
            return table
        table = replace(table, metadata=table.metadata.located(table.metadata_location))
        if keeps:
            self._keep(identifier, answer, table, snapshots)
        return table

    def _keep(self, identifier: Identifier, answer: Response, table: LoadedTable, snapshots: str) -> None:
        tag = answer.headers.get(headers.ETAG.lower())
        if self._kept is not None and tag:
            self._kept.keep((identifier, snapshots), _Kept(tag, table, time.monotonic()))


def _about(identifier: Identifier) -> str:
    return f"table {show(identifier)}"
