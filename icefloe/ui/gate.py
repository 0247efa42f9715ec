"""Protection of requests: the token of `icefloe ui`, host names, form origins and security headers."""

import hmac
import secrets
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icefloe.ui.visitors import Owner, Visitor

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self';"
    " frame-ancestors 'none'; base-uri 'none'"
)
"""Content security policy: only the style sheet and script of this site."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class TokenGate:
    """Accepts the token that was printed at startup."""

    def __init__(self, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(24)

    def visitor(self, scope: Mapping[str, object], credential: str | None) -> Visitor | None:  # noqa: ARG002 - the protocol's
        """Return the owner if the token is valid."""
        return Owner() if credential is not None and self.accepts(credential) else None

    def accepts(self, credential: str) -> bool:
        """Whether the credential is the token."""
        return hmac.compare_digest(credential.encode(), self.token.encode())


class FormKeys:
    """Keys in forms against cross-site request forgery: only pages of this site know them."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def of(self, credential: str | None) -> str:
        """Return the form key of a visitor."""
        return hmac.new(self._secret, (credential or "").encode(), sha256).hexdigest()

    def fits(self, given: str, credential: str | None) -> bool:
        """Whether a form has the right key."""
        return hmac.compare_digest(given.encode(), self.of(credential).encode())


def is_own_origin(headers: Headers) -> bool:
    """Whether a form was sent by a page of the same origin."""
    origin, host = headers.get("origin"), headers.get("host", "")
    return origin is not None and bool(host) and urlsplit(origin).netloc == host


class Hardened:
    """Middleware that rejects foreign hosts, keeps paths undecoded, and adds security headers to every response."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str] | None) -> None:
        self._app = app
        self._hosts = hosts
        """Allowed host names; None if the mounting server checks them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # An encoded slash is part of a name.
        scope["path"] = scope["raw_path"].decode("ascii", "replace")

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        if self._hosts is not None and _host(Headers(scope=scope).get("host", "")) not in self._hosts:
            refusal = PlainTextResponse(
                "Forbidden: this page is served to the local machine only, and the host of the request is not local.\n",
                403,
            )
            await refusal(scope, receive, answer)
            return
        await self._app(scope, receive, answer)


def _host(text: str) -> str:
    try:
        return urlsplit(f"//{text}").hostname or ""
    except ValueError:
        return ""
