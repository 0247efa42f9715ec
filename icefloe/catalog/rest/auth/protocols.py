"""What every kind of authentication is to the rest of the client: headers for a request, and a way to ask other servers.

A session belongs to one catalog, or one table of it. Threads share it. It is not pickled: another process makes its own
from the catalog's properties, so that no token travels that a server has issued meanwhile.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn, Protocol

from icefloe.catalog.rest.auth.urls import shown_url


@dataclass(frozen=True, slots=True, repr=False)
class OutgoingRequest:
    """A request as it is about to be sent."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"OutgoingRequest({self.method} {shown_url(self.url)})"

    def has(self, header: str) -> bool:
        """Whether it has the header, in whatever case of letters."""
        return any(name.lower() == header.lower() for name in self.headers)


class Answer(Protocol):
    """What a server answered."""

    @property
    def status(self) -> int:
        """The status code of HTTP."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by names in lower case."""

    @property
    def body(self) -> bytes:
        """The content."""


Send = Callable[[OutgoingRequest], Answer]
"""Sends a request as it is, without authentication; raises `ServiceUnavailableError` if no answer comes."""


class AuthSession(Protocol):
    """Says who asks."""

    def headers(self, request: OutgoingRequest) -> Mapping[str, str]:
        """The headers to add to a request, or to replace in it; asked before every sending, also of the same request.

        Raises:
            NotAuthorizedError: if there are no valid credentials.
            ServiceUnavailableError: if the server that issues tokens cannot be asked.
        """

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Get other credentials than those in the headers, which a server has refused; whether there are any."""

    def close(self) -> None:
        """Do nothing in the background any more."""


class Session:
    """What the sessions of this room have in common."""

    __slots__ = ("__weakref__",)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} cannot be pickled; create another one from the catalog properties with auth_session"
        )

    def for_table(self, _config: Mapping[str, str]) -> "AuthSession":
        """The session for one table, whose configuration the server sent; the same, unless a kind of its own is known."""
        return self  # type: ignore[return-value]  # `headers` is up to the kinds

    def renew(self, _refused: Mapping[str, str]) -> bool:
        """There are no other credentials."""
        return False

    def close(self) -> None:
        """Nothing goes on in the background."""
