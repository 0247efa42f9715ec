"""Decides what the server knows of principals, credentials, roles and grants at one moment, and when it looks again."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from icefloe.bounded_cache import BoundedCache
from icefloe.errors import NotAuthorizedError
from icefloe.server.auth.credentials import Credential, checked_live, verified
from icefloe.server.auth.grants import Grant, GrantIndex, grantees_of
from icefloe.server.auth.protocols import Principal

REFRESH_SECONDS = 5.0
"""How long a server may not see a change that another one made."""

_REMEMBERED_PRINCIPALS = 10_000


@dataclass(frozen=True)
class Directory:
    """Principals, credentials, role members and grants at one moment."""

    principals: Mapping[str, bool] = field(default_factory=dict)
    """Whether a principal is enabled, by name. One of an identity provider need not be here, but can be disabled so."""
    credentials: Mapping[str, Credential] = field(default_factory=dict)
    """By id."""
    members: frozenset[tuple[str, str]] = frozenset()
    """Pairs of a role and a grantee that has it."""
    grants: frozenset[Grant] = frozenset()

    @cached_property
    def index(self) -> GrantIndex:
        """The grants, arranged for questions."""
        return GrantIndex(self.grants)

    @cached_property
    def _roles_by_member(self) -> Mapping[str, frozenset[str]]:
        roles: dict[str, set[str]] = {}
        for role, member in self.members:
            roles.setdefault(member, set()).add(role)
        return {member: frozenset(names) for member, names in roles.items()}

    @cached_property
    def _grantees(self) -> BoundedCache[Principal, frozenset[str]]:
        return BoundedCache(_REMEMBERED_PRINCIPALS)

    def grantees(self, principal: Principal) -> frozenset[str]:
        """Under which names grants reach the principal."""
        return self._grantees.load(principal, lambda: grantees_of(principal, self._roles_by_member))

    def of_token(self, token: str, user: str | None = None) -> Principal:
        """The principal of an API token; if a user is named with it, it must be that one."""
        credential = verified(token, self.credentials)
        if user and user != credential.principal:
            raise NotAuthorizedError("the API token is not one of the user that was named with it")
        return self._enabled(credential)

    def of_credential(self, number: str, principal: str) -> Principal:
        """The principal of a credential that was verified earlier, if it is still good."""
        credential = self.credentials.get(number)
        if credential is None or credential.principal != principal:
            raise NotAuthorizedError(f"the API token {number} is not known")
        return self._enabled(checked_live(credential))

    def _enabled(self, credential: Credential) -> Principal:
        if not self.principals.get(credential.principal, False):
            raise NotAuthorizedError(f"the principal {credential.principal!r} is disabled")
        return Principal(credential.principal, credential=credential.id)

    def check_enabled(self, principal: Principal) -> Principal:
        """The principal of an identity provider, unless it is disabled here."""
        if not self.principals.get(principal.name, True):
            raise NotAuthorizedError(f"the principal {principal.name!r} is disabled")
        return principal

    def joined(self, other: "Directory") -> "Directory":
        """What is in either; of a principal or credential that is in both, the other's."""
        return Directory(
            {**self.principals, **other.principals},
            {**self.credentials, **other.credentials},
            self.members | other.members,
            self.grants | other.grants,
        )


class DirectorySource:
    """The directory as it was at most `refresh_seconds` ago; threads share it.

    `load` is called with the version that is held, and gives another version with its directory, or None if it is the same.
    """

    def __init__(
        self, load: Callable[[int | None], tuple[int, Directory] | None], refresh_seconds: float = REFRESH_SECONDS
    ) -> None:
        self._load = load
        self._refresh_seconds = refresh_seconds
        self._lock = threading.Lock()
        self._held: tuple[int, Directory] | None = None
        self._fresh_until = 0.0

    @classmethod
    def of(cls, directory: Directory) -> "DirectorySource":
        """A source of what never changes."""
        return cls(lambda held: None if held is not None else (0, directory))

    def fresh(self) -> Directory | None:
        """The directory, if it is fresh enough: never waits."""
        held = self._held
        return held[1] if held is not None and time.monotonic() < self._fresh_until else None

    def current(self) -> Directory:
        """The directory; it is read again when it is due."""
        directory = self.fresh()
        return self._refreshed() if directory is None else directory

    def reload(self) -> None:
        """Look again at the next question: something was changed."""
        with self._lock:
            self._fresh_until = 0.0

    def _refreshed(self) -> Directory:
        with self._lock:
            directory = self.fresh()
            if directory is not None:
                return directory
            asked = time.monotonic()
            loaded = self._load(None if self._held is None else self._held[0])
            if loaded is not None:
                self._held = loaded
            assert self._held is not None
            self._fresh_until = asked + self._refresh_seconds
            return self._held[1]
