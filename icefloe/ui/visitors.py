"""Decides what pages ask about the one who looks at them: who it is, and what they may see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from icefloe.catalog import Identifier

TABLE, VIEW, NAMESPACE = "table", "view", "namespace"


class Visitor(Protocol):
    """The one who looks."""

    @property
    def name(self) -> str | None:
        """Who it is, if somebody knows."""
        ...

    def sees_catalog(self, catalog: str) -> bool:
        """Whether a catalog is shown."""
        ...

    def visible(self, catalog: str, names: Sequence[Identifier], noun: str) -> Sequence[Identifier]:
        """Those of the names that are shown, in the same order."""
        ...

    def may_read(self, catalog: str, name: Identifier, noun: str) -> bool:
        """Whether more than a name is shown."""
        ...

    def check_read(self, catalog: str, name: Identifier, noun: str) -> None:
        """Fail unless more than a name is shown: as if there were no such thing, if not even its name is."""
        ...


class Gate(Protocol):
    """Who is let in to the pages."""

    def visitor(self, scope: Mapping[str, object], credential: str | None) -> Visitor | None:
        """The one who looks, by the request and the credential that the browser keeps; None: it must be asked for."""
        ...

    def accepts(self, credential: str) -> bool:
        """Whether a credential that was typed in is right, so that the browser may keep it."""
        ...


@dataclass(frozen=True, slots=True)
class Owner:
    """One who sees everything: the user whose process serves the pages."""

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
        """Never fails."""
