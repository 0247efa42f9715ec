"""Decides who gets a short-lived token at the OAuth 2 token endpoint: whoever shows an API token, or a token to renew.

Clients that are configured with `credential=NAME:SECRET` come here: NAME is a principal, SECRET one of its API tokens.
"""

from collections.abc import Mapping

from icefloe.errors import IcefloeError, InvalidInputError, NotAuthorizedError
from icefloe.rest import oauth_codec as oauth
from icefloe.server.auth.audit import Audit, Outcome
from icefloe.server.auth.authenticators import Shown, basic_credential
from icefloe.server.auth.directory import DirectorySource
from icefloe.server.auth.protocols import Principal
from icefloe.server.auth.rate_limits import RateLimit, RateLimiter
from icefloe.server.auth.signed_tokens import TokenSigner

FORM_BYTES = 64 * 1024
"""The longest form that is read."""

_ATTEMPTS = RateLimit(per_second=0.2, burst=10)
_SCOPE = "catalog"


class OAuthRefusal(IcefloeError):
    """No token is given."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.problem = oauth.OAuthProblem(error, description)


class TooManyAttempts(IcefloeError):
    """So many attempts failed that the next one has to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__("too many attempts failed; wait before the next one")
        self.seconds = seconds


class TokenEndpoint:
    """Answers requests for tokens."""

    def __init__(
        self, source: DirectorySource, signer: TokenSigner, audit: Audit, attempts: RateLimit = _ATTEMPTS
    ) -> None:
        self._source = source
        self._signer = signer
        self._audit = audit
        self._failures = RateLimiter(attempts)

    def answer(self, body: bytes, authorization: str | None, address: str) -> oauth.Token:
        """A token; OAuthRefusal says why there is none, TooManyAttempts when to come again.

        Failed attempts count by address and client, so that nobody can lock another one out from elsewhere.
        """
        client = ""
        try:
            form = _form(body)
            shown = _client(form, authorization)
            client = (shown.user if shown else None) or ""
            principal, started = self._limited(f"{address} {client}", form, shown)
        except OAuthRefusal as refusal:
            self._audit.token(Outcome.DENIED, client, str(refusal))
            raise
        except TooManyAttempts as error:
            self._audit.token(Outcome.LIMITED, client, str(error))
            raise
        self._audit.token(Outcome.ALLOWED, client, form["grant_type"], principal)
        return oauth.Token(
            self._signer.issue(principal, started),
            expires_in=self._signer.lifetime_seconds,
            issued_token_type=oauth.TOKEN_TYPES["access_token"],
            scope=_SCOPE,
        )

    def _limited(self, key: str, form: Mapping[str, str], shown: Shown | None) -> tuple[Principal, int | None]:
        if (seconds := self._failures.wait(key)) > 0:
            raise TooManyAttempts(seconds)
        try:
            return self._granted(form, shown)
        except OAuthRefusal as refusal:
            if refusal.problem.error in (oauth.INVALID_CLIENT, oauth.INVALID_GRANT):
                self._failures.take(key)
            raise

    def _granted(self, form: Mapping[str, str], shown: Shown | None) -> tuple[Principal, int | None]:
        """Who gets a token, and when their session began, unless it begins now."""
        match form.get("grant_type"):
            case oauth.CLIENT_CREDENTIALS:
                if shown is None:
                    raise OAuthRefusal(oauth.INVALID_CLIENT, "client_secret is missing; an API token is expected")
                return self._of_client(shown), None
            case oauth.TOKEN_EXCHANGE:
                return self._of_subject(form, shown)
            case None:
                raise OAuthRefusal(oauth.INVALID_REQUEST, "grant_type is missing")
            case _:
                raise OAuthRefusal(
                    oauth.UNSUPPORTED_GRANT,
                    f"grant_type is neither {oauth.CLIENT_CREDENTIALS} nor {oauth.TOKEN_EXCHANGE}",
                )

    def _of_client(self, shown: Shown) -> Principal:
        try:
            return self._source.current().of_token(shown.token, shown.user)
        except NotAuthorizedError:
            raise OAuthRefusal(oauth.INVALID_CLIENT, "unknown client or wrong secret") from None

    def _of_subject(self, form: Mapping[str, str], shown: Shown | None) -> tuple[Principal, int | None]:
        """Who a token to exchange is about; with their API token beside it, it may be expired."""
        subject, subject_type = form.get("subject_token"), form.get("subject_token_type")
        if not subject or subject_type not in (oauth.TOKEN_TYPES["access_token"], oauth.TOKEN_TYPES["jwt"]):
            raise OAuthRefusal(oauth.INVALID_REQUEST, "subject_token is missing, or not an access token")
        client = None if shown is None else self._of_client(shown)
        try:
            signed = self._signer.verified(subject, may_be_expired=client is not None)
            if client is not None and client.name == signed.principal:
                return client, None
            principal = self._source.current().of_credential(signed.credential, signed.principal)
        except NotAuthorizedError as error:
            raise OAuthRefusal(oauth.INVALID_GRANT, f"the subject token is not good: {error}") from None
        if client is not None or not self._signer.may_renew(signed):
            raise OAuthRefusal(
                oauth.INVALID_GRANT, "the subject token is of another client, or was renewed for too long"
            )
        return principal, signed.session_started


def _form(body: bytes) -> Mapping[str, str]:
    try:
        return oauth.decode_form(body)
    except InvalidInputError as error:
        raise OAuthRefusal(oauth.INVALID_REQUEST, str(error)) from None


def _client(form: Mapping[str, str], authorization: str | None) -> Shown | None:
    """How the client shows who it is: by Basic or in the form, not both; a bearer token beside that is not looked at."""
    basic = None
    if authorization is not None and authorization.lower().startswith("basic "):
        try:
            basic = basic_credential(authorization)
        except NotAuthorizedError as error:
            raise OAuthRefusal(oauth.INVALID_CLIENT, str(error)) from None
    secret = form.get("client_secret")
    if basic is not None and secret:
        raise OAuthRefusal(oauth.INVALID_REQUEST, "the client shows itself twice, by Basic and in the form")
    return basic or (Shown(secret, form.get("client_id")) if secret else None)
