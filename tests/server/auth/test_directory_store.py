"""Principals, tokens, roles and grants in a real database, SQLite and PostgreSQL."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from icefloe.catalog import Database
from icefloe.errors import AlreadyExistsError, InvalidInputError, NoSuchObjectError, NotAuthorizedError
from icefloe.server.auth import Kind, Principal, Privilege, Target
from icefloe.server.auth.access import guarded_access
from icefloe.server.auth.authorizers import GrantAuthorizer
from icefloe.server.auth.directory import Directory, DirectorySource
from icefloe.server.auth.directory_store import DirectoryStore
from icefloe.server.auth.grants import Grant
from icefloe.server.auth.settings_codec import AuthSettings
from icefloe.server.tables import OWN_TABLES

TABLE = Target("lake", ("shop.eu", 'odd "level"'), "orders", Kind.TABLE)
ON_TABLE = Grant("role:readers", Privilege.READ, TABLE)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database with the server's tables."""
    if request.param == "sqlite":
        uri = f"sqlite:///{tmp_path}/server.db"
    else:
        uri = request.getfixturevalue("postgres").new_database()
    opened = Database("server", uri)
    opened.create_tables(OWN_TABLES)
    yield opened
    opened.close()


@pytest.fixture
def store(database: Database) -> DirectoryStore:
    return DirectoryStore(database)


def read(store: DirectoryStore) -> Directory:
    loaded = store.load()
    assert loaded is not None
    return loaded[1]


def test_what_is_written_is_read(store: DirectoryStore) -> None:
    store.add_principal("etl")
    credential, token = store.add_token("etl", "nightly", 60)
    store.add_member("readers", "principal:etl")
    grants = [
        ON_TABLE,
        Grant("principal:etl", Privilege.CREATE, Target("lake")),
        Grant("role:ops", Privilege.MANAGE, Target()),
    ]
    store.add_grants(*grants, grants[0])
    directory = read(store)
    assert directory.principals == {"etl": True}
    assert directory.credentials == {credential.id: credential}
    assert directory.members == {("readers", "principal:etl")}
    assert directory.grants == frozenset(grants)
    assert directory.of_token(token) == Principal("etl", credential=credential.id)
    assert token not in repr(directory)
    assert credential.secret_sha256 not in repr(directory)


def test_a_token_ends_by_revocation_and_by_time(store: DirectoryStore) -> None:
    store.add_principal("etl")
    revoked, token = store.add_token("etl", "a")
    _, short = store.add_token("etl", "b", 0.05)
    store.revoke_token(revoked.id)
    time.sleep(0.06)
    for text, reason in (
        (token, "revoked"),
        (short, "expired"),
        (token[:-1] + "!", "not known"),
        ("icefloe_x", "not known"),
    ):
        with pytest.raises(NotAuthorizedError, match=reason) as problem:
            read(store).of_token(text)
        assert text not in str(problem.value)


def test_a_principal_can_be_disabled_and_removed(store: DirectoryStore) -> None:
    store.add_principal("etl")
    _, token = store.add_token("etl", "a")
    store.add_grants(Grant("principal:etl", Privilege.READ, Target("lake")))
    store.add_member("readers", "principal:etl")
    store.set_enabled("etl", False)
    with pytest.raises(NotAuthorizedError, match="disabled"):
        read(store).of_token(token)
    store.set_enabled("etl", True)
    assert read(store).of_token(token).name == "etl"
    store.remove_principal("etl")
    assert read(store) == Directory()


def test_one_of_an_identity_provider_can_be_disabled(store: DirectoryStore) -> None:
    store.set_enabled("corp:alice", False)
    with pytest.raises(NotAuthorizedError, match="disabled"):
        read(store).check_enabled(Principal("corp:alice"))
    assert read(store).check_enabled(Principal("corp:bob")).name == "corp:bob"


def test_what_is_not_there_cannot_be_changed(store: DirectoryStore) -> None:
    store.add_principal("etl")
    with pytest.raises(AlreadyExistsError):
        store.add_principal("etl")
    for change in (
        lambda: store.add_token("other", "a"),
        lambda: store.revoke_token("0" * 16),
        lambda: store.remove_principal("other"),
        lambda: store.set_enabled("other", True),
        lambda: store.remove_member("readers", "principal:etl"),
        lambda: store.remove_grant(ON_TABLE),
        lambda: store.remove_signing_key("x"),
    ):
        with pytest.raises(NoSuchObjectError):
            change()
    for name in ("corp:alice", "", "a b", "x" * 201):
        with pytest.raises(InvalidInputError):
            store.add_principal(name)
    with pytest.raises(InvalidInputError):
        store.add_token("etl", "a", 0)


def test_a_change_is_seen_by_another_server_at_once_when_it_looks(store: DirectoryStore, database: Database) -> None:
    source = DirectorySource(DirectoryStore(database).load, refresh_seconds=1000)
    assert source.current().grants == frozenset()
    store.add_grants(ON_TABLE)
    assert source.current().grants == frozenset()
    source.reload()
    assert source.current().grants == {ON_TABLE}
    held = source.current()
    source.reload()
    assert source.current() is held


def test_grants_go_with_a_renamed_table_and_end_with_a_dropped_one(store: DirectoryStore) -> None:
    authorizer = GrantAuthorizer(DirectorySource(store.load), store)
    reader, new = Principal("ann", frozenset({"readers"})), Target("lake", ("other",), "moved", Kind.TABLE)
    store.add_grants(ON_TABLE, Grant("role:strangers", Privilege.WRITE, new))
    authorizer.check(reader, Privilege.READ, TABLE)
    authorizer.renamed(TABLE, new)
    authorizer.check(reader, Privilege.READ, new)
    assert not authorizer.visible(reader, [TABLE])
    assert read(store).grants == {Grant("role:readers", Privilege.READ, new)}
    authorizer.dropped(Target("lake", ("other",)))
    assert not authorizer.visible(reader, [new])
    assert read(store).grants == frozenset()


def test_servers_that_start_at_once_share_one_key(database: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda _: tuple(DirectoryStore(database).signing_keys()), range(8)))
    assert len(set(seen)) == 1
    assert len(seen[0]) == 1


def test_a_token_of_one_server_is_good_at_another(store: DirectoryStore, database: Database) -> None:
    store.add_principal("etl")
    _, secret = store.add_token("etl", "x")
    one, other = (guarded_access(AuthSettings(refresh_seconds=0.0), database) for _ in range(2))
    assert one.tokens is not None
    form = f"grant_type=client_credentials&client_id=etl&client_secret={secret}".encode()
    for _ in range(2):
        token = one.tokens.answer(form, None, "127.0.0.1").access_token
        assert other.authenticator.authenticate({"authorization": f"Bearer {token}"}).name == "etl"
        store.rotate_signing_key()


def test_changes_at_once_are_all_kept(database: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: DirectoryStore(database).add_principal(f"p{number}"), range(16)))
    assert len(read(DirectoryStore(database)).principals) == 16
    loaded = DirectoryStore(database).load()
    assert loaded is not None
    assert loaded[0] == 16
