"""Decides the headers of those who need no server for it: nobody, a user with a password, and a class of the user's own."""

import base64
from collections.abc import Callable, Mapping
from importlib import import_module

from icefloe.catalog.rest.auth.protocols import OutgoingRequest, Session
from icefloe.errors import InvalidPropertyError
from icefloe.rest.headers_codec import AUTHORIZATION

_USERNAME = "rest.auth.basic.username"
_PASSWORD = "rest.auth.basic.password"


class NoAuth(Session):
    """Requests of nobody in particular."""

    __slots__ = ()

    def headers(self, _request: OutgoingRequest) -> Mapping[str, str]:
        """None."""
        return {}


class BasicAuth(Session):
    """A user and a password, as RFC 7617 writes them."""

    __slots__ = ("_authorization",)

    def __init__(self, properties: Mapping[str, str]) -> None:
        user, password = properties.get(_USERNAME), properties.get(_PASSWORD)
        if not user or password is None:
            raise InvalidPropertyError(f"rest.auth.type=basic needs the properties {_USERNAME!r} and {_PASSWORD!r}")
        if ":" in user:
            raise InvalidPropertyError(
                f"property {_USERNAME!r} contains a colon, which basic authentication does not allow"
            )
        self._authorization = basic_authorization(user, password)

    def headers(self, request: OutgoingRequest) -> Mapping[str, str]:
        """The same for every request."""
        return {} if request.has(AUTHORIZATION) else {AUTHORIZATION: self._authorization}


def basic_authorization(user: str, password: str) -> str:
    """The value of the header."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class CustomAuth(Session):
    """A class that the user wrote: it is made with the properties of the catalog, and must have `headers(request)`.

    It may have `renew(refused)` and `close()`, too.
    """

    __slots__ = ("_inner",)

    def __init__(self, path: str, properties: Mapping[str, str]) -> None:
        self._inner = _class(path)(dict(properties))
        if not callable(getattr(self._inner, "headers", None)):
            raise InvalidPropertyError(f"rest.auth.type={path} names a class without a method headers(request)")

    def headers(self, request: OutgoingRequest) -> Mapping[str, str]:
        """What the class says."""
        headers: Mapping[str, str] = self._inner.headers(request)  # type: ignore[attr-defined]  # checked when it was made
        return headers

    def renew(self, refused: Mapping[str, str]) -> bool:
        """What the class says, if it has an answer."""
        renew = getattr(self._inner, "renew", None)
        return bool(renew(refused)) if callable(renew) else False

    def close(self) -> None:
        """Close it, if it can be closed."""
        close = getattr(self._inner, "close", None)
        if callable(close):
            close()


def _class(path: str) -> Callable[[dict[str, str]], object]:
    module, _, name = path.rpartition(".")
    try:
        named = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidPropertyError(
            f"rest.auth.type={path} names a class that cannot be imported: {error}; known types are none, basic, oauth2,"
            " sigv4 and google"
        ) from error
    if not callable(named):
        raise InvalidPropertyError(f"rest.auth.type={path} is not a class")
    return named  # type: ignore[no-any-return]  # whether it takes properties shows when it is called
