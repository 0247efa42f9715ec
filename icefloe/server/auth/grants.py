"""Decides what a set of grants allows: privileges imply others, reach downwards, and everything else is denied.

A grantee is `principal:NAME` or `role:NAME`. There are no grants that forbid, so that more grants never allow less.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from icefloe.catalog import show
from icefloe.errors import InvalidInputError, NoSuchObjectError, NoSuchWarehouseError
from icefloe.rest.errors_codec import no_namespace, no_table, no_view
from icefloe.server.auth.protocols import Kind, Principal, Privilege, Target

PRINCIPAL = "principal:"
ROLE = "role:"

_IMPLIED: Mapping[Privilege, frozenset[Privilege]] = {
    Privilege.LIST: frozenset({Privilege.LIST}),
    Privilege.READ: frozenset({Privilege.READ, Privilege.LIST}),
    Privilege.WRITE: frozenset({Privilege.WRITE, Privilege.READ, Privilege.LIST}),
    Privilege.CREATE: frozenset({Privilege.CREATE, Privilege.LIST}),
    Privilege.DROP: frozenset({Privilege.DROP, Privilege.LIST}),
    Privilege.MANAGE: frozenset(Privilege),
}


@dataclass(frozen=True, slots=True)
class Grant:
    """One privilege of one grantee on one target."""

    grantee: str
    privilege: Privilege
    target: Target

    def __post_init__(self) -> None:
        check_grantee(self.grantee)

    def __str__(self) -> str:
        return f"{self.privilege} on {shown_target(self.target)} to {self.grantee}"


class GrantIndex:
    """Grants arranged for the question whether one of them allows something."""

    def __init__(self, grants: Iterable[Grant]) -> None:
        self._allowed: dict[tuple[str, Target], frozenset[Privilege]] = {}
        self._on_the_way: set[tuple[str, Target]] = set()
        for grant in grants:
            key = (grant.grantee, grant.target)
            self._allowed[key] = self._allowed.get(key, frozenset()) | _IMPLIED[grant.privilege]
            self._on_the_way.update((grant.grantee, above) for above in way_up(grant.target.parent))

    def allows(self, grantees: Iterable[str], privilege: Privilege, target: Target) -> bool:
        """Whether one of the grantees has the privilege on the target, or on something that the target is in.

        What leads to a granted target may be listed: without that, nobody could walk there.
        """
        if self._is_granted(grantees, privilege, target):
            return True
        return privilege is Privilege.LIST and any((grantee, target) in self._on_the_way for grantee in grantees)

    def _is_granted(self, grantees: Iterable[str], privilege: Privilege, target: Target) -> bool:
        way = tuple(way_up(target))
        return any(privilege in self._allowed.get((grantee, place), ()) for grantee in grantees for place in way)

    def listed(self, grantees: frozenset[str], targets: Iterable[Target]) -> list[Target]:
        """Those of the targets that may be listed; for many of one place, that place is looked at once."""
        places: dict[tuple[str, tuple[str, ...]], bool] = {}
        kept = []
        for target in targets:
            is_kept = bool(target.namespace) and places.get(_place(target))
            if is_kept is None:
                is_kept = places[_place(target)] = self._is_granted(grantees, Privilege.LIST, Target(*_place(target)))
            if is_kept or (
                self._is_named(grantees, target) if target.namespace else self.allows(grantees, Privilege.LIST, target)
            ):
                kept.append(target)
        return kept

    def _is_named(self, grantees: Iterable[str], target: Target) -> bool:
        """Whether something is granted on the target itself, or on what it leads to: each privilege implies to list."""
        return any((grantee, target) in self._allowed or (grantee, target) in self._on_the_way for grantee in grantees)


def _place(target: Target) -> tuple[str, tuple[str, ...]]:
    """What a table, view or namespace is in, without making a target of it."""
    return target.warehouse, target.namespace if target.name is not None else target.namespace[:-1]


def way_up(target: Target | None) -> Iterator[Target]:
    """The target, what it is in, and so on, up to the server."""
    while target is not None:
        yield target
        target = target.parent


def grantees_of(principal: Principal, members: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The principal itself and all its roles: asserted ones, and those that `members` (roles by member) add to any of them."""
    reached = {PRINCIPAL + principal.name, *(ROLE + role for role in principal.roles)}
    unfinished = list(reached)
    while unfinished:
        for role in members.get(unfinished.pop(), ()):
            if (grantee := ROLE + role) not in reached:
                reached.add(grantee)
                unfinished.append(grantee)
    return frozenset(reached)


def check_grantee(text: str) -> str:
    """The text, if it is a grantee."""
    prefix = next((prefix for prefix in (PRINCIPAL, ROLE) if text.startswith(prefix)), None)
    if prefix is None or not text[len(prefix) :].strip() or not text.isprintable():
        raise InvalidInputError(f"{text!r:.300} is not a grantee; write principal:NAME or role:NAME")
    return text


def shown_target(target: Target) -> str:
    """A target in words, for messages and listings."""
    match target.kind:
        case Kind.SERVER:
            return "the server"
        case Kind.WAREHOUSE:
            return f"warehouse {target.warehouse!r}"
        case Kind.NAMESPACE:
            return f"namespace {show(target.namespace)} in warehouse {target.warehouse!r}"
        case Kind.TABLE | Kind.VIEW:
            return f"{target.kind} {show((*target.namespace, str(target.name)))} in warehouse {target.warehouse!r}"


def no_such_target(target: Target) -> NoSuchObjectError:
    """The error about a target that does not exist, or that the principal may not know of."""
    match target.kind:
        case Kind.NAMESPACE:
            return no_namespace(target.namespace)
        case Kind.TABLE:
            return no_table((*target.namespace, str(target.name)))
        case Kind.VIEW:
            return no_view((*target.namespace, str(target.name)))
        case Kind.SERVER | Kind.WAREHOUSE:
            return NoSuchWarehouseError(f"Warehouse does not exist: {target.warehouse}")
