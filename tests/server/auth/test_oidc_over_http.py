"""Tokens of a real identity provider at a whole server, over HTTP."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from icefloe.server.auth import Grant, Privilege, Target
from icefloe.server.auth.oidc import IssuerSettings
from tests.server.auth.issuers import AUDIENCE, OTHER_RSA_KEY, RSA_KEY, Provider
from tests.server.auth.whole_server import OPEN, SECRET, WholeServer, whole_server

NS = "/v1/lake/namespaces"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


@pytest.fixture
def server(provider: Provider, tmp_path: Path) -> Iterator[WholeServer]:
    issuer = IssuerSettings("corp", provider.issuer, [AUDIENCE], roles_claim=("groups",))
    with whole_server(tmp_path, issuers=[issuer]) as server:
        server.store.add_grants(Grant("role:readers", Privilege.READ, Target("lake", (OPEN,))))
        server.store.add_member("readers", "role:corp:analysts")
        yield server


def status(server: WholeServer, token: str, path: str) -> int:
    server.tokens["token"] = token
    return server.ask("token", "GET", path).status


def test_groups_of_a_provider_are_roles(provider: Provider, server: WholeServer) -> None:
    analyst, other = provider.token(groups=["analysts"]), provider.token(sub="bob", groups=["readers", "admin"])
    assert status(server, analyst, f"{NS}/{OPEN}/tables/t") == 200
    assert status(server, analyst, f"{NS}/{SECRET}/tables/t") == 404
    # A group that is called like a role of the server is not that role.
    assert status(server, other, f"{NS}/{OPEN}/tables/t") == 404
    assert server.records[-1]["principal"] == "corp:bob"
    server.store.set_enabled("corp:alice", False)
    assert status(server, analyst, f"{NS}/{OPEN}/tables/t") == 401


def test_bad_tokens_are_not_let_in(provider: Provider, server: WholeServer) -> None:
    groups, now = ["analysts"], int(time.time())
    public = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    bad = [
        provider.token(groups=groups, exp=now - 100),
        provider.token(groups=groups, nbf=now + 100),
        provider.token(groups=groups, aud="other"),
        provider.token(groups=groups, iss="https://elsewhere.example"),
        provider.token(groups=groups, key=OTHER_RSA_KEY),
        provider.forged({"alg": "none", "kid": "k1"}, None, groups=groups),
        provider.forged({"alg": "HS256", "kid": "k1"}, public, groups=groups),
        provider.token(groups=groups, padding="x" * 20_000),
    ]
    for token in bad:
        assert status(server, token, f"{NS}/{OPEN}/tables/t") == 401
    reply = server.ask("token", "GET", f"{NS}/{OPEN}/tables/t")
    assert reply.json["error"]["type"] == "NotAuthorizedException"
    assert status(server, provider.token(groups=groups), f"{NS}/{OPEN}/tables/t") == 200
