"""Decides how a REST server is asked about tables, and when what it said before is good enough."""

import time
from dataclasses import dataclass, replace

from icefloe import errors, properties as props, rest
from icefloe.bounded_cache import BoundedCache
from icefloe.catalog.identifiers import Identifier, show
from icefloe.catalog.rest import http_codec as wire
from icefloe.catalog.rest.http import Response, RestClient
from icefloe.catalog.rest.outcomes import asked, changed, committed, dropped, is_there
from icefloe.catalog.rest.session import RestSession
from icefloe.rest import paths
from icefloe.rest.dropped_codec import LIST_DROPPED, UNDROP, DroppedTable, decode_dropped, encode_undrop

_KEPT_MS = "rest-table-cache.expire-after-write-ms"
_MOST_KEPT = "rest-table-cache.max-entries"
_FIVE_MINUTES_MS = 300_000


@dataclass(frozen=True, slots=True)
class _Kept:
    """A table as a server gave it, with the tag by which the server knows that version of it."""

    tag: str
    table: rest.LoadedTable
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
            self.session.request(
                endpoint, rest.Context.TABLE, _about(identifier), tuple(namespace), names={"table": name}
            )
        )

    def names(self, namespace: Identifier) -> set[Identifier]:
        """The tables of a namespace."""
        about = f"the tables of {show(namespace)}"
        return set(
            self.session.names(paths.LIST_TABLES, rest.Context.NAMESPACE, about, rest.decode_identifiers, namespace)
        )

    def load(
        self,
        identifier: Identifier,
        snapshots: str = rest.ALL_SNAPSHOTS,
        client: RestClient | None = None,
        *,
        is_new: bool = False,
    ) -> rest.LoadedTable:
        """The table as it is now; what the server gave before if it says that this has not changed.

        Args:
            identifier: its name.
            snapshots: whether all snapshots are wanted, or those of branches and tags.
            client: in whose name it is asked.
            is_new: whether nothing will do that the server gave before, such as credentials.
        """
        if not self.session.has(paths.LOAD_TABLE):
            raise errors.NoSuchTableError(f"{_about(identifier)}: the server does not support loading tables")
        *namespace, name = identifier
        kept = None if is_new else self._find(identifier, snapshots)
        answer = asked(
            self.session.request(
                paths.LOAD_TABLE,
                rest.Context.TABLE,
                _about(identifier),
                tuple(namespace),
                query=None if snapshots == rest.ALL_SNAPSHOTS else {wire.SNAPSHOTS: snapshots},
                headers_too=None if kept is None else {rest.headers.IF_NONE_MATCH: kept.tag},
                client=client,
                names={"table": name},
            )
        )
        if kept is not None and wire.is_not_modified(answer.status):
            return kept.table
        return self._read(identifier, answer, snapshots)

    def create(self, identifier: Identifier, table: rest.NewTable) -> rest.LoadedTable:
        """Create a table, or stage one."""
        request = self.session.request(
            paths.CREATE_TABLE,
            rest.Context.TABLE,
            _about(identifier),
            identifier[:-1],
            body=rest.encode_new_table(table),
        )
        return self._read(identifier, changed(request))

    def register(self, identifier: Identifier, metadata_location: str, overwrite: bool) -> rest.LoadedTable:
        """Give a name to a table that exists as a metadata file."""
        body = rest.encode_registration(rest.Registration(identifier[-1], metadata_location, overwrite))
        request = self.session.request(
            paths.REGISTER_TABLE, rest.Context.TABLE, _about(identifier), identifier[:-1], body=body
        )
        self.forget(identifier)
        return self._read(identifier, changed(request))

    def commit(
        self,
        identifier: Identifier,
        commit: rest.TableCommit,
        client: RestClient | None = None,
        context: rest.Context = rest.Context.TABLE_COMMIT,
    ) -> rest.LoadedTable:
        """Change a table once; the answer has its metadata, and nothing besides."""
        *namespace, name = identifier
        request = self.session.request(
            paths.UPDATE_TABLE,
            context,
            _about(identifier),
            tuple(namespace),
            body=rest.encode_commit(commit),
            client=client,
            names={"table": name},
        )
        kept = self._find(identifier, rest.ALL_SNAPSHOTS)
        self.forget(identifier)
        answer = committed(request)
        try:
            table = self._read(identifier, answer, keeps=False)
        except errors.InvalidInputError as error:
            raise errors.CommitStateUnknown(
                f"the server changed {_about(identifier)}, but its response cannot be read: {error}"
            ) from error
        if kept is not None:
            # What came with the table when it was loaded is with it still.
            self._keep(identifier, answer, replace(table, surplus=kept.table.surplus), rest.ALL_SNAPSHOTS)
        return table

    def commit_all(self, commits: tuple[rest.TableCommit, ...]) -> None:
        """Change several tables at once."""
        names = [commit.identifier for commit in commits if commit.identifier is not None]
        about = ", ".join(_about(identifier) for identifier in names)
        request = self.session.request(
            paths.COMMIT_TRANSACTION, rest.Context.TRANSACTION, about, body=rest.encode_transaction(commits)
        )
        for identifier in names:
            self.forget(identifier)
        committed(request)

    def dropped(self) -> list[DroppedTable]:
        """The dropped tables that the server keeps."""
        return decode_dropped(asked(self.session.request(LIST_DROPPED, rest.Context.CONFIG, "the dropped tables")).body)

    def undrop(self, table: DroppedTable, name: Identifier | None) -> None:
        """Give a dropped table a name again."""
        body = encode_undrop(table.id, name)
        about = f"dropped table {show(table.identifier)}"
        changed(self.session.request(UNDROP, rest.Context.TABLE, about, body=body))

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Give a table another name."""
        request = self.session.request(
            paths.RENAME_TABLE,
            rest.Context.TABLE,
            f"{_about(source)} to {show(target)}",
            body=rest.encode_rename(rest.Rename(source, target)),
        )
        self.forget(source)
        changed(request)

    def drop(self, identifier: Identifier, purge: bool = False) -> bool:
        """Drop a table, with its files if they are to be purged; whether there was one."""
        *namespace, name = identifier
        request = self.session.request(
            paths.DROP_TABLE,
            rest.Context.TABLE,
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
            for snapshots in (rest.ALL_SNAPSHOTS, rest.REFERENCED_SNAPSHOTS):
                self._kept.pop((identifier, snapshots))

    def _find(self, identifier: Identifier, snapshots: str) -> _Kept | None:
        kept = None if self._kept is None else self._kept.find((identifier, snapshots))
        return kept if kept is not None and time.monotonic() - kept.since < self._kept_seconds else None

    def _read(
        self,
        identifier: Identifier,
        answer: Response,
        snapshots: str = rest.ALL_SNAPSHOTS,
        *,
        keeps: bool = True,
    ) -> rest.LoadedTable:
        table = rest.decode_loaded_table(answer.body)
        if table.metadata_location is None:
            return table
        table = replace(table, metadata=table.metadata.located(table.metadata_location))
        if keeps:
            self._keep(identifier, answer, table, snapshots)
        return table

    def _keep(self, identifier: Identifier, answer: Response, table: rest.LoadedTable, snapshots: str) -> None:
        tag = answer.headers.get(rest.headers.ETAG.lower())
        if self._kept is not None and tag:
            self._kept.keep((identifier, snapshots), _Kept(tag, table, time.monotonic()))


def _about(identifier: Identifier) -> str:
    return f"table {show(identifier)}"
