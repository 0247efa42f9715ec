"""Decides what a principal may do, by the grants of the directory, and how it is told that it may not."""

from collections.abc import Sequence

from icefloe.errors import ForbiddenError
from icefloe.server.auth.directory import DirectorySource
from icefloe.server.auth.directory_store import DirectoryStore
from icefloe.server.auth.grants import no_such_target, shown_target
from icefloe.server.auth.protocols import Kind, Principal, Privilege, Target


class GrantAuthorizer:
    """The built-in authorizer: allowed is what a grant allows, and nothing else."""

    def __init__(self, source: DirectorySource, store: DirectoryStore | None = None) -> None:
        self._source = source
        self._store = store

    def check(self, principal: Principal, privilege: Privilege, target: Target) -> None:
        """Return if allowed; ForbiddenError if the principal may at least list the target, else as if it did not exist."""
        directory = self._source.current()
        grantees = directory.grantees(principal)
        if directory.index.allows(grantees, privilege, target):
            return
        if target.kind is Kind.SERVER or directory.index.allows(grantees, Privilege.LIST, target):
            raise ForbiddenError(f"{principal.name!r} may not {privilege} {shown_target(target)}")
        # A warehouse that does not exist says so whatever is asked of it, and so does a hidden one.
        warehouse = Target(target.warehouse)
        raise no_such_target(target if directory.index.allows(grantees, Privilege.LIST, warehouse) else warehouse)

    def allows(self, principal: Principal, privilege: Privilege, target: Target) -> bool:
        """Whether a grant allows it."""
        directory = self._source.current()
        return directory.index.allows(directory.grantees(principal), privilege, target)

    def visible(self, principal: Principal, targets: Sequence[Target]) -> Sequence[Target]:
        """Those that the principal may list."""
        directory = self._source.current()
        return directory.index.listed(directory.grantees(principal), targets)

    def renamed(self, source: Target, destination: Target) -> None:
        """Grants in the database go with the table or view; those of the configuration are about names."""
        if self._store is not None:
            self._store.move_grants(source, destination)
            self._source.reload()

    def dropped(self, target: Target) -> None:
        """Grants in the database end with the object."""
        if self._store is not None:
            self._store.remove_grants_on(target)
            self._source.reload()


class OpenAuthorizer:
    """Everything is allowed to everybody: for a server that only its own machine can reach."""

    def check(self, principal: Principal, privilege: Privilege, target: Target) -> None:
        """Always allowed."""

    def allows(self, principal: Principal, privilege: Privilege, target: Target) -> bool:  # noqa: ARG002 - the protocol's
        """Always."""
        return True

    def visible(self, principal: Principal, targets: Sequence[Target]) -> Sequence[Target]:  # noqa: ARG002 - the protocol's
        """All of them."""
        return targets

    def renamed(self, source: Target, destination: Target) -> None:
        """Nothing was granted."""

    def dropped(self, target: Target) -> None:
        """Nothing was granted."""
