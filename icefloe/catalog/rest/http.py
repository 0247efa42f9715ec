"""Decides how a request gets to a REST server: connections, credentials, redirects, and what is sent again and when.

A request that got an answer ends in that answer, whatever its status. One that got none ends in one of two errors:
`NotSentError` says for certain that no server has carried it out, `NoAnswerError` that one may have.
"""

import datetime as dt
import itertools
import os
import ssl
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote, urlencode, urljoin, urlsplit

import httpx2

from icefloe import commit as cm, errors
from icefloe.catalog.rest import http_codec as wire
from icefloe.catalog.rest.auth import AuthSession, OutgoingRequest, Send, shown_url
from icefloe.catalog.rest.settings import ClientSettings
from icefloe.rest.headers_codec import IDEMPOTENCY_KEY

_MOST_REDIRECTS = 5
_FIRST_WAIT_SECONDS = 0.1
"""After a connection broke for the first time: it may have been idle for too long, and another one will do."""
_LONGEST_WAIT_SECONDS = 64
_LONGEST_REQUESTED_WAIT_SECONDS = 600
"""A server that asks to wait longer is not waited for."""
_KEPT_SECONDS = 30
"""How long an idle connection is kept."""

_NOT_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)
"""What happens before the first byte of a request is written."""
_SENT_AGAIN = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError)
"""Connections that broke, after which a request that may be sent twice is."""


class NotSentError(errors.ServiceUnavailableError):
    """The request certainly took no effect: there was no connection to send it on."""


class NoAnswerError(errors.ServiceUnavailableError):
    """The request was sent, and may have taken effect, but no answer came."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer of a server, whatever it says."""

    status: int
    headers: Mapping[str, str]
    """By names in lower case."""
    body: bytes = field(repr=False)
    repeated: bool = False
    """Whether the request was sent before, and may have taken effect then."""


class Transport:
    """The connections of one catalog. Threads may share it; a process that was forked off makes its own."""

    def __init__(self, settings: ClientSettings, timing: cm.Timing | None = None) -> None:
        self._settings = settings
        self._timing = timing or cm.Timing()
        self._client: tuple[int, httpx2.Client] | None = None
        self._connections()

    def send(
        self,
        request: OutgoingRequest,
        auth: AuthSession | None,
        idempotent: bool,
        within: dt.timedelta | None = None,
    ) -> Response:
        """The answer to a request, which is sent again as often as the settings say, if that is safe and of use.

        Args:
            request: what is sent.
            auth: where its credentials come from.
            idempotent: whether it may be sent twice.
            within: for how long it may be sent again.
        """
        is_open, started = False, self._timing.clock_ms()
        for attempt in itertools.count(1):
            ended = self._tried(request, auth)
            wait = self._wait(attempt, ended, idempotent)
            spent = dt.timedelta(milliseconds=self._timing.clock_ms() - started)
            if wait is None or (within is not None and spent + dt.timedelta(seconds=wait) > within):
                if isinstance(ended, Response):
                    return replace(ended, repeated=is_open)
                raise _unsettled(ended) if is_open else ended
            is_open |= not isinstance(ended, Response) or wire.leaves_outcome_open(ended.status)
            self._timing.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _tried(self, request: OutgoingRequest, auth: AuthSession | None) -> Response | errors.IcefloeError:
        try:
            return self._followed(request, auth)
        except errors.IcefloeError as error:
            return error

    def _wait(self, attempt: int, ended: Response | errors.IcefloeError, idempotent: bool) -> float | None:
        """How many seconds to wait before the request is sent again; None if it is not."""
        requested = None
        if attempt > self._settings.retries:
            return None
        if isinstance(ended, Response):
            requested = wire.seconds_to_wait(ended.headers, dt.datetime.now(dt.UTC))
            is_too_long = requested is not None and requested > _LONGEST_REQUESTED_WAIT_SECONDS
            if is_too_long or not wire.is_tried_again(ended.status, ended.headers, idempotent):
                return None
        elif not idempotent or not isinstance(ended.__cause__, _SENT_AGAIN):
            return None
        backoff = self._backoff(attempt, isinstance(ended, Response))
        return (backoff if requested is None else requested) + self._timing.jitter() * backoff / 10

    def _backoff(self, attempt: int, is_answered: bool) -> float:
        if not is_answered:
            if attempt == 1:
                return _FIRST_WAIT_SECONDS
            attempt -= 1
        return float(min(2.0 ** (attempt - 1), _LONGEST_WAIT_SECONDS))

    def close(self) -> None:
        """Close all connections; new ones are made if it is used again."""
        known, self._client = self._client, None
        if known is not None and known[0] == os.getpid():
            known[1].close()

    def _followed(self, request: OutgoingRequest, auth: AuthSession | None) -> Response:
        """The answer, from where redirects lead; credentials go to the host of the request alone."""
        for _ in range(_MOST_REDIRECTS):
            answer = self._once(request, auth)
            if not wire.is_redirect(answer.status, answer.headers):
                return answer
            target = urljoin(request.url, answer.headers[wire.LOCATION.lower()])
            if not _is_same_place(request.url, target):
                if request.method not in wire.SAFE_METHODS or urlsplit(request.url).scheme != urlsplit(target).scheme:
                    raise NotSentError(
                        f"{shown_url(request.url)} redirects {request.method} to {shown_url(target)}; the request and its"
                        " credentials are not sent there; set `uri` to that server if you trust it"
                    )
                auth, request = None, replace(request, headers={wire.ACCEPT: wire.JSON})
            elif request.method not in wire.SAFE_METHODS and not wire.redirect_keeps_method(answer.status):
                raise NotSentError(
                    f"{shown_url(request.url)} redirects {request.method} to {shown_url(target)} with status {answer.status}, which"
                    " does not preserve the request; set `uri` to that URL"
                )
            request = replace(request, url=target)
        raise NotSentError(f"{shown_url(request.url)} redirects more than {_MOST_REDIRECTS} times")

    def _once(self, request: OutgoingRequest, auth: AuthSession | None) -> Response:
        """The answer from the place that the request names; credentials that it refuses are renewed once, if they can be."""
        headers = _with_credentials(request, auth)
        answer = self._exchange(request, headers)
        if auth is not None and wire.asks_for_credentials(answer.status) and auth.renew(headers):
            answer = self._exchange(request, _with_credentials(request, auth))
        return answer

    def _exchange(self, request: OutgoingRequest, headers: Mapping[str, str]) -> Response:
        try:
            answer = self._connections().request(
                request.method, request.url, headers=headers, content=request.body or None
            )
        except httpx2.InvalidURL as error:
            raise errors.InvalidPropertyError(f"{shown_url(request.url)} is not a valid URL: {error}") from None
        except (httpx2.LocalProtocolError, UnicodeError):
            # The text of the error quotes the header.
            raise errors.InvalidPropertyError(
                f"{shown_url(request.url)} was not called: a header has an invalid name or value, which is not shown"
            ) from None
        except httpx2.HTTPError as error:
            kind = NotSentError if isinstance(error, _NOT_SENT) else NoAnswerError
            raise kind(f"{request.method} {shown_url(request.url)}: {type(error).__name__}: {error}") from error
        return Response(
            answer.status_code, {key.lower(): value for key, value in answer.headers.items()}, answer.content
        )

    def _connections(self) -> httpx2.Client:
        known = self._client
        if known is None or known[0] != os.getpid():
            # After a fork, two threads may each make one: no lock is here that a fork could leave closed.
            known = self._client = os.getpid(), _new_client(self._settings)
            # Whoever forgets to close a catalog leaves no connections behind.
            weakref.finalize(self, known[1].close)
        return known[1]


class RestClient:
    """Requests to one server, in the name of one user."""

    def __init__(
        self, uri: str, transport: Transport, headers: Mapping[str, str], auth: AuthSession | None = None
    ) -> None:
        if "@" in urlsplit(uri).netloc:
            raise errors.InvalidPropertyError(
                f"property 'uri' contains a user, {shown_url(uri)}; set rest.auth.type=basic, rest.auth.basic.username and"
                " rest.auth.basic.password"
            )
        self._uri = uri.rstrip("/")
        self._transport = transport
        self._headers = headers
        self._auth = auth

    def __repr__(self) -> str:
        return f"RestClient({shown_url(self._uri)})"

    def with_auth(self, auth: AuthSession | None) -> "RestClient":
        """The same connections in the name of another."""
        return RestClient(self._uri, self._transport, self._headers, auth)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        idempotent: bool | None = None,
        within: dt.timedelta | None = None,
    ) -> Response:
        """The answer to a request.

        Args:
            method: the method of HTTP.
            path: a path below the URI of the server, whose parts are encoded, or a whole URL.
            query: its parameters, as they mean.
            body: a JSON document.
            headers: more headers.
            idempotent: whether it may be sent twice; by default if the method says so, or an idempotency key is among the headers.
            within: for how long it may be sent again.
        """
        url = path if "://" in path else f"{self._uri}/{path.lstrip('/')}"
        is_elsewhere = "://" in path and not _is_same_place(self._uri, url)
        if query:
            url += ("&" if "?" in url else "?") + urlencode(query, quote_via=quote)
        own = {wire.ACCEPT: wire.JSON} if is_elsewhere else self._headers
        merged = {**own, **({} if body is None else {wire.CONTENT_TYPE: wire.JSON}), **(headers or {})}
        if idempotent is None:
            idempotent = method in wire.IDEMPOTENT_METHODS or IDEMPOTENCY_KEY in merged
        request = OutgoingRequest(method, url, merged, body or b"")
        return self._transport.send(request, None if is_elsewhere else self._auth, idempotent, within)


def _with_credentials(request: OutgoingRequest, auth: AuthSession | None) -> dict[str, str]:
    if auth is None:
        return dict(request.headers)
    try:
        added = auth.headers(request)
    except errors.ServiceUnavailableError as error:
        raise NotSentError(
            f"{shown_url(request.url)} was not called because there are no credentials: {error}"
        ) from error
    replaced = {name.lower() for name in added}
    return {name: value for name, value in request.headers.items() if name.lower() not in replaced} | dict(added)


def _is_same_place(one: str, other: str) -> bool:
    """Whether credentials for one URL may go to the other: same host and port, or the same host by TLS."""
    before, after = urlsplit(one), urlsplit(other)
    ports = {"http": 80, "https": 443}
    places = [(part.scheme, part.hostname, part.port or ports.get(part.scheme)) for part in (before, after)]
    host = before.hostname
    return places[0] == places[1] or places == [("http", host, 80), ("https", host, 443)]


def _unsettled(error: errors.IcefloeError) -> NoAnswerError:
    """The error of the last sending of a request, of which an earlier one may have taken effect."""
    unsettled = NoAnswerError(f"an earlier attempt of the request may have succeeded; the last one failed: {error}")
    unsettled.__cause__ = error
    return unsettled


def _new_client(settings: ClientSettings) -> httpx2.Client:
    proxy = None if settings.proxy is None else httpx2.Proxy(settings.proxy, auth=settings.proxy_login)
    limits = httpx2.Limits(max_connections=settings.connections, keepalive_expiry=_KEPT_SECONDS)
    timeout = httpx2.Timeout(settings.socket_seconds, connect=settings.connect_seconds, pool=settings.socket_seconds)
    return httpx2.Client(verify=_tls(settings), proxy=proxy, limits=limits, timeout=timeout)


def _tls(settings: ClientSettings) -> ssl.SSLContext | bool:
    if settings.client_key is not None and settings.client_certificate is None:
        raise errors.InvalidPropertyError("ssl.client.key requires ssl.client.cert")
    if settings.ca_bundle is None and settings.client_certificate is None:
        return True
    try:
        folder = settings.ca_bundle is not None and os.path.isdir(settings.ca_bundle)
        context = ssl.create_default_context(
            cafile=None if folder else settings.ca_bundle, capath=settings.ca_bundle if folder else None
        )
        if settings.client_certificate is not None:
            # The empty password is that of no key: one that needs a password is refused, and nobody asked for it.
            context.load_cert_chain(settings.client_certificate, settings.client_key, password="")
    except (OSError, ssl.SSLError) as error:
        raise errors.InvalidPropertyError(
            f"ssl.cabundle, ssl.client.cert or ssl.client.key cannot be used: {error}"
        ) from error
    return context


def sender(transport: Transport) -> Send:
    """The way to a token endpoint."""
    return lambda request: transport.send(request, None, True)
