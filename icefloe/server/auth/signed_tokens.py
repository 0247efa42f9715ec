"""Decides what a short-lived token of this server says, and which of them it believes.

Such a token is a JWT, signed with HMAC-SHA256 by a key that all servers share through the database or the configuration.
That algorithm is the only one accepted for these tokens, and these keys are used for nothing else.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jwt

from icefloe.errors import InvalidPropertyError, NotAuthorizedError
from icefloe.server.auth.protocols import Principal

ISSUER = "icefloe"
"""The issuer and the audience of these tokens."""

_ALGORITHM = "HS256"
_KEY_BYTES = 32
_READ_AGAIN_SECONDS = 60.0
_UNKNOWN_KEY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class SignedToken:
    """What a token of this server says."""

    principal: str
    credential: str
    """The API token that it was issued for; it ends with that one."""
    session_started: int
    """When that API token was last shown, in seconds since 1970."""
    expires_at: float


class SigningKeys:
    """The keys of the servers, newest first, read again from time to time and when a token names one that is not known."""

    def __init__(self, read: Callable[[], Mapping[str, bytes]]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._keys: Mapping[str, bytes] = {}
        self._read_at = float("-inf")

    @classmethod
    def of(cls, texts: Sequence[str]) -> "SigningKeys":
        """Keys of the configuration; the first one signs."""
        keys = {hashlib.sha256(text.encode()).hexdigest()[:16]: text.encode() for text in texts}
        for key in keys.values():
            if len(key) < _KEY_BYTES:
                raise InvalidPropertyError(
                    f"a signing key has {len(key)} bytes; at least {_KEY_BYTES} random ones are expected"
                )
        return cls(lambda: keys)

    def newest(self) -> tuple[str, bytes]:
        """The key that signs."""
        return next(iter(self._fresh(_READ_AGAIN_SECONDS).items()))

    def named(self, number: str) -> bytes | None:
        """The key of that id."""
        known = self._fresh(_READ_AGAIN_SECONDS).get(number)
        return self._fresh(_UNKNOWN_KEY_SECONDS).get(number) if known is None else known

    def _fresh(self, seconds: float) -> Mapping[str, bytes]:
        with self._lock:
            if time.monotonic() - self._read_at > seconds:
                self._keys = self._read()
                self._read_at = time.monotonic()
            return self._keys


class TokenSigner:
    """Issues short-lived tokens, and verifies them."""

    def __init__(self, keys: SigningKeys, lifetime_seconds: int = 3600, session_seconds: int = 86400) -> None:
        self._keys = keys
        self.lifetime_seconds = lifetime_seconds
        self._session_seconds = session_seconds

    def issue(self, principal: Principal, session_started: int | None = None) -> str:
        """A token for the principal of an API token."""
        number, key = self._keys.newest()
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "aud": ISSUER,
            "sub": principal.name,
            "cid": principal.credential,
            "iat": now,
            "exp": now + self.lifetime_seconds,
            "auth_time": now if session_started is None else session_started,
        }
        return jwt.encode(claims, key, algorithm=_ALGORITHM, headers={"kid": number})

    def verified(self, token: str, *, may_be_expired: bool = False) -> SignedToken:
        """What a token says, if this server or another one that shares its keys signed it, and it is not expired."""
        try:
            key = self._keys.named(str(jwt.get_unverified_header(token).get("kid")))
            if key is None:
                raise NotAuthorizedError("the token is signed by a key that is not, or no longer, one of this server")
            claims = jwt.decode(
                token,
                key,
                algorithms=[_ALGORITHM],
                audience=ISSUER,
                issuer=ISSUER,
                options={"require": ["exp", "iat", "sub"], "verify_exp": not may_be_expired},
            )
        except jwt.ExpiredSignatureError:
            raise NotAuthorizedError("the token is expired") from None
        except (jwt.PyJWTError, ValueError, TypeError):
            raise NotAuthorizedError("the token is not one of this server") from None
        return _said(claims)

    def may_renew(self, token: SignedToken) -> bool:
        """Whether a token may be exchanged for a new one, without the API token that it came from."""
        return time.time() < token.session_started + self._session_seconds


def _said(claims: dict[str, Any]) -> SignedToken:
    principal, credential, started = claims.get("sub"), claims.get("cid"), claims.get("auth_time")
    if not (isinstance(principal, str) and isinstance(credential, str) and isinstance(started, int)):
        raise NotAuthorizedError("the token is not one of this server")
    return SignedToken(principal, credential, started, float(claims["exp"]))
