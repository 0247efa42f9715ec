"""Decides what an operation of the server gets and gives: a call with its warehouse, names and body, and an answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from sqlalchemy.engine import Connection

from icefloe.catalog import Alongside, Identifier, ServedCatalog
from icefloe.metadata import TableMetadata
from icefloe.rest.paths_codec import Endpoint
from icefloe.rest.tables_codec import Surplus
from icefloe.server.auth.protocols import Authorizer, Kind, Principal, Privilege, Target
from icefloe.server.holds import Holds
from icefloe.server.settings import ServerSettings
from icefloe.server.stopwatch import Stopwatch
from icefloe.server.warehouses import Warehouse

TABLE, VIEW = "table", "view"


class FileAccess(Protocol):
    """How clients get at the files of a table."""

    def surplus(self, call: "Call", identifier: Identifier, metadata: TableMetadata) -> Surplus:
        """What an answer with a table says about that: properties, credentials, signing."""


class Replay(Enum):
    """How the answer to a change is made again when the same request comes twice."""

    EMPTY = "empty"
    """No body."""
    BODY = "body"
    """The same body."""
    TABLE = "table"
    """The table at the metadata location that the change set, as it is loaded."""
    COMMITTED = "committed"
    """The same without configuration."""
    VIEW = "view"
    """The view at that metadata location."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back to the client; without a body, that it is done, and there is nothing to say."""

    body: bytes | None = None
    tag: str | None = None
    """What a client keeps to ask whether it has changed."""
    is_unchanged: bool = False
    """Whether the client has it already."""
    caching: str | None = None
    """How long others may keep it."""


NOTHING = Answer()
"""It is done, and there is nothing to say."""


@dataclass(slots=True)
class Call:
    """One request, understood: who asks, in which warehouse, about which names."""

    operation: "Operation"
    warehouse: Warehouse
    principal: Principal
    authorizer: Authorizer
    settings: ServerSettings
    namespace: Identifier
    name: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """By names in lower case."""
    body: bytes
    watch: Stopwatch
    access: FileAccess
    plan_id: str = ""
    """The plan that the path names."""
    replay_location: str | None = None
    """Where the answer is made again from, if the change itself sets no location."""
    replay_body: bytes | None = None
    """What the answer is, if the same request comes again."""
    location: str | None = None
    """The metadata location of the table that the path names, if it was asked for already."""
    holds: Holds | None = None
    """Dropped and protected tables; None without a database."""
    notes: dict[str, Alongside] = field(default_factory=dict)
    """What is written in the transaction of the change, in this order; by what it is for."""

    def note(self, connection: Connection, location: str | None) -> None:
        """Write all notes."""
        for write in self.notes.values():
            write(connection, location)

    @property
    def served(self) -> ServedCatalog:
        """The catalog of the warehouse."""
        return self.warehouse.served

    @property
    def identifier(self) -> Identifier:
        """The full name of the table or view that the path names."""
        return (*self.namespace, self.name)

    def check(self, privilege: Privilege, identifier: Identifier, noun: str | None = None) -> None:
        """Fail unless the caller has a privilege on a table or view, or, without a noun, on a namespace."""
        self.authorizer.check(self.principal, privilege, self.target(identifier, noun))

    def allows(self, privilege: Privilege, identifier: Identifier, noun: str | None = None) -> bool:
        """Whether the caller has a privilege, for answers that say more to those who may do more."""
        return self.authorizer.allows(self.principal, privilege, self.target(identifier, noun))

    def target(self, identifier: Identifier, noun: str | None = None) -> Target:
        """A table or view, or a namespace, as access control knows it."""
        if noun is None:
            return Target(self.warehouse.name, identifier)
        return Target(self.warehouse.name, identifier[:-1], identifier[-1], Kind(noun))

    def visible(self, names: list[Identifier], noun: str | None = None) -> list[Identifier]:
        """Those of the names that the caller may see."""
        targets = {self.target(name, noun): name for name in names}
        return [targets[target] for target in self.authorizer.visible(self.principal, list(targets))]


@dataclass(frozen=True, slots=True)
class Operation:
    """What the server does at one endpoint."""

    endpoint: Endpoint
    run: Callable[[Call], Answer]
    privilege: Privilege | None = None
    """On what the path names; None: the operation asks for it itself."""
    noun: str | None = None
    """Whether the path names a table or a view, or what is created in its namespace is one."""
    changes: bool = False
    """Whether it changes anything, so that a server that only reads refuses it."""
    replay: Replay | None = None
    """How the answer to a request with an Idempotency-Key is made again; None: it takes no such key."""
    has_own_words: bool = False
    """Whether its errors are told as they are."""
    if_unchanged: Callable[[Call, str], Answer | None] | None = None
    """Of one that begins with the pointer of a table: the answer to a client that has the table as it is there; None: it has not."""
