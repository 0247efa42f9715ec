"""Decides the words of access control: principals, privileges, their targets, and the two questions that the server asks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Privilege(StrEnum):
    """What may be done with a target, and with everything in it."""

    LIST = "list"
    """See that it exists, and list what is in it."""
    READ = "read"
    """Load it: properties of a namespace, metadata and data of a table, a view."""
    WRITE = "write"
    """Change it: commits to tables and views, properties of namespaces."""
    CREATE = "create"
    """Create namespaces, tables and views in it."""
    DROP = "drop"
    """Drop it, or rename it away."""
    MANAGE = "manage"
    """All of the above, and what only its administrator may do: grants, locations, registering of foreign files."""


class Kind(StrEnum):
    """What a target is."""

    SERVER = "server"
    WAREHOUSE = "warehouse"
    NAMESPACE = "namespace"
    TABLE = "table"
    VIEW = "view"


@dataclass(frozen=True, slots=True)
class Target:
    """A place in the tree of objects: the server, a warehouse, a namespace in it, or a table or view in that."""

    warehouse: str = ""
    """Empty: the whole server."""
    namespace: tuple[str, ...] = ()
    """Levels, outermost first; empty: the whole warehouse."""
    name: str | None = None
    """Name of a table or view; None: the namespace itself."""
    kind: Kind = Kind.NAMESPACE
    """TABLE or VIEW where there is a name; otherwise it follows from what is given."""

    def __post_init__(self) -> None:
        if self.name is None:
            kind = Kind.NAMESPACE if self.namespace else Kind.WAREHOUSE if self.warehouse else Kind.SERVER
            object.__setattr__(self, "kind", kind)
        elif self.kind not in (Kind.TABLE, Kind.VIEW) or not (self.namespace and self.warehouse):
            raise ValueError(f"a target with the name {self.name!r} is a table or view in a namespace of a warehouse")

    @property
    def parent(self) -> "Target | None":
        """What it is in, or None for the server."""
        if self.name is not None:
            return Target(self.warehouse, self.namespace)
        if self.namespace:
            return Target(self.warehouse, self.namespace[:-1])
        return Target() if self.warehouse else None


@dataclass(frozen=True, slots=True)
class Principal:
    """A user or program, as an authenticator knows it."""

    name: str
    """Unique on the server: a local name, or `issuer:subject` for one of an identity provider."""
    roles: frozenset[str] = frozenset()
    """Roles as the authenticator asserts them; memberships that the server keeps are added by the authorizer."""
    credential: str | None = None
    """Id of the API token or credential that was used, for the audit; never a secret."""


class Authenticator(Protocol):
    """Who is calling?"""

    def authenticate(self, headers: Mapping[str, str]) -> Principal:
        """The principal of a request by its headers, whose names are in lower case.

        NotAuthorizedError (401): nobody, or somebody whose credential is wrong, expired or revoked.
        It may read a database or ask an identity provider, so it is called in a thread.
        """
        ...

    def remembered(self, headers: Mapping[str, str]) -> Principal | None:
        """The same, if it is known without waiting for anything; else None."""
        ...


class Authorizer(Protocol):
    """What may they do?

    An answer depends on grants alone, never on whether the target exists, so it may be asked before anything is read.
    """

    def check(self, principal: Principal, privilege: Privilege, target: Target) -> None:
        """Return if the principal has the privilege.

        ForbiddenError (403): it does not, but it may list the target. NoSuchObjectError (404), by the kind of target: it may
        not even list it, and is answered as if the target did not exist.
        """
        ...

    def allows(self, principal: Principal, privilege: Privilege, target: Target) -> bool:
        """Whether `check` would return: for answers that say more to those who may do more. It is not recorded."""
        ...

    def visible(self, principal: Principal, targets: Sequence[Target]) -> Sequence[Target]:
        """Those of the targets that the principal may list, in the same order: exactly those where `check` of LIST returns."""
        ...

    def renamed(self, source: Target, destination: Target) -> None:
        """A table or view was renamed: what was granted on it stays with it. Called after the rename."""
        ...

    def dropped(self, target: Target) -> None:
        """A table, view or namespace was dropped: a later one of its name starts without what was granted on it."""
        ...
