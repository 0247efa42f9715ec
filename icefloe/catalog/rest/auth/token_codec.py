"""The forms that ask a server for a token, and what its answers mean (RFC 6749, RFC 8693)."""

import msgspec

from icefloe import errors
from icefloe.catalog.rest.auth.protocols import Answer, OutgoingRequest
from icefloe.catalog.rest.auth.urls import shown_url
from icefloe.rest import oauth_codec as wire

ACCESS_TOKEN = wire.TOKEN_TYPES["access_token"]
EXCHANGED_TYPES = tuple(wire.TOKEN_TYPES[name] for name in ("id_token", "access_token", "jwt", "saml2", "saml1"))
"""Types of tokens that a table's configuration may bring for an exchange, the best first."""

_ABOUT_CREDENTIALS = frozenset((wire.INVALID_CLIENT, wire.INVALID_GRANT, wire.UNAUTHORIZED_CLIENT, "access_denied"))
_FORBIDDEN = 403
_NOT_AUTHORIZED = 401
_LATER = frozenset((408, 429))


def client_credentials_form(client_id: str | None, client_secret: str) -> dict[str, str]:
    """Asks for a token of the client itself."""
    named = {} if client_id is None else {"client_id": client_id}
    return {"grant_type": wire.CLIENT_CREDENTIALS, **named, "client_secret": client_secret}


def exchange_form(subject: tuple[str, str], actor: tuple[str, str] | None) -> dict[str, str]:
    """Asks for a token in place of another, in the name of an actor if there is one; tokens come with their types."""
    acting = {} if actor is None else {"actor_token": actor[0], "actor_token_type": actor[1]}
    return {
        "grant_type": wire.TOKEN_EXCHANGE,
        "subject_token": subject[0],
        "subject_token_type": subject[1],
        **acting,
    }


def token_request(url: str, form: dict[str, str], headers: dict[str, str]) -> OutgoingRequest:
    """The request that carries a form."""
    own = {"Content-Type": wire.FORM, "Accept": "application/json"}
    return OutgoingRequest("POST", url, {**own, **headers}, wire.encode_form(form))


def issued_token(url: str, answer: Answer, secrets: tuple[str, ...]) -> wire.Token:
    """The token that the answer holds; an error of which no text holds a secret if there is none."""
    if not 200 <= answer.status < 300:
        raise _refusal(url, answer, secrets)
    try:
        token = wire.decode_token(answer.body)
    except errors.InvalidInputError:
        raise errors.InvalidPropertyError(
            f"{shown_url(url)} did not return a token; is it the token endpoint (oauth2-server-uri)?"
        ) from None
    if token.token_type.lower() not in ("bearer", "n_a"):
        raise errors.InvalidPropertyError(
            f"{shown_url(url)} returned a token that is not a bearer token; only bearer tokens are supported"
        )
    return token


def _refusal(url: str, answer: Answer, secrets: tuple[str, ...]) -> errors.IcefloeError:
    problem = wire.decode_problem(answer.body)
    reason = f"status {answer.status}"
    if problem is not None:
        reason = ": ".join(text for text in (problem.error, problem.description) if text)
    if any(secret in reason for secret in secrets):
        reason = f"status {answer.status}, with a reason that quotes credentials and is not shown"
    message = f"{shown_url(url)} issues no token: {reason}"
    if answer.status in _LATER or answer.status >= 500:
        return errors.ServiceUnavailableError(message)
    if answer.status == _FORBIDDEN:
        return errors.ForbiddenError(message)
    if problem is None and answer.status != _NOT_AUTHORIZED:
        return errors.InvalidPropertyError(f"{message}; is it the token endpoint (oauth2-server-uri)?")
    if problem is None or problem.error in _ABOUT_CREDENTIALS:
        return errors.NotAuthorizedError(f"{message}; check credential and token")
    return errors.InvalidPropertyError(f"{message}; check scope, audience, resource and token-exchange-enabled")


class _Claims(msgspec.Struct):
    exp: float | None = None
    iat: float | None = None


def decode_claims(document: bytes) -> tuple[float | None, float | None]:
    """When the claims of a JWT say that it ends and began, in seconds since 1970; None where they do not."""
    try:
        claims = msgspec.json.decode(document, type=_Claims)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None, None
    return claims.exp, claims.iat
