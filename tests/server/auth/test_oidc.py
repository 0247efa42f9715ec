"""Tokens of a real identity provider on the loopback: good ones, and everything that is wrong with others."""

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from icefloe.errors import InvalidPropertyError, NotAuthorizedError, ServiceUnavailableError
from icefloe.server.auth import Principal
from icefloe.server.auth.authenticators import TokenAuthenticator
from icefloe.server.auth.directory import Directory, DirectorySource
from icefloe.server.auth.jwks import KeySet
from icefloe.server.auth.oidc import IssuerSettings, OidcIssuer
from icefloe.server.auth.signed_tokens import SigningKeys, TokenSigner
from tests.server.auth.issuers import AUDIENCE, EC_KEY, ED_KEY, OTHER_RSA_KEY, RSA_KEY, Provider, public_jwk

ALGORITHMS = frozenset({"RS256", "ES256", "EdDSA"})
LATER = 86_400
"""Seconds, from when the tests are collected, which is long before they run."""


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


@pytest.fixture
def provider(running: Provider) -> Provider:
    running.keys = {"k1": RSA_KEY, "k2": EC_KEY}
    running.more_entries, running.stated_issuer, running.is_down = [], None, False
    running.asked.clear()
    return running


def issuer_of(
    provider: Provider, *, refetch_seconds: float = 0.0, kept_seconds: float = 3600, **more: Any
) -> OidcIssuer:
    settings = IssuerSettings("corp", provider.issuer, [AUDIENCE, "other"], **{"algorithms": ALGORITHMS} | more)
    keys = KeySet(provider.issuer, settings.algorithms, refetch_seconds=refetch_seconds, kept_seconds=kept_seconds)
    return OidcIssuer(settings, keys)


def authenticator_of(*issuers: OidcIssuer) -> TokenAuthenticator:
    signer = TokenSigner(SigningKeys.of(["s" * 32]))
    return TokenAuthenticator(DirectorySource.of(Directory()), signer, issuers)


def who(authenticator: TokenAuthenticator, token: str) -> Principal:
    return authenticator.authenticate({"authorization": f"Bearer {token}"})


def refusal(provider: Provider, token: str, **more: Any) -> str:
    with pytest.raises(NotAuthorizedError) as problem:
        who(authenticator_of(issuer_of(provider, **more)), token)
    assert token not in str(problem.value)
    return str(problem.value)


def test_a_good_token(provider: Provider) -> None:
    authenticator = authenticator_of(issuer_of(provider))
    for number in ("k1", "k2"):
        assert who(authenticator, provider.token(number)) == Principal("corp:alice")
    assert who(authenticator, provider.token(aud=["x", "other"])) == Principal("corp:alice")
    assert provider.asked == ["discovery", "keys"]


def test_a_verified_token_is_remembered_without_waiting(provider: Provider) -> None:
    authenticator, headers = authenticator_of(issuer_of(provider)), {"authorization": f"bearer {provider.token()}"}
    assert authenticator.remembered(headers) is None
    assert authenticator.authenticate(headers) == authenticator.remembered(headers) == Principal("corp:alice")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": int(time.time()) - 60}, "expired"),
        ({"nbf": int(time.time()) + LATER}, "not valid yet"),
        ({"iat": int(time.time()) + LATER}, "not valid yet"),
        ({"aud": "another"}, "another audience"),
        ({"aud": ["another", "icefloe2"]}, "another audience"),
        ({"aud": None}, "lacks a claim"),
        ({"exp": None}, "lacks a claim"),
        ({"sub": None}, "no usable claim"),
        ({"sub": ""}, "no usable claim"),
        ({"sub": True}, "no usable claim"),
        ({"sub": ["alice"]}, "no usable claim"),
        ({"sub": "a\nb"}, "no usable claim"),
        ({"sub": "x" * 500}, "no usable claim"),
        ({"exp": "soon"}, "malformed"),
        ({"exp": float("inf")}, "malformed"),
        ({"iss": "https://elsewhere.example"}, "does not know"),
        ({"iss": None}, "does not know"),
        ({"iss": ["x"]}, "does not know"),
    ],
)
def test_wrong_claims(provider: Provider, changes: dict[str, Any], reason: str) -> None:
    assert reason in refusal(provider, signed(provider, changes))


def signed(provider: Provider, changes: dict[str, Any]) -> str:
    """A token with claims that PyJWT would refuse to write."""
    payload = json.dumps(provider.claims(**changes)).encode()
    return jwt.api_jws.encode(payload, RSA_KEY, algorithm="RS256", headers={"kid": "k1"})


def test_the_leeway_is_for_clocks_that_differ(provider: Provider) -> None:
    late = provider.token(exp=int(time.time()) - 10)
    assert who(authenticator_of(issuer_of(provider)), late).name == "corp:alice"
    assert "expired" in refusal(provider, late, leeway_seconds=5)


PUBLIC_KEYS = [
    RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.PKCS1),
    RSA_KEY.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
    json.dumps(public_jwk(RSA_KEY, "k1")).encode(),
]


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", None, "HS256", "hs256", ["RS256"], 5])
def test_a_token_without_a_signature(provider: Provider, algorithm: Any) -> None:
    refusal(provider, provider.forged({"alg": algorithm, "kid": "k1", "typ": "JWT"}, None, sub="admin"))


@pytest.mark.parametrize("secret", [*PUBLIC_KEYS, b""])
@pytest.mark.parametrize("algorithm", ["HS256", "RS256"])
def test_the_public_key_is_not_a_secret(provider: Provider, secret: bytes, algorithm: str) -> None:
    refusal(provider, provider.forged({"alg": algorithm, "kid": "k1"}, secret, sub="admin"))


def test_a_symmetric_key_of_the_provider_is_not_used(provider: Provider) -> None:
    secret = b"0" * 32
    entry = {"kty": "oct", "kid": "k9", "k": base64.urlsafe_b64encode(secret).decode().rstrip("="), "alg": "HS256"}
    provider.more_entries = [entry, entry | {"alg": "RS256"}]
    for algorithm in ("HS256", "RS256"):
        refusal(provider, provider.forged({"alg": algorithm, "kid": "k9"}, secret, sub="admin"))


@pytest.mark.parametrize(
    "header",
    [
        {"kid": "../../../../etc/passwd"},
        {"kid": "/dev/null"},
        {"kid": "' OR '1'='1"},
        {"kid": "k1\x00"},
        {"kid": "x" * 10_000},
        {"kid": 5},
        {"kid": ["k1"]},
        {"kid": "k2", "jwk": public_jwk(OTHER_RSA_KEY, "k2")},
        {"kid": "k1", "jku": "http://127.0.0.1:1/keys"},
        {"kid": "k1", "x5u": "http://127.0.0.1:1/keys"},
        {"kid": "k1", "crit": ["exp"]},
        {"kid": "k1", "b64": False, "crit": ["b64"]},
    ],
)
def test_headers_choose_no_key_of_an_attacker(provider: Provider, header: dict[str, Any]) -> None:
    payload = json.dumps(provider.claims()).encode()
    text = b".".join(
        base64.urlsafe_b64encode(part).rstrip(b"=")
        for part in (json.dumps({"alg": "RS256"} | header).encode(), payload)
    )
    signature = jwt.get_algorithm_by_name("RS256").sign(text, OTHER_RSA_KEY)
    refusal(provider, (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode())


def test_an_algorithm_must_be_that_of_the_key_and_of_the_settings(provider: Provider) -> None:
    provider.keys["k3"] = ED_KEY
    assert who(authenticator_of(issuer_of(provider)), provider.token("k3")).name == "corp:alice"
    assert "does not use" in refusal(provider, provider.token("k3"), algorithms=frozenset({"RS256"}))
    assert "does not use" in refusal(provider, provider.token(algorithm="PS256"))
    assert "does not have" in refusal(provider, provider.token("k2", key=RSA_KEY))
    provider.more_entries = [public_jwk(OTHER_RSA_KEY, "k4", alg="RS512")]
    assert "does not have" in refusal(provider, provider.token("k4", key=OTHER_RSA_KEY))


@pytest.mark.parametrize("change", [{"use": "enc"}, {"d": "AQAB"}, {"kty": "DSA"}, {"n": "!"}])
def test_keys_that_are_not_for_signatures(provider: Provider, change: dict[str, str]) -> None:
    provider.more_entries = ["text", 5, public_jwk(OTHER_RSA_KEY, "k5", **change)]
    assert "does not have" in refusal(provider, provider.token("k5", key=OTHER_RSA_KEY))


def test_a_weak_key_is_not_used(provider: Provider) -> None:
    provider.keys["weak"] = rsa.generate_private_key(65537, 1024)
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        token = provider.token("weak")
    assert "does not have" in refusal(provider, token)


@pytest.mark.parametrize("token", ["x", "a.b", "a.b.c", "a.b.c.d", "..", "é.é.é", "e30.e30.", "\ud800"])
def test_what_is_no_token(provider: Provider, token: str) -> None:
    refusal(provider, token)
    assert provider.asked == []


def test_a_huge_token_is_not_even_read(provider: Provider) -> None:
    assert "longer than" in refusal(provider, provider.token(more="x" * 20_000))
    deep = (
        base64.urlsafe_b64encode(b'{"alg":"RS256"}').decode()
        + "."
        + base64.urlsafe_b64encode(b"[" * 9000).decode()
        + ".x"
    )
    assert "neither" in refusal(provider, deep)
    assert provider.asked == []


def test_a_rotated_key_is_found_and_a_removed_one_goes(provider: Provider) -> None:
    authenticator = authenticator_of(issuer_of(provider, kept_seconds=0.0))
    old = provider.token()
    who(authenticator, old)
    provider.keys = {"k7": OTHER_RSA_KEY}
    assert who(authenticator, provider.token("k7")).name == "corp:alice"
    with pytest.raises(NotAuthorizedError, match="does not have"):
        who(authenticator, jwt.encode(provider.claims(jti="2"), RSA_KEY, "RS256", headers={"kid": "k1"}))


def test_unknown_keys_do_not_make_the_server_ask_again_and_again(provider: Provider) -> None:
    authenticator = authenticator_of(issuer_of(provider, refetch_seconds=1000))
    who(authenticator, provider.token())
    for number in range(20):
        with pytest.raises(NotAuthorizedError, match="does not have"):
            who(authenticator, provider.token(f"unknown-{number}", key=OTHER_RSA_KEY))
    assert provider.asked == ["discovery", "keys"]


def test_a_provider_that_is_down(provider: Provider) -> None:
    provider.is_down = True
    authenticator = authenticator_of(issuer_of(provider, kept_seconds=0.0))
    with pytest.raises(ServiceUnavailableError):
        who(authenticator, provider.token())
    provider.is_down = False
    assert who(authenticator, provider.token()).name == "corp:alice"
    provider.is_down = True
    assert who(authenticator, provider.token(jti="another")).name == "corp:alice"


def test_a_discovery_document_of_another_issuer(provider: Provider) -> None:
    provider.stated_issuer = "https://elsewhere.example"
    with pytest.raises(ServiceUnavailableError):
        who(authenticator_of(issuer_of(provider)), provider.token())
    assert set(provider.asked) == {"discovery"}


def test_a_token_without_a_key_id_means_the_only_key(provider: Provider) -> None:
    provider.keys = {None: RSA_KEY}
    assert who(authenticator_of(issuer_of(provider)), provider.token(None)).name == "corp:alice"
    provider.keys = {"k1": RSA_KEY, "k2": OTHER_RSA_KEY}
    assert "does not have" in refusal(provider, provider.token(None, key=RSA_KEY))


@pytest.mark.parametrize(
    ("claims", "path", "roles"),
    [
        ({"groups": ["a", "b c", 7, True, None, {"x": 1}, ""]}, ("groups",), {"a", "b c", "7"}),
        ({"realm_access": {"roles": ["a"]}}, ("realm_access", "roles"), {"a"}),
        ({"https://x.example/roles": ["a"]}, ("https://x.example/roles",), {"a"}),
        ({"scope": "a b"}, ("scope",), {"a", "b"}),
        ({"groups": 5}, ("groups",), {"5"}),
        ({"groups": {"a": 1}}, ("groups",), set()),
        ({}, ("groups", "deeper"), set()),
        ({"groups": ["a"]}, None, set()),
    ],
)
def test_roles_come_from_any_claim(
    provider: Provider, claims: dict[str, Any], path: tuple[str, ...] | None, roles: set[str]
) -> None:
    principal = who(authenticator_of(issuer_of(provider, roles_claim=path)), provider.token(**claims))
    assert principal.roles == {f"corp:{role}" for role in roles}


@pytest.mark.parametrize(
    ("claims", "path", "name"),
    [({"sub": 42}, ("sub",), "corp:42"), ({"user": {"mail": "a@x.example"}}, ("user", "mail"), "corp:a@x.example")],
)
def test_the_subject_comes_from_any_claim(
    provider: Provider, claims: dict[str, Any], path: tuple[str, ...], name: str
) -> None:
    assert who(authenticator_of(issuer_of(provider, subject_claim=path)), signed(provider, claims)).name == name


def test_two_issuers_do_not_speak_for_each_other(provider: Provider) -> None:
    with Provider() as second:
        second.keys = {"k1": OTHER_RSA_KEY}
        partner = OidcIssuer(IssuerSettings("partner", second.issuer, [AUDIENCE]))
        authenticator = authenticator_of(issuer_of(provider), partner)
        assert who(authenticator, provider.token()).name == "corp:alice"
        assert who(authenticator, second.token()).name == "partner:alice"
        with pytest.raises(NotAuthorizedError):
            who(authenticator, second.token(iss=provider.issuer))


@pytest.mark.parametrize(
    "wrong",
    [
        {"algorithms": frozenset({"HS256"})},
        {"algorithms": frozenset({"none"})},
        {"algorithms": frozenset()},
        {"audiences": []},
        {"audiences": [""]},
        {"leeway_seconds": 3600},
        {"name": "a:b"},
        {"issuer": "http://login.example.com"},
        {"issuer": "ftp://x"},
        {"issuer": "https://user:pass@x.example"},
    ],
)
def test_settings_that_would_be_a_hole(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidPropertyError) as problem:
        OidcIssuer(IssuerSettings(**{"name": "corp", "issuer": "https://x.example", "audiences": ["a"]} | wrong))
    assert "pass" not in str(problem.value)
