"""Decides what properties say about connections to a REST catalog: pool, timeouts, proxy, TLS and headers of every request."""

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version as installed_version

from icefloe import errors, properties as props
from icefloe.catalog.rest import http_codec as wire

_HEADER = "header."
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?")
"""What RFC 9110 takes, without letters beyond ASCII and blanks at the ends."""
_TLS_CLASS = "rest.client.tls.configurer-impl"
_CONNECT_TIMEOUT_MS = 30_000
_SOCKET_TIMEOUT_MS = 300_000


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How a client connects. What may be secret is not shown."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request."""
    retries: int = 5
    connections: int = 100
    connect_seconds: float | None = _CONNECT_TIMEOUT_MS / 1000
    socket_seconds: float | None = _SOCKET_TIMEOUT_MS / 1000
    """How long the server may be silent."""
    proxy: str | None = None
    proxy_login: tuple[str, str] | None = field(default=None, repr=False)
    ca_bundle: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None

    @staticmethod
    def of(properties: Mapping[str, str]) -> "ClientSettings":
        """What the properties of a catalog say."""
        if _TLS_CLASS in properties:
            raise errors.InvalidPropertyError(
                f"property {_TLS_CLASS!r} names a Java class; configure TLS with ssl.cabundle, ssl.client.cert and"
                " ssl.client.key"
            )
        pool = props.property_as_int(properties, "rest.client.max-connections", 100, at_least=1)
        return ClientSettings(
            headers=_headers(properties),
            retries=props.property_as_int(properties, "rest.client.max-retries", 5, at_least=0),
            connections=props.property_as_int(properties, "rest.client.connections-per-route", pool, at_least=1),
            connect_seconds=_seconds(properties, "rest.client.connection-timeout-ms", _CONNECT_TIMEOUT_MS),
            socket_seconds=_seconds(properties, "rest.client.socket-timeout-ms", _SOCKET_TIMEOUT_MS),
            proxy=_proxy(properties),
            proxy_login=_proxy_login(properties),
            ca_bundle=properties.get("ssl.cabundle"),
            client_certificate=properties.get("ssl.client.cert"),
            client_key=properties.get("ssl.client.key"),
        )


def _headers(properties: Mapping[str, str]) -> dict[str, str]:
    version = f"icefloe/{installed_version('icefloe')}"
    own = {
        wire.ACCEPT: wire.JSON,
        wire.CLIENT_VERSION: version,
        wire.USER_AGENT: properties.get("rest.client.user-agent", f"{version} (Python {platform.python_version()})"),
    }
    given = {key.removeprefix(_HEADER): value for key, value in properties.items() if key.startswith(_HEADER)}
    for name, value in given.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise errors.InvalidPropertyError(f"property {_HEADER + name!r} is not a valid HTTP header")
    replaced = {name.lower() for name in given}
    return {name: value for name, value in own.items() if name.lower() not in replaced} | given


def _seconds(properties: Mapping[str, str], key: str, default_ms: int) -> float | None:
    """A timeout; 0 is none."""
    return props.property_as_int(properties, key, default_ms, at_least=0) / 1000 or None


def _proxy(properties: Mapping[str, str]) -> str | None:
    host, port = properties.get("rest.client.proxy.hostname"), properties.get("rest.client.proxy.port")
    if host is None and port is None:
        return None
    if not host or not port:
        raise errors.InvalidPropertyError("a proxy needs both rest.client.proxy.hostname and rest.client.proxy.port")
    return f"http://{host}:{props.property_as_int(properties, 'rest.client.proxy.port', 0, at_least=1)}"


def _proxy_login(properties: Mapping[str, str]) -> tuple[str, str] | None:
    user, password = properties.get("rest.client.proxy.username"), properties.get("rest.client.proxy.password")
    if user is None and password is None:
        return None
    if user is None or password is None:
        raise errors.InvalidPropertyError("proxy authentication needs both rest.client.proxy.username and .password")
    return user, password
