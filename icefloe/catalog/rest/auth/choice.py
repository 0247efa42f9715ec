"""Decides which kind of authentication the properties of a catalog ask for."""

import time
from collections.abc import Mapping

from icefloe import errors, properties as props
from icefloe.catalog.rest.auth.endpoint import Clock, TokenEndpoint
from icefloe.catalog.rest.auth.oauth2 import oauth2_session
from icefloe.catalog.rest.auth.plain import BasicAuth, CustomAuth, NoAuth
from icefloe.catalog.rest.auth.protocols import AuthSession, Send, Session
from icefloe.catalog.rest.auth.settings import CREDENTIAL, TOKEN, OAuth2Settings

TYPE = "rest.auth.type"
SIGV4_ENABLED = "rest.sigv4-enabled"
_DELEGATE = "rest.auth.sigv4.delegate-auth-type"
_KNOWN = ("none", "basic", "oauth2", "sigv4", "google")


def auth_session(properties: Mapping[str, str], send: Send, clock: Clock = time.time) -> AuthSession:
    """The session of a catalog, by `rest.auth.type` and its older spellings; nothing is asked of any server yet.

    Args:
        properties: those of the catalog, with `uri`.
        send: how to ask a server that issues tokens.
        clock: seconds since 1970.
    """
    return _session(_chosen(properties), properties, send, clock)


def table_session(parent: AuthSession, config: Mapping[str, str]) -> AuthSession:
    """The session of a table whose configuration came from the server: the catalog's, unless it brings tokens or keys."""
    return parent.for_table(config) if isinstance(parent, Session) else parent


def _chosen(properties: Mapping[str, str]) -> str:
    if props.property_as_bool(properties, SIGV4_ENABLED, False):
        return "sigv4"
    if kind := properties.get(TYPE):
        return kind
    return "oauth2" if properties.get(CREDENTIAL) or properties.get(TOKEN) else "none"


def _session(kind: str, properties: Mapping[str, str], send: Send, clock: Clock) -> AuthSession:
    match kind.strip().lower():
        case "none":
            return NoAuth()
        case "basic":
            return BasicAuth(properties)
        case "oauth2":
            return oauth2_session(TokenEndpoint(OAuth2Settings.of(properties), send, clock), properties)
        case "sigv4":
            return _sigv4(properties, send, clock)
        case "google":
            return _google(properties, send)
        case _ if "." in kind:
            return CustomAuth(kind.strip(), properties)
        case _:
            raise errors.InvalidPropertyError(
                f"property {TYPE!r} is {kind!r}; it must be {', '.join(_KNOWN)}, or a class in the form module.Class"
            )


def _sigv4(properties: Mapping[str, str], send: Send, clock: Clock) -> AuthSession:
    inner = properties.get(_DELEGATE) or "oauth2"
    if inner.strip().lower() == "sigv4":
        raise errors.InvalidPropertyError(f"property {_DELEGATE!r} is {inner!r}; sigv4 cannot be nested")
    try:
        from icefloe.catalog.rest.auth.sigv4 import SigV4Session
    except ModuleNotFoundError as error:
        raise _not_installed("SigV4", "botocore", "aws") from error
    return SigV4Session(_session(inner, properties, send, clock), properties)


def _google(properties: Mapping[str, str], send: Send) -> AuthSession:
    try:
        from icefloe.catalog.rest.auth.google import GoogleSession
    except ModuleNotFoundError as error:
        raise _not_installed("Google", "google-auth", "gcp") from error
    return GoogleSession(properties, send)


def _not_installed(kind: str, package: str, extra: str) -> errors.NotInstalledError:
    return errors.NotInstalledError(
        f"authentication by {kind} needs {package}, which is not installed; get it by: pip install 'icefloe[{extra}]'"
    )
