"""Decides which public keys of an identity provider are used, and how often the provider is asked for them.

Keys are found by the discovery document of the issuer. They are read again when they are old, and when a token names a key
that is not among them, but then at most once in a while, however many such tokens come: an unknown key id costs nothing.
"""

import functools
import json
import logging
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import jwt

from icefloe.errors import InvalidPropertyError, ServiceUnavailableError
from icefloe.server.loopback import is_loopback

LOG = logging.getLogger("icefloe.server.auth")

ASYMMETRIC = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
"""Algorithms that can be allowed at all: whoever verifies cannot sign."""

_DOCUMENT_BYTES = 1 << 20
_MOST_KEYS = 100
_TIMEOUT_SECONDS = 5.0
_KEPT_SECONDS = 3600.0
_GOOD_SECONDS = 86400.0
"""How long keys are used whose provider cannot be reached any more."""
_RSA_BITS = 2048


@dataclass(frozen=True, slots=True)
class _Keys:
    by_id: Mapping[str | None, tuple[jwt.PyJWK, ...]]
    read_at: float


class KeySet:
    """The public keys of one issuer; threads share it."""

    def __init__(
        self,
        issuer: str,
        algorithms: frozenset[str],
        *,
        jwks_uri: str | None = None,
        refetch_seconds: float = 30.0,
        kept_seconds: float = _KEPT_SECONDS,
    ) -> None:
        check_uri(issuer)
        self._issuer = issuer
        self._algorithms = algorithms
        self._jwks_uri = None if jwks_uri is None else check_uri(jwks_uri)
        self._refetch_seconds = refetch_seconds
        self._kept_seconds = kept_seconds
        self._lock = threading.Lock()
        self._keys = _Keys({}, float("-inf"))
        self._asked_at = float("-inf")

    def find(self, number: str | None, algorithm: str) -> jwt.PyJWK | None:
        """The key of that id that is for the algorithm; a token without an id means the only key for its algorithm."""
        age = time.monotonic() - self._keys.read_at
        if age > self._kept_seconds:
            # One thread asks, and the others go on with the keys that they have.
            self._read_again(waits=age > _GOOD_SECONDS)
        key = self._known(number, algorithm)
        if key is None and self._read_again(waits=True):
            key = self._known(number, algorithm)
        if time.monotonic() - self._keys.read_at > max(_GOOD_SECONDS, self._kept_seconds):
            raise ServiceUnavailableError(f"the keys of issuer {self._issuer} cannot be read for now")
        return key

    def _known(self, number: str | None, algorithm: str) -> jwt.PyJWK | None:
        keys = self._keys.by_id.get(number, ()) if number is not None else sum(self._keys.by_id.values(), ())
        suitable = [key for key in keys if key.algorithm_name == algorithm]
        return suitable[0] if len(suitable) == 1 else None

    def _read_again(self, *, waits: bool) -> bool:
        """Read the keys, unless that was tried a moment ago; whether they may be others now."""
        asked_for = time.monotonic()
        if not self._lock.acquire(blocking=waits):
            return False
        try:
            if self._keys.read_at > asked_for:
                return True
            if time.monotonic() - self._asked_at < self._refetch_seconds:
                return False
            self._asked_at = time.monotonic()
            self._keys = _Keys(self._fetched(), time.monotonic())
        except (httpx.HTTPError, ValueError, InvalidPropertyError) as error:
            # Keys from before stay good: a provider that is down for a while locks nobody out.
            LOG.warning("the keys of issuer %s cannot be read: %s: %s", self._issuer, type(error).__name__, error)
            return False
        finally:
            self._lock.release()
        return True

    def _fetched(self) -> dict[str | None, tuple[jwt.PyJWK, ...]]:
        # A proxy of the environment is for other machines.
        is_here = is_loopback(urlsplit(self._issuer).hostname or "")
        with httpx.Client(
            verify=_certificates(), timeout=_TIMEOUT_SECONDS, follow_redirects=False, trust_env=not is_here
        ) as client:
            uri = self._jwks_uri or self._discovered(client)
            document = _document(client, uri).get("keys")
        if not isinstance(document, list):
            raise ValueError("a JWKS without keys")
        keys: dict[str | None, tuple[jwt.PyJWK, ...]] = {}
        for entry in document[:_MOST_KEYS]:
            number = entry.get("kid") if isinstance(entry, dict) else None
            usable = _usable(entry, self._algorithms)
            if usable and (number is None or isinstance(number, str)):
                keys[number] = (*keys.get(number, ()), *usable)
        return keys

    def _discovered(self, client: httpx.Client) -> str:
        document = _document(client, self._issuer.rstrip("/") + "/.well-known/openid-configuration")
        if document.get("issuer") != self._issuer:
            raise ValueError("a discovery document of another issuer")
        return check_uri(str(document.get("jwks_uri")))


@functools.cache
def _certificates() -> ssl.SSLContext:
    """The certificates that this machine trusts: reading them takes longer than a request."""
    return ssl.create_default_context()


def check_uri(uri: str) -> str:
    """The address of an identity provider, if nobody on the way can change its answers: https, or this very machine."""
    parts = urlsplit(uri)
    if (
        parts.hostname
        and not parts.username
        and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname)))
    ):
        return uri
    raise InvalidPropertyError(f"{uri!r:.300} is not an address of an identity provider; https://HOST/... is expected")


def _document(client: httpx.Client, uri: str) -> Mapping[str, Any]:
    with client.stream("GET", uri, headers={"accept": "application/json"}) as response:
        if response.status_code != 200:
            raise ValueError(f"status {response.status_code}")
        body = b""
        for piece in response.iter_bytes():
            body += piece
            if len(body) > _DOCUMENT_BYTES:
                raise ValueError("a document of more than a MiB")
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError("a document that is not an object")
    return document


def _usable(entry: Any, allowed: frozenset[str]) -> tuple[jwt.PyJWK, ...]:
    """A key for each allowed algorithm that it is for; none for those of other uses, of other kinds, and weak ones."""
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig" or "d" in entry:
        return ()
    stated = entry.get("alg")
    keys = []
    for algorithm in sorted(allowed & _possible(entry)):
        if stated is None or stated == algorithm:
            try:
                key = jwt.PyJWK(entry, algorithm)
            except (jwt.PyJWTError, ValueError, TypeError):
                continue
            if getattr(key.key, "key_size", _RSA_BITS) >= _RSA_BITS or entry["kty"] != "RSA":
                keys.append(key)
    return tuple(keys)


def _possible(entry: Mapping[str, Any]) -> frozenset[str]:
    """Which algorithms a key of its type and curve can be for."""
    match entry.get("kty"), entry.get("crv"):
        case "RSA", _:
            return frozenset(name for name in ASYMMETRIC if name[:2] in ("RS", "PS"))
        case "EC", "P-256":
            return frozenset({"ES256"})
        case "EC", "P-384":
            return frozenset({"ES384"})
        case "EC", "P-521":
            return frozenset({"ES512"})
        case "OKP", "Ed25519":
            return frozenset({"EdDSA"})
    return frozenset()
