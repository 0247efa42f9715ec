"""Decides what a REST server offers and how it is asked: its configuration, endpoints, prefix, pages and idempotency keys."""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from icefloe import commit as cm, errors, properties as props
from icefloe.catalog.rest import http_codec as wire
from icefloe.catalog.rest.auth import AuthSession, auth_session, is_web_url, shown_url, trusted_properties
from icefloe.catalog.rest.http import Response, RestClient, Transport, sender
from icefloe.catalog.rest.outcomes import Request, asked
from icefloe.catalog.rest.settings import ClientSettings
from icefloe.rest import Context, Page, config_codec as config, headers, paths

_PAGE_SIZE = "rest-page-size"
_CONNECTING = (
    "uri",
    "header.",
    "rest.",
    "ssl.",
    "token",
    "credential",
    "scope",
    "audience",
    "resource",
    "oauth2-",
    "auth.",
    "gcp.auth.",
)
"""How properties begin that connections and credentials depend on."""
_KEYED = frozenset(
    (
        paths.CREATE_NAMESPACE,
        paths.DROP_NAMESPACE,
        paths.UPDATE_NAMESPACE,
        paths.CREATE_TABLE,
        paths.UPDATE_TABLE,
        paths.DROP_TABLE,
        paths.REGISTER_TABLE,
        paths.RENAME_TABLE,
        paths.COMMIT_TRANSACTION,
        paths.PLAN_SCAN,
        paths.FETCH_TASKS,
        paths.CANCEL_PLAN,
        paths.UPDATE_VIEW,
        paths.DROP_VIEW,
        paths.RENAME_VIEW,
        paths.REGISTER_VIEW,
    )
)
"""Endpoints that take an idempotency key."""
_REPEATABLE = frozenset((paths.PLAN_SCAN, paths.FETCH_TASKS))
"""Endpoints that change nothing, whatever their method says."""


@dataclass(frozen=True, slots=True)
class RestSession:
    """A server as a client knows it after the first request."""

    catalog: str
    properties: Mapping[str, str] = field(repr=False)
    """Those of the client with what the server sets, credentials among them."""
    client: RestClient
    transport: Transport
    auth: AuthSession
    endpoints: frozenset[paths.Endpoint]
    key_lifetime: timedelta | None
    """How long the server remembers idempotency keys; None if it takes none."""

    @staticmethod
    def connect(catalog: str, properties: Mapping[str, str], timing: cm.Timing | None = None) -> "RestSession":
        """Ask the server for its configuration."""
        transport, auth, client = _connection(catalog, properties, timing)
        try:
            said = config.decode_config(asked(_configuration(client, catalog, properties)).body)
        except BaseException:
            auth.close()
            transport.close()
            raise
        merged = trusted_properties(properties, said.merged(properties))
        if _connecting(merged) != _connecting(properties):
            auth.close()
            transport.close()
            transport, auth, client = _connection(catalog, merged, timing)
        endpoints = said.endpoints or _assumed_endpoints(merged)
        return RestSession(catalog, merged, client, transport, auth, endpoints, said.idempotency_key_lifetime)

    def close(self) -> None:
        """Close all connections."""
        self.auth.close()
        self.transport.close()

    def has(self, endpoint: paths.Endpoint) -> bool:
        """Whether the server has the endpoint."""
        return endpoint in self.endpoints

    def address(self, endpoint: paths.Endpoint, namespace: paths.Levels = (), **names: str) -> str:
        """The path of a request."""
        return endpoint.address(self.properties.get(config.PREFIX, ""), namespace, self.separator, **names)

    @property
    def separator(self) -> str:
        """What joins the levels of a namespace in a path, encoded."""
        return self.properties.get(config.NAMESPACE_SEPARATOR, paths.SEPARATOR)

    def request(
        self,
        endpoint: paths.Endpoint,
        context: Context,
        about: str,
        namespace: paths.Levels = (),
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers_too: Mapping[str, str] | None = None,
        client: RestClient | None = None,
        names: Mapping[str, str] | None = None,
    ) -> Request:
        """A request that can be sent; an error if the server does not have the endpoint.

        What it is `about` is said in words. `names` are those of its path besides the namespace, and `client` asks in the
        name of another than the catalog's user.
        """
        if not self.has(endpoint):
            raise errors.UnsupportedOperationError(
                f"the server of REST catalog {self.catalog!r} does not offer `{endpoint}`"
            )
        lifetime = self.key_lifetime if endpoint in _KEYED else None
        # The key is made here, so that it is the same however often the request is sent.
        key = {} if lifetime is None else {headers.IDEMPOTENCY_KEY: new_key()}
        sent_by, path = client or self.client, self.address(endpoint, namespace, **(names or {}))

        def call() -> Response:
            return sent_by.request(
                endpoint.method,
                path,
                query=query,
                body=body,
                headers={**key, **(headers_too or {})},
                idempotent=True if endpoint in _REPEATABLE else None,
                within=lifetime,
            )

        return Request(call, context, about, bool(key))

    def names(
        self,
        endpoint: paths.Endpoint,
        context: Context,
        about: str,
        decode: Callable[[bytes], Page],
        namespace: paths.Levels = (),
        query: Mapping[str, str] | None = None,
    ) -> Iterator[paths.Levels]:
        """All names of a list, page by page; none if the server has no such list."""
        if not self.has(endpoint):
            return
        size = props.property_as_int(self.properties, _PAGE_SIZE, 0, at_least=0)
        sizes = {wire.PAGE_SIZE: str(size)} if size else {}
        seen: set[str] = set()
        token: str | None = ""
        while token is not None:
            if token in seen:
                raise errors.ServiceUnavailableError(
                    f"the server of REST catalog {self.catalog!r} repeats pages of {about}"
                )
            seen.add(token)
            pages = {**(query or {}), wire.PAGE_TOKEN: token, **sizes}
            page = decode(asked(self.request(endpoint, context, about, namespace, query=pages)).body)
            yield from page.names
            token = page.next_token


def checked_settings(catalog: str, properties: Mapping[str, str]) -> ClientSettings:
    """How the client connects, if its properties say where to."""
    uri = properties.get("uri", "").strip()
    if not is_web_url(uri):
        raise errors.InvalidPropertyError(
            f"REST catalog {catalog!r} needs a `uri` like 'https://host/path', not {shown_url(uri)!r}"
        )
    return ClientSettings.of(properties)


def new_key() -> str:
    """An idempotency key: a UUID of version 7 (RFC 9562), which begins with the time."""
    milliseconds = time.time_ns() // 1_000_000
    number = milliseconds << 80 | 7 << 76 | secrets.randbits(12) << 64 | 2 << 62 | secrets.randbits(62)
    text = f"{number:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _configuration(client: RestClient, catalog: str, properties: Mapping[str, str]) -> Request:
    warehouse = properties.get(config.WAREHOUSE)
    query = None if warehouse is None else {config.WAREHOUSE: warehouse}
    return Request(
        lambda: client.request(paths.CONFIG.method, paths.CONFIG.address(), query=query),
        Context.CONFIG,
        f"the configuration of REST catalog {catalog!r}",
    )


def _connection(
    catalog: str, properties: Mapping[str, str], timing: cm.Timing | None
) -> tuple[Transport, AuthSession, RestClient]:
    settings = checked_settings(catalog, properties)
    transport = Transport(settings, timing)
    auth = auth_session(properties, sender(transport))
    return transport, auth, RestClient(properties["uri"].strip(), transport, settings.headers, auth)


def _connecting(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key.startswith(_CONNECTING)}


def _assumed_endpoints(merged: Mapping[str, str]) -> frozenset[paths.Endpoint]:
    with_views = props.property_as_bool(merged, config.VIEW_ENDPOINTS_SUPPORTED, False)
    return paths.DEFAULT_ENDPOINTS | (paths.DEFAULT_VIEW_ENDPOINTS if with_views else frozenset())
