"""Protocols for visitors of the pages: identity and permissions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from icefloe.catalog import Identifier

TABLE, VIEW, NAMESPACE = "table", "view", "namespace"


class Visitor(Protocol):
    """The user who views a page."""

    @property
    def name(self) -> str | None:
        """Name of the user, if known."""
        ...

    def sees_catalog(self, catalog: str) -> bool:
        """Whether the user may see a catalog."""
        ...

    def visible(self, catalog: str, names: Sequence[Identifier], noun: str) -> Sequence[Identifier]:
        """Return the names that the user may see, in the same order."""
        ...

    def may_read(self, catalog: str, name: Identifier, noun: str) -> bool:
        """Whether the user may see more than the name."""
        ...

    def check_read(self, catalog: str, name: Identifier, noun: str) -> None:
        """Raise an error unless the user may read the object; a "not found" error if even its name is hidden."""
        ...


class Gate(Protocol):
    """Authentication of visitors."""

    def visitor(self, scope: Mapping[str, object], credential: str | None) -> Visitor | None:
        """Return the visitor for a request and its credential cookie; None if a sign-in is needed."""
        ...

    def accepts(self, credential: str) -> bool:
        """Whether a submitted credential is valid and may be stored in a cookie."""
        ...


@dataclass(frozen=True, slots=True)
class Owner:
    """The user whose process serves the pages, and who may see everything."""

    name: str | None = None

    def sees_catalog(self, catalog: str) -> bool:  # noqa: ARG002 - the protocol's
        """Always."""
        return True

    def visible(self, catalog: str, names: Sequence[Identifier], noun: str) -> Sequence[Identifier]:  # noqa: ARG002 - the protocol's
        """All."""
        return names

    def may_read(self, catalog: str, name: Identifier, noun: str) -> bool:  # noqa: ARG002 - the protocol's
        """Always."""
        return True

    def check_read(self, catalog: str, name: Identifier, noun: str) -> None:
        """Do nothing: everything may be read."""
