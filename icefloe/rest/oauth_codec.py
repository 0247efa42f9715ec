"""The token endpoint of OAuth 2: requests as forms, answers and errors as JSON; both ways (RFC 6749, RFC 8693)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

import msgspec

from icefloe.errors import InvalidInputError
from icefloe.metadata.wire_codec import present, read_wire

FORM = "application/x-www-form-urlencoded"
CLIENT_CREDENTIALS = "client_credentials"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:"
TOKEN_TYPES = {
    name: _TOKEN_TYPE + name for name in ("access_token", "refresh_token", "id_token", "saml1", "saml2", "jwt")
}
"""The types of tokens that can be exchanged, by their short names."""

INVALID_REQUEST, INVALID_CLIENT, INVALID_GRANT = "invalid_request", "invalid_client", "invalid_grant"
UNAUTHORIZED_CLIENT, UNSUPPORTED_GRANT, INVALID_SCOPE = "unauthorized_client", "unsupported_grant_type", "invalid_scope"


@dataclass(frozen=True, slots=True)
class Token:
    """A token as a server gives it; never shown, as it is secret."""

    access_token: str = field(repr=False)
    token_type: str = "bearer"
    expires_in: int | None = None
    """Seconds from now."""
    issued_token_type: str | None = None
    refresh_token: str | None = field(default=None, repr=False)
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class OAuthProblem:
    """Why a server gives no token."""

    error: str
    description: str | None = None
    uri: str | None = None


class _TokenWire(msgspec.Struct):
    access_token: str
    token_type: str
    expires_in: int | float | None = None
    issued_token_type: str | None = None
    refresh_token: str | None = None
    scope: str | None = None


class _ProblemWire(msgspec.Struct):
    error: str
    error_description: str | None = None
    error_uri: str | None = None


def encode_form(fields: Mapping[str, str]) -> bytes:
    """The body of a form."""
    return urlencode(fields).encode("ascii")


def decode_form(body: bytes) -> dict[str, str]:
    """The fields of a form; a field that comes twice is an error."""
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, strict_parsing=bool(body), errors="strict")
    except ValueError:
        raise InvalidInputError(f"the body is not a form of type {FORM}") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise InvalidInputError("the form has a field twice")
    return fields


def encode_token(token: Token) -> bytes:
    """The body of an answer with a token."""
    return msgspec.json.encode(
        {
            "access_token": token.access_token,
            "token_type": token.token_type,
            **present("expires_in", token.expires_in),
            **present("issued_token_type", token.issued_token_type),
            **present("refresh_token", token.refresh_token),
            **present("scope", token.scope),
        }
    )


def decode_token(body: bytes) -> Token:
    """What such a body says."""
    wire = read_wire(body, _TokenWire, "the answer with a token")
    expires_in = None if wire.expires_in is None else int(wire.expires_in)
    return Token(wire.access_token, wire.token_type, expires_in, wire.issued_token_type, wire.refresh_token, wire.scope)


def encode_problem(problem: OAuthProblem) -> bytes:
    """The body of an answer that gives no token."""
    return msgspec.json.encode(
        {
            "error": problem.error,
            **present("error_description", problem.description),
            **present("error_uri", problem.uri),
        }
    )


def decode_problem(body: bytes) -> OAuthProblem | None:
    """What such a body says; None if it is none."""
    try:
        wire = read_wire(body, _ProblemWire, "the answer")
    except InvalidInputError:
        return None
    return OAuthProblem(wire.error, wire.error_description, wire.error_uri)
