"""The `auth` part of the server's configuration."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from icefloe.catalog import Database
from icefloe.errors import IcefloeError, InvalidPropertyError, NotAuthorizedError
from icefloe.server.auth import Kind, Principal, Privilege, Target
from icefloe.server.auth.access import guarded_access
from icefloe.server.auth.audit import AUDIT_LOG
from icefloe.server.auth.credentials import new_credential
from icefloe.server.auth.directory_store import DirectoryStore
from icefloe.server.auth.grants import Grant
from icefloe.server.auth.rate_limits import RateLimit
from icefloe.server.auth.settings_codec import AuthSettings, auth_settings
from icefloe.server.tables import OWN_TABLES

EXAMPLE = """
[auth]
refresh-seconds = 2
[auth.principals.etl]
tokens = ["{entry}"]
[auth.principals.old]
enabled = false
[auth.roles]
readers = ["principal:etl", "role:corp:analysts"]
[[auth.grants]]
to = "role:readers"
privileges = ["read", "create"]
warehouse = "lake"
namespace = 'shop."eu.west"'
[[auth.grants]]
to = "principal:etl"
privileges = "write"
warehouse = "lake"
namespace = "shop"
view = "v"
[[auth.grants]]
to = "role:ops"
privileges = ["manage"]
server = true
[auth.issuers.corp]
issuer = "https://login.example.com/realms/corp"
audience = "icefloe"
roles-claim = "realm_access.roles"
subject-claim = ["https://example.com/user"]
[auth.tokens]
signing-keys = ["0123456789abcdef0123456789abcdef"]
lifetime-seconds = 600
[auth.limits]
requests-per-second = 50
"""


def read(text: str) -> AuthSettings:
    return auth_settings(tomllib.loads(text)["auth"])


def test_a_whole_configuration() -> None:
    credential, token = new_credential("etl", "x", None)
    settings = read(EXAMPLE.format(entry=f"{credential.id}:{credential.secret_sha256}"))
    directory = settings.directory
    assert directory.of_token(token) == Principal("etl", credential=credential.id)
    assert directory.principals == {"etl": True, "old": False}
    assert directory.members == {("readers", "principal:etl"), ("readers", "role:corp:analysts")}
    west = Target("lake", ("shop", "eu.west"))
    assert directory.grants == {
        Grant("role:readers", Privilege.READ, west),
        Grant("role:readers", Privilege.CREATE, west),
        Grant("principal:etl", Privilege.WRITE, Target("lake", ("shop",), "v", Kind.VIEW)),
        Grant("role:ops", Privilege.MANAGE, Target()),
    }
    (issuer,) = settings.issuers
    assert (issuer.name, issuer.audiences) == ("corp", ["icefloe"])
    assert (issuer.subject_claim, issuer.roles_claim) == (("https://example.com/user",), ("realm_access", "roles"))
    assert (settings.token_seconds, settings.refresh_seconds, settings.request_limit) == (600, 2, RateLimit(50, 100))
    assert "0123456789abcdef" not in repr(settings)
    assert credential.secret_sha256 not in repr(settings)


@pytest.mark.parametrize(
    "wrong",
    [
        {"anonymus": True},
        {"anonymous": "yes"},
        {"tokens": {"lifetime": 5}},
        {"tokens": {"lifetime-seconds": 5}},
        {"tokens": 5},
        {"limits": {"rate": 1}},
        {"limits": {"requests-per-second": True}},
        {"principals": {"a b": {}}},
        {"principals": {"a": {"token": "x"}}},
        {"principals": {"a": {"tokens": ["icefloe_secret"]}}},
        {"roles": {"r": ["ann"]}},
        {"roles": {"r": [5]}},
        {"grants": {"to": "role:r"}},
        {"grants": [{"to": "r", "privileges": "read", "warehouse": "w"}]},
        {"grants": [{"to": "role:r", "privileges": "all", "warehouse": "w"}]},
        {"grants": [{"to": "role:r", "privileges": [], "warehouse": "w"}]},
        {"grants": [{"to": "role:r", "privileges": "read"}]},
        {"grants": [{"to": "role:r", "privileges": "read", "warehouse": "w", "server": True}]},
        {"grants": [{"to": "role:r", "privileges": "read", "server": True, "namespace": "n"}]},
        {"grants": [{"to": "role:r", "privileges": "read", "warehouse": "w", "table": "t"}]},
        {
            "grants": [
                {"to": "role:r", "privileges": "read", "warehouse": "w", "namespace": "n", "table": "t", "view": "t"}
            ]
        },
        {"grants": [{"to": "role:r", "privileges": "read", "warehouse": "w", "namespaces": "n"}]},
        {"grants": [{"to": "role:r", "privileges": "read", "warehouse": "w", "namespace": "a..b"}]},
        {"issuers": {"corp": {}}},
        {"issuers": {"corp": {"issuer": "https://x.example"}}},
        {"issuers": {"corp": {"issuer": "https://x.example", "audience": "a", "algorithms": "HS256"}}},
        {"issuers": {"corp": {"issuer": "https://x.example", "audience": "a", "subject-claim": "a..b"}}},
        {"issuers": {"corp": {"issuer": "https://x.example", "audience": "a", "verify": False}}},
    ],
)
def test_a_setting_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(IcefloeError) as problem:
        auth_settings(wrong)
    assert "secret" not in str(problem.value)


def test_weak_signing_keys_and_doubled_issuers_are_refused() -> None:
    with pytest.raises(InvalidPropertyError, match="at least 32"):
        guarded_access(auth_settings({"tokens": {"signing-keys": "short"}}), None)
    issuer = {"issuer": "https://x.example", "audience": "a"}
    with pytest.raises(InvalidPropertyError, match="same `iss`"):
        guarded_access(auth_settings({"issuers": {"a": issuer, "b": issuer}}), None)


def test_without_a_database_the_configuration_is_all() -> None:
    credential, token = new_credential("etl", "x", None)
    entry = f"{credential.id}:{credential.secret_sha256}"
    access = guarded_access(auth_settings({"principals": {"etl": {"tokens": [entry]}}}), None)
    assert access.authenticator.authenticate({"authorization": f"Bearer {token}"}).name == "etl"
    assert access.tokens is None
    access.authorizer.dropped(Target("w"))


def test_what_the_configuration_says_of_a_principal_counts(tmp_path: Path) -> None:
    database = Database("server", f"sqlite:///{tmp_path}/server.db")
    database.create_tables(OWN_TABLES)
    store = DirectoryStore(database)
    store.add_principal("etl")
    _, token = store.add_token("etl", "x")
    headers = {"authorization": f"Bearer {token}"}
    assert guarded_access(auth_settings({}), database).authenticator.authenticate(headers).name == "etl"
    disabled = guarded_access(auth_settings({"principals": {"etl": {"enabled": False}}}), database)
    with pytest.raises(NotAuthorizedError, match="disabled"):
        disabled.authenticator.authenticate(headers)
    database.close()


def test_records_can_go_to_a_file(tmp_path: Path) -> None:
    try:
        access = guarded_access(auth_settings({"audit-file": str(tmp_path / "audit.jsonl")}), None)
        with pytest.raises(IcefloeError):
            access.authorizer.check(Principal("ann\nforged"), Privilege.READ, Target("w", ("a",), "t", Kind.TABLE))
        (line,) = (tmp_path / "audit.jsonl").read_text().splitlines()
    finally:
        for handler in list(AUDIT_LOG.handlers):
            handler.close()
            AUDIT_LOG.removeHandler(handler)
        AUDIT_LOG.propagate = True
    assert '"outcome": "hidden"' in line
    assert '"name": "t"' in line
