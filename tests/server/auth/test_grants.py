"""What grants allow: against the naive definition, for random grants, principals and targets."""

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import (
    ForbiddenError,
    InvalidInputError,
    NoSuchNamespaceError,
    NoSuchObjectError,
    NoSuchTableError,
    NoSuchViewError,
    NoSuchWarehouseError,
)
from icefloe.server.auth import Kind, Principal, Privilege, Target
from icefloe.server.auth.authorizers import GrantAuthorizer
from icefloe.server.auth.directory import Directory, DirectorySource
from icefloe.server.auth.grants import Grant

LEVELS = st.sampled_from(["a", "b", "..", "a\x1fb", "a.b", "a/b", "A"])
NAMES = st.sampled_from(["a", "b", "..", "%2F"])
PEOPLE = ("ann", "bob")
ROLES = ("r1", "r2", "r3")
GRANTEES = [*(f"principal:{name}" for name in PEOPLE), *(f"role:{name}" for name in ROLES)]
IMPLIED_BY = {
    Privilege.LIST: set(Privilege),
    Privilege.READ: {Privilege.READ, Privilege.WRITE, Privilege.MANAGE},
    Privilege.WRITE: {Privilege.WRITE, Privilege.MANAGE},
    Privilege.CREATE: {Privilege.CREATE, Privilege.MANAGE},
    Privilege.DROP: {Privilege.DROP, Privilege.MANAGE},
    Privilege.MANAGE: {Privilege.MANAGE},
}


@st.composite
def targets(draw: st.DrawFn) -> Target:
    warehouse = draw(st.sampled_from(["", "w1", "w2"]))
    namespace = tuple(draw(st.lists(LEVELS, max_size=3))) if warehouse else ()
    kind = draw(st.sampled_from([Kind.NAMESPACE, Kind.TABLE, Kind.VIEW]))
    if not namespace or kind is Kind.NAMESPACE:
        return Target(warehouse, namespace)
    return Target(warehouse, namespace, draw(NAMES), kind)


grants = st.builds(Grant, st.sampled_from(GRANTEES), st.sampled_from(Privilege), targets())
members = st.frozensets(st.tuples(st.sampled_from(ROLES), st.sampled_from(GRANTEES)), max_size=4)
directories = st.builds(Directory, members=members, grants=st.frozensets(grants, max_size=6))
principals = st.builds(Principal, st.sampled_from(PEOPLE), st.frozensets(st.sampled_from(ROLES), max_size=1))


def is_in(inner: Target, outer: Target) -> bool:
    """Whether the inner target is the outer one, or in it, said without walking up."""
    if not outer.warehouse:
        return True
    if outer.name is not None:
        return inner == outer
    return inner.warehouse == outer.warehouse and inner.namespace[: len(outer.namespace)] == outer.namespace


def naive(directory: Directory, principal: Principal, privilege: Privilege, target: Target) -> bool:
    """Whether it is allowed, by the definition."""
    names = {f"principal:{principal.name}", *(f"role:{role}" for role in principal.roles)}
    for _ in ROLES:
        names |= {f"role:{role}" for role, member in directory.members if member in names}
    mine = [grant for grant in directory.grants if grant.grantee in names]
    if any(grant.privilege in IMPLIED_BY[privilege] and is_in(target, grant.target) for grant in mine):
        return True
    return privilege is Privilege.LIST and any(is_in(grant.target, target) for grant in mine)


def allowed(authorizer: GrantAuthorizer, principal: Principal, privilege: Privilege, target: Target) -> bool:
    try:
        authorizer.check(principal, privilege, target)
    except (ForbiddenError, NoSuchObjectError):
        return False
    return True


@given(directories, principals, st.sampled_from(Privilege), targets())
def test_a_check_is_what_the_definition_says(
    directory: Directory, principal: Principal, privilege: Privilege, target: Target
) -> None:
    authorizer = GrantAuthorizer(DirectorySource.of(directory))
    assert allowed(authorizer, principal, privilege, target) == naive(directory, principal, privilege, target)


@given(directories, principals, st.lists(targets(), max_size=12))
def test_what_is_shown_is_what_may_be_listed(directory: Directory, principal: Principal, places: list[Target]) -> None:
    authorizer = GrantAuthorizer(DirectorySource.of(directory))
    shown = list(authorizer.visible(principal, places))
    assert shown == [place for place in places if allowed(authorizer, principal, Privilege.LIST, place)]


@given(directories, principals, st.sampled_from(Privilege), targets())
def test_what_may_not_be_listed_does_not_exist(
    directory: Directory, principal: Principal, privilege: Privilege, target: Target
) -> None:
    authorizer = GrantAuthorizer(DirectorySource.of(directory))
    if allowed(authorizer, principal, privilege, target):
        return
    may_list = bool(authorizer.visible(principal, [target]))
    is_forbidden = may_list or target.kind is Kind.SERVER
    with pytest.raises(ForbiddenError if is_forbidden else NoSuchObjectError):
        authorizer.check(principal, privilege, target)


@given(directories, grants, principals, st.sampled_from(Privilege), targets())
def test_more_grants_never_allow_less(
    directory: Directory, more: Grant, principal: Principal, privilege: Privilege, target: Target
) -> None:
    larger = GrantAuthorizer(DirectorySource.of(directory.joined(Directory(grants=frozenset({more})))))
    if allowed(GrantAuthorizer(DirectorySource.of(directory)), principal, privilege, target):
        assert allowed(larger, principal, privilege, target)


@pytest.mark.parametrize(
    ("target", "error"),
    [
        (Target("w"), NoSuchWarehouseError),
        (Target("w", ("a",)), NoSuchNamespaceError),
        (Target("w", ("a",), "t", Kind.TABLE), NoSuchTableError),
        (Target("w", ("a",), "t", Kind.VIEW), NoSuchViewError),
    ],
)
def test_a_hidden_target_is_answered_by_its_kind(target: Target, error: type[Exception]) -> None:
    seen = Grant("principal:ann", Privilege.READ, Target("w", ("seen",)))
    authorizer = GrantAuthorizer(DirectorySource.of(Directory(grants=frozenset({seen}))))
    with pytest.raises(NoSuchWarehouseError):
        authorizer.check(Principal("bob"), Privilege.READ, target)
    if target.namespace:
        with pytest.raises(error):
            authorizer.check(Principal("ann"), Privilege.READ, target)


def test_a_grant_on_a_table_is_not_one_on_the_view_of_that_name() -> None:
    table = Target("w", ("a",), "t", Kind.TABLE)
    authorizer = GrantAuthorizer(
        DirectorySource.of(Directory(grants=frozenset({Grant("role:r1", Privilege.MANAGE, table)})))
    )
    ann = Principal("ann", frozenset({"r1"}))
    assert allowed(authorizer, ann, Privilege.READ, table)
    assert not allowed(authorizer, ann, Privilege.LIST, Target("w", ("a",), "t", Kind.VIEW))


def test_roles_that_are_members_of_each_other_end() -> None:
    members = frozenset({("r1", "role:r2"), ("r2", "role:r1"), ("r1", "principal:ann")})
    directory = Directory(members=members, grants=frozenset({Grant("role:r2", Privilege.READ, Target("w"))}))
    assert allowed(GrantAuthorizer(DirectorySource.of(directory)), Principal("ann"), Privilege.READ, Target("w"))


def test_a_role_is_not_a_principal_of_the_same_name() -> None:
    directory = Directory(grants=frozenset({Grant("role:ann", Privilege.READ, Target("w"))}))
    assert not allowed(GrantAuthorizer(DirectorySource.of(directory)), Principal("ann"), Privilege.READ, Target("w"))


@pytest.mark.parametrize("text", ["ann", "role:", "principal: ", "group:x", "role:a\nb"])
def test_what_is_not_a_grantee(text: str) -> None:
    with pytest.raises(InvalidInputError, match="not a grantee"):
        Grant(text, Privilege.READ, Target())


@pytest.mark.parametrize("wrong", [("", (), "t"), ("w", (), "t")])
def test_a_table_is_in_a_namespace(wrong: tuple[str, tuple[str, ...], str]) -> None:
    with pytest.raises(ValueError, match="in a namespace"):
        Target(*wrong, Kind.TABLE)
