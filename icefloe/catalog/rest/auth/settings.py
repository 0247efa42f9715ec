"""Decides what properties say about OAuth 2: who the client is, where tokens come from, and whether they are renewed."""

import base64
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

from icefloe import errors, properties as props
from icefloe.catalog.rest.auth.urls import resolved_url, shown_url

LOG = logging.getLogger("icefloe.catalog.rest")

CREDENTIAL = "credential"
TOKEN = "token"
ENDPOINT = "oauth2-server-uri"
_DEFAULT_ENDPOINT = "v1/oauth/tokens"
_EXPIRES_IN = "token-expires-in-ms"
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Credential:
    """What a client shows to get a token."""

    client_id: str | None = field(repr=False)
    client_secret: str = field(repr=False)

    @staticmethod
    def of(text: str) -> "Credential":
        """`id:secret`, or a secret alone."""
        before, colon, after = text.partition(":")
        secret = after.strip() if colon else before.strip()
        if not secret:
            raise errors.InvalidPropertyError(
                "property 'credential' has no secret; it must be client-id:secret or a secret"
            )
        return Credential(before.strip() or None if colon else None, secret)

    def spellings(self) -> tuple[str, ...]:
        """The secret as a server may quote it."""
        secret = self.client_secret
        pair = base64.b64encode(f"{self.client_id or ''}:{secret}".encode()).decode()
        return (secret, quote(secret, safe=""), quote_plus(secret), pair)


@dataclass(frozen=True, slots=True)
class OAuth2Settings:
    """How tokens are asked for."""

    endpoint: str = field(repr=False)
    credential: Credential | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request for a token: scope, audience, resource."""
    renews: bool = True
    exchanges: bool = True
    lifetime: float | None = None
    """Seconds that a given token is good for, if it does not say so itself."""
    idle_seconds: float = _HOUR_MS / 1000
    """How long the session of a table is kept that nobody asks for."""

    @staticmethod
    def of(properties: Mapping[str, str]) -> "OAuth2Settings":
        """What the properties of a catalog say."""
        text = properties.get(CREDENTIAL)
        parameters = {"scope": "catalog"} | {
            key: properties[key] for key in ("scope", "audience", "resource") if key in properties
        }
        return OAuth2Settings(
            _endpoint(properties),
            Credential.of(text) if text else None,
            {key: value for key, value in parameters.items() if value},
            props.property_as_bool(properties, "token-refresh-enabled", True),
            props.property_as_bool(properties, "token-exchange-enabled", True),
            OAuth2Settings.lifetime_of(properties),
            props.property_as_int(properties, "auth.session-timeout-ms", _HOUR_MS, at_least=0) / 1000,
        )

    @staticmethod
    def lifetime_of(properties: Mapping[str, str]) -> float | None:
        """Seconds that a given token is good for, if the properties say so."""
        if _EXPIRES_IN not in properties:
            return None
        return props.property_as_int(properties, _EXPIRES_IN, _HOUR_MS, at_least=1) / 1000


def _endpoint(properties: Mapping[str, str]) -> str:
    endpoint = resolved_url(properties, properties.get(ENDPOINT) or _DEFAULT_ENDPOINT)
    if properties.get(CREDENTIAL) and not properties.get(ENDPOINT):
        LOG.warning(
            "tokens are asked for at %s, since %s is not set; the REST specification gives this endpoint up in favour of"
            " a separate server of OAuth 2",
            shown_url(endpoint),
            ENDPOINT,
        )
    return endpoint
