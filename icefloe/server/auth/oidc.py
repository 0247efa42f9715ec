"""Decides who an identity provider says is calling: a JWT of one configured issuer, verified, and its claims as a principal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jwt

from icefloe.errors import InvalidPropertyError, NotAuthorizedError
from icefloe.server.auth.jwks import ASYMMETRIC, KeySet
from icefloe.server.auth.protocols import Principal

_KEY_ID_LENGTH = 512
_NAME_LENGTH = 200
_MOST_ROLES = 1000


@dataclass(frozen=True, slots=True)
class IssuerSettings:
    """How tokens of one issuer are read."""

    name: str
    """Its name here: principals are `name:subject`, their roles `name:role`."""
    issuer: str
    """Exactly what its tokens say in `iss`."""
    audiences: Sequence[str]
    """A token must be for one of these."""
    algorithms: frozenset[str] = frozenset({"RS256", "ES256"})
    subject_claim: Sequence[str] = ("sub",)
    """Path to the claim that names the principal."""
    roles_claim: Sequence[str] | None = None
    """Path to the claim that lists its roles or groups."""
    leeway_seconds: float = 30.0
    jwks_uri: str | None = None
    """Where its keys are, if it has no discovery document."""

    def __post_init__(self) -> None:
        if not self.name or ":" in self.name:
            raise InvalidPropertyError(f"{self.name!r} is not a name of an issuer; one without a colon is expected")
        if not self.audiences or not all(self.audiences):
            raise InvalidPropertyError(
                f"issuer {self.name!r} has no audience; tokens for other services would be accepted"
            )
        if not self.algorithms or self.algorithms - ASYMMETRIC:
            raise InvalidPropertyError(
                f"issuer {self.name!r} has the algorithms {sorted(self.algorithms)}; some of {sorted(ASYMMETRIC)} are expected"
            )
        if not 0 <= self.leeway_seconds <= 300:
            raise InvalidPropertyError(
                f"issuer {self.name!r} has a leeway of {self.leeway_seconds} seconds; 0 to 300 are expected"
            )


class OidcIssuer:
    """One issuer, with its keys."""

    def __init__(self, settings: IssuerSettings, keys: KeySet | None = None) -> None:
        self.settings = settings
        self._keys = keys or KeySet(settings.issuer, settings.algorithms, jwks_uri=settings.jwks_uri)

    def principal(self, token: str) -> tuple[Principal, float]:
        """The principal of a token, and until when it is good, in seconds since 1970; NotAuthorizedError if it is not good."""
        claims = self._verified(token)
        expires = float(claims["exp"]) + self.settings.leeway_seconds
        return Principal(self._subject(claims), self._roles(claims)), expires

    def _verified(self, token: str) -> dict[str, Any]:
        settings = self.settings
        try:
            header = jwt.get_unverified_header(token)
            algorithm, number = header.get("alg"), header.get("kid")
            if algorithm not in settings.algorithms or "crit" in header or len(number or "") > _KEY_ID_LENGTH:
                raise NotAuthorizedError(f"the token is signed in a way that issuer {settings.name!r} does not use")
            key = self._keys.find(number, algorithm)
            if key is None:
                raise NotAuthorizedError(f"the token is signed by a key that issuer {settings.name!r} does not have")
            return jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=settings.audiences,
                issuer=settings.issuer,
                leeway=settings.leeway_seconds,
                # A subject may be a number, though the standard says otherwise.
                options={"require": ["exp", "iss", "aud"], "verify_sub": False, "verify_jti": False},
            )
        except jwt.PyJWTError as error:
            raise NotAuthorizedError(
                f"the token is not good: {_PROBLEMS.get(type(error), 'it is malformed')}"
            ) from None
        except (ValueError, TypeError, OverflowError):
            raise NotAuthorizedError("the token is not good: it is malformed") from None

    def _subject(self, claims: Mapping[str, Any]) -> str:
        subject = _text(_claim(claims, self.settings.subject_claim))
        if subject is None:
            raise NotAuthorizedError(f"the token has no usable claim {'.'.join(self.settings.subject_claim)!r}")
        return f"{self.settings.name}:{subject}"

    def _roles(self, claims: Mapping[str, Any]) -> frozenset[str]:
        claim = None if self.settings.roles_claim is None else _claim(claims, self.settings.roles_claim)
        entries = claim if isinstance(claim, list) else claim.split() if isinstance(claim, str) else [claim]
        roles = (_text(entry) for entry in entries[:_MOST_ROLES])
        return frozenset(f"{self.settings.name}:{role}" for role in roles if role is not None)


_PROBLEMS: Mapping[type[Exception], str] = {
    jwt.ExpiredSignatureError: "it is expired",
    jwt.ImmatureSignatureError: "it is not valid yet",
    jwt.InvalidAudienceError: "it is for another audience",
    jwt.InvalidIssuerError: "it is of another issuer",
    jwt.InvalidSignatureError: "its signature is wrong",
    jwt.MissingRequiredClaimError: "it lacks a claim that is required",
}


def _claim(claims: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = claims
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _text(value: object) -> str | None:
    """A name in a claim, which may be a number; None for what cannot be one."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    text = str(value)
    return text if text.strip() and len(text) <= _NAME_LENGTH and text.isprintable() else None
