"""Asks a server of OAuth 2 for tokens."""

import time
from collections.abc import Callable

from icefloe.catalog.rest.auth.plain import basic_authorization
from icefloe.catalog.rest.auth.protocols import Send
from icefloe.catalog.rest.auth.settings import Credential, OAuth2Settings
from icefloe.catalog.rest.auth.token_codec import (
    client_credentials_form,
    exchange_form,
    issued_token,
    token_request,
)
from icefloe.catalog.rest.auth.tokens import BearerToken, fresh_token
from icefloe.rest.headers_codec import AUTHORIZATION

Clock = Callable[[], float]


def bearer(token: BearerToken) -> str:
    """The value of the header with which a request shows the token."""
    return f"Bearer {token.text}"


class TokenEndpoint:
    """The server that issues tokens, as one client sees it."""

    def __init__(self, settings: OAuth2Settings, send: Send, clock: Clock = time.time) -> None:
        self.settings = settings
        self.clock = clock
        self._send = send

    def by_credential(self, credential: Credential) -> BearerToken:
        """A token of the client itself."""
        form = client_credentials_form(credential.client_id, credential.client_secret)
        return self._ask(form, None, credential.spellings(), is_issued=True)

    def exchanged(self, token: BearerToken, actor: BearerToken | None = None) -> BearerToken:
        """A token in place of another, which the actor shows, or else the token itself."""
        acting = None if actor is None else (actor.text, actor.kind)
        form = exchange_form((token.text, token.kind), acting)
        secrets = (token.text, *(acting or ())[:1])
        return self._ask(form, bearer(actor or token), secrets, token.is_issued)

    def exchanged_late(self, token: BearerToken, credential: Credential) -> BearerToken:
        """A token in place of one that is no longer good, so that the client says by its credential who it is."""
        authorization = basic_authorization(credential.client_id or "", credential.client_secret)
        form = exchange_form((token.text, token.kind), None)
        return self._ask(form, authorization, (token.text, *credential.spellings()), token.is_issued)

    def _ask(
        self, form: dict[str, str], authorization: str | None, secrets: tuple[str, ...], is_issued: bool
    ) -> BearerToken:
        url, asked = self.settings.endpoint, self.clock()
        headers = {} if authorization is None else {AUTHORIZATION: authorization}
        answer = self._send(token_request(url, {**form, **self.settings.parameters}, headers))
        return fresh_token(issued_token(url, answer, secrets), asked, is_issued)
