"""Decides who sent a request, by its `Authorization` header: an API token, a token of this server, or one of an identity provider.

Which of them a token is follows from its form and from the issuer that it names, and each kind is verified by its own keys
and algorithms alone: a token that names another issuer, or another algorithm, is refused, never tried elsewhere.
"""

import base64
import binascii
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import jwt

from icefloe.bounded_cache import BoundedCache
from icefloe.errors import NotAuthorizedError
from icefloe.server.auth.credentials import is_token
from icefloe.server.auth.directory import Directory, DirectorySource
from icefloe.server.auth.oidc import OidcIssuer
from icefloe.server.auth.protocols import Principal
from icefloe.server.auth.signed_tokens import ISSUER, SignedToken, TokenSigner

ANONYMOUS = Principal("anonymous", frozenset({"anonymous"}))
"""Whoever sends no credential, where that is allowed."""

_HEADER_LENGTH = 16 * 1024
_REMEMBERED_TOKENS = 10_000
_REMEMBERED_SECONDS = 60.0


class OpenAuthenticator:
    """Everybody is let in, whatever they show."""

    def authenticate(self, headers: Mapping[str, str]) -> Principal:  # noqa: ARG002 - the protocol's
        """Nobody in particular."""
        return ANONYMOUS

    def remembered(self, headers: Mapping[str, str]) -> Principal:  # noqa: ARG002 - the protocol's
        """Nobody in particular."""
        return ANONYMOUS


class TokenAuthenticator:
    """Authenticates by bearer tokens of all kinds, and by Basic with a principal's name and API token."""

    def __init__(
        self,
        source: DirectorySource,
        signer: TokenSigner | None = None,
        issuers: Sequence[OidcIssuer] = (),
        *,
        anonymous: Principal | None = None,
    ) -> None:
        self._source = source
        self._signer = signer
        self._issuers = {issuer.settings.issuer: issuer for issuer in issuers}
        self._anonymous = anonymous
        self._remembered: BoundedCache[bytes, tuple[Principal | SignedToken, float]] = BoundedCache(_REMEMBERED_TOKENS)

    def authenticate(self, headers: Mapping[str, str]) -> Principal:
        """The principal of a request; it may read the database, or ask an identity provider."""
        credential = _credential(headers)
        if credential is None:
            return self._nobody()
        directory = self._source.current()
        return _of_token(credential, directory) or self._of_jwt(credential.token, directory)

    def remembered(self, headers: Mapping[str, str]) -> Principal | None:
        """The same as `authenticate`, if it is known without waiting for anything; else None."""
        directory = self._source.fresh()
        credential = _credential(headers)
        if credential is None:
            return self._nobody()
        if directory is None:
            return None
        if (principal := _of_token(credential, directory)) is not None:
            return principal
        known = self._known(_fingerprint(credential.token))
        return None if known is None else _still_good(known, directory)

    def _nobody(self) -> Principal:
        if self._anonymous is None:
            raise NotAuthorizedError("the request has no credential; a bearer token is expected")
        return self._anonymous

    def _of_jwt(self, token: str, directory: Directory) -> Principal:
        fingerprint = _fingerprint(token)
        known = self._known(fingerprint)
        if known is None:
            known, until = self._verified(token)
            self._remembered.keep(fingerprint, (known, min(until, time.time() + _REMEMBERED_SECONDS)))
        return _still_good(known, directory)

    def _known(self, fingerprint: bytes) -> Principal | SignedToken | None:
        entry = self._remembered.find(fingerprint)
        return entry[0] if entry is not None and time.time() < entry[1] else None

    def _verified(self, token: str) -> tuple[Principal | SignedToken, float]:
        issuer = _stated_issuer(token)
        if issuer == ISSUER and self._signer is not None:
            signed = self._signer.verified(token)
            return signed, signed.expires_at
        provider = self._issuers.get(issuer)
        if provider is None:
            raise NotAuthorizedError("the token is of an issuer that this server does not know")
        return provider.principal(token)


def _still_good(known: Principal | SignedToken, directory: Directory) -> Principal:
    """The principal of a token that was verified, unless it or its credential was disabled or revoked."""
    if isinstance(known, SignedToken):
        return directory.of_credential(known.credential, known.principal)
    return directory.check_enabled(known)


def _fingerprint(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _stated_issuer(token: str) -> str:
    """Who a token says that it is from; nothing is believed yet."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise NotAuthorizedError("the token is neither an API token nor a JWT") from None
    return str(claims.get("iss"))


@dataclass(frozen=True, slots=True)
class Shown:
    """What a request shows of itself: a token, and with Basic the name of its principal."""

    token: str = field(repr=False)
    user: str | None = None


def _of_token(shown: Shown, directory: Directory) -> Principal | None:
    """The principal of an API token; None if it is a JWT."""
    return directory.of_token(shown.token, shown.user) if is_token(shown.token) else None


def _credential(headers: Mapping[str, str]) -> Shown | None:
    """What is in an `Authorization` header; None if there is no such header."""
    header = headers.get("authorization")
    if header is None:
        return None
    if len(header) > _HEADER_LENGTH:
        raise NotAuthorizedError(f"the Authorization header is longer than {_HEADER_LENGTH} characters")
    scheme, _, value = header.partition(" ")
    match scheme.lower():
        case "bearer" if value.strip():
            return Shown(value.strip())
        case "basic":
            return basic_credential(header)
        case _:
            raise NotAuthorizedError("the Authorization header is not usable; Bearer and a token are expected")


def basic_credential(header: str) -> Shown:
    """The user and the password of a Basic header: the name of a principal, and one of its API tokens."""
    try:
        text = base64.b64decode(header.partition(" ")[2].strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        raise NotAuthorizedError("the Basic credential is malformed") from None
    user, _, password = text.partition(":")
    if not is_token(password):
        raise NotAuthorizedError("the API token is not known")
    return Shown(password, user)
