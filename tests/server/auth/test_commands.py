"""The commands of an administrator, on a real database."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from icefloe.catalog import Database
from icefloe.errors import InvalidInputError, NoSuchObjectError, NotAuthorizedError
from icefloe.server.auth import Privilege, Target
from icefloe.server.auth.commands import add_admin_arguments, run_admin
from icefloe.server.auth.directory import Directory
from icefloe.server.auth.directory_store import DirectoryStore
from icefloe.server.auth.grants import Grant
from icefloe.server.auth.settings_codec import auth_settings
from icefloe.server.tables import OWN_TABLES


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DirectoryStore]:
    database = Database("server", f"sqlite:///{tmp_path}/server.db")
    database.create_tables(OWN_TABLES)
    yield DirectoryStore(database)
    database.close()


def run(store: DirectoryStore, *words: str, configured: Directory | None = None) -> list[str]:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_admin_arguments(parser)
    return list(run_admin(parser.parse_args(words), store, configured))


def directory(store: DirectoryStore) -> Directory:
    loaded = store.load()
    assert loaded is not None
    return loaded[1]


def test_a_first_administrator(store: DirectoryStore) -> None:
    run(store, "principals", "add", "admin")
    (token,) = run(store, "tokens", "add", "admin", "--label", "laptop", "--days", "30")
    run(store, "grants", "add", "principal:admin", "manage", "--server")
    assert directory(store).of_token(token).name == "admin"
    assert run(store, "grants", "check", "admin", "drop", "--warehouse", "lake") == ["allowed"]
    (line,) = run(store, "tokens", "list", "admin")
    number = line.split("\t")[0]
    assert "laptop" in line
    assert token not in line
    assert run(store, "tokens", "list", "other") == []
    run(store, "tokens", "revoke", number)
    assert "revoked" in run(store, "tokens", "list")[0]
    with pytest.raises(NotAuthorizedError):
        directory(store).of_token(token)


def test_principals(store: DirectoryStore) -> None:
    run(store, "principals", "add", "etl")
    run(store, "principals", "disable", "etl")
    run(store, "principals", "disable", "corp:alice")
    assert run(store, "principals", "list") == ["corp:alice\tdisabled", "etl\tdisabled"]
    run(store, "principals", "enable", "etl")
    run(store, "principals", "remove", "corp:alice")
    assert run(store, "principals", "list") == ["etl\tenabled"]


def test_roles_and_grants(store: DirectoryStore) -> None:
    run(store, "roles", "add", "readers", "role:corp:analysts")
    on_table = ["--warehouse", "lake", "--namespace", 'shop."eu.west"', "--table", "orders"]
    run(store, "grants", "add", "role:readers", "read", "list", *on_table)
    assert run(store, "roles", "list") == ["readers\trole:corp:analysts"]
    assert run(store, "grants", "list", "role:readers") == [
        "role:readers\tlist\ttable shop.\"eu.west\".orders in warehouse 'lake'",
        "role:readers\tread\ttable shop.\"eu.west\".orders in warehouse 'lake'",
    ]
    check = ["grants", "check", "corp:bob", "write", *on_table]
    assert run(store, *check, "--role", "corp:analysts") == ["denied: the target can be listed, and the answer is 403"]
    assert run(store, *check) == ["denied: the target cannot be listed, and the answer is 404"]
    configured = Directory(grants=frozenset({Grant("principal:corp:bob", Privilege.WRITE, Target("lake"))}))
    assert run(store, *check, configured=configured) == ["allowed"]
    run(store, "grants", "remove", "role:readers", "read", *on_table)
    assert len(directory(store).grants) == 1
    with pytest.raises(NoSuchObjectError):
        run(store, "grants", "remove", "role:readers", "read", *on_table)
    run(store, "roles", "remove", "readers", "role:corp:analysts")
    assert run(store, "roles", "list") == []


def test_a_token_for_the_configuration(store: DirectoryStore) -> None:
    token, line = run(store, "tokens", "hash", "etl")
    entry = line.partition("[")[2].strip('"]')
    settings = auth_settings({"principals": {"etl": {"tokens": [entry]}}})
    assert settings.directory.of_token(token).name == "etl"
    assert directory(store) == Directory()


def test_signing_keys(store: DirectoryStore) -> None:
    (first,) = run(store, "keys", "list")
    (second,) = run(store, "keys", "rotate")
    assert set(run(store, "keys", "list")) == {first, second}
    run(store, "keys", "remove", first)
    assert run(store, "keys", "list") == [second]


@pytest.mark.parametrize(
    "words",
    [
        ["grants", "add", "role:r", "read"],
        ["grants", "add", "role:r", "everything", "--server"],
        ["grants", "add", "role:r", "read", "--server", "--warehouse", "w"],
        ["grants", "add", "role:r", "read", "--warehouse", "w", "--namespace", "n", "--table", "t", "--view", "v"],
        ["tokens", "steal", "etl"],
    ],
)
def test_words_that_are_not_commands(store: DirectoryStore, words: list[str]) -> None:
    with pytest.raises((argparse.ArgumentError, SystemExit)):
        run(store, *words)


@pytest.mark.parametrize("options", [["--server", "--namespace", "n"], ["--warehouse", "w", "--table", "t"]])
def test_targets_that_are_nowhere(store: DirectoryStore, options: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="--namespace"):
        run(store, "grants", "add", "role:r", "read", *options)
