"""Decides what an API token is: a text with an id and a random secret, of which the server keeps a hash alone.

The same text is the client secret at the token endpoint, with the name of its principal as the client id.
"""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from icefloe.errors import InvalidInputError, NotAuthorizedError

PREFIX = "icefloe_"
"""How every token begins, so that scanners for leaked secrets can know it."""

_TOKEN = re.compile(rf"{PREFIX}([0-9a-f]{{16}})_[A-Za-z0-9_\-]{{43}}")
_LOCAL_NAME = re.compile(r"[A-Za-z0-9_.@\-]{1,200}")
_NOBODY = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Credential:
    """What the server knows of an API token: never the token."""

    id: str
    principal: str
    label: str
    secret_sha256: str = field(repr=False)
    created_at_ms: int = 0
    expires_at_ms: int | None = None
    revoked_at_ms: int | None = None


def new_credential(principal: str, label: str, lifetime_seconds: float | None) -> tuple[Credential, str]:
    """A credential, and the text of its token, which nobody can tell afterwards; without a lifetime it does not expire."""
    check_local_name(principal)
    if lifetime_seconds is not None and lifetime_seconds <= 0:
        raise InvalidInputError(f"a token cannot live for {lifetime_seconds} seconds; more than 0 are expected")
    number, now = secrets.token_hex(8), int(time.time() * 1000)
    token = f"{PREFIX}{number}_{secrets.token_urlsafe(32)}"
    expires = None if lifetime_seconds is None else now + int(lifetime_seconds * 1000)
    return Credential(number, principal, label, hashed(token), now, expires), token


def check_local_name(name: str) -> str:
    """The name, if a principal of this server may have it: no colon, which is for those of identity providers."""
    if not _LOCAL_NAME.fullmatch(name):
        raise InvalidInputError(
            f"{name!r:.300} is not a name of a local principal; letters, digits and _ . @ - are, up to 200 of them"
        )
    return name


def hashed(token: str) -> str:
    """The hash that is kept of a token; 256 random bits need neither salt nor a slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()


def is_token(text: str) -> bool:
    """Whether the text has the form of an API token."""
    return text.startswith(PREFIX)


def verified(token: str, credentials: Mapping[str, Credential]) -> Credential:
    """The credential of a token; NotAuthorizedError if there is none, or it is wrong, revoked or expired."""
    match = _TOKEN.fullmatch(token)
    credential = credentials.get(match[1]) if match else None
    expected = _NOBODY if credential is None else credential.secret_sha256
    if not hmac.compare_digest(hashed(token), expected) or credential is None:
        raise NotAuthorizedError("the API token is not known")
    return checked_live(credential)


def checked_live(credential: Credential) -> Credential:
    """The credential, unless it is revoked or expired."""
    if credential.revoked_at_ms is not None:
        raise NotAuthorizedError(f"the API token {credential.id} is revoked")
    if credential.expires_at_ms is not None and credential.expires_at_ms <= time.time() * 1000:
        raise NotAuthorizedError(f"the API token {credential.id} is expired")
    return credential
