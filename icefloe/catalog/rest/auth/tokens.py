"""How long a token is good, and when it is time for another one.

The lifetime that a server states is counted from when the token was asked for, by this machine's clock, so that it does
not matter whether both clocks agree. Only the end that is written in a token of unknown age is compared with the clock.
"""

import base64
import binascii
import re
from dataclasses import dataclass, field

from icefloe.catalog.rest.auth.token_codec import ACCESS_TOKEN, decode_claims
from icefloe.errors import InvalidPropertyError
from icefloe.rest import oauth_codec as wire

_LONGEST_AHEAD = 300.0
_SHOWABLE = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A token, and until when it is good by the clock of this machine."""

    text: str = field(repr=False)
    kind: str = ACCESS_TOKEN
    since: float = 0.0
    expires: float | None = None
    """None if that is not known: the token is used until a server refuses it."""
    is_issued: bool = False
    """Whether it came from the credential of the client, which can ask for another one at any time."""

    def is_expired(self, now: float) -> bool:
        """Whether its time is over."""
        return self.expires is not None and now >= self.expires

    def renewal(self) -> float | None:
        """When to get the next one: a tenth of its time before the end, at most five minutes."""
        if self.expires is None:
            return None
        return self.expires - min((self.expires - self.since) / 10, _LONGEST_AHEAD)


def given_token(text: str, now: float, lifetime: float | None) -> BearerToken:
    """A token of the user or of a table's configuration; its end is in it if it is a JWT, else as far off as the user says."""
    expires, _ = _claimed_times(checked_token(text))
    if expires is None and lifetime is not None:
        expires = now + lifetime
    return BearerToken(text, since=now, expires=expires)


def fresh_token(issued: wire.Token, asked: float, is_issued: bool) -> BearerToken:
    """A token that a server issued just now, asked for at this time."""
    lifetime: float | None = issued.expires_in
    if lifetime is None:
        expires, since = _claimed_times(issued.access_token)
        if expires is not None:
            lifetime = expires - (asked if since is None else since)
    # A lifetime that is over at once tells nothing, and would ask for tokens without end.
    expires = asked + lifetime if lifetime is not None and lifetime > 0 else None
    text = checked_token(issued.access_token)
    return BearerToken(text, issued.issued_token_type or ACCESS_TOKEN, asked, expires, is_issued)


def checked_token(text: str) -> str:
    """The token, if a header can carry it."""
    if not _SHOWABLE.fullmatch(text):
        raise InvalidPropertyError(
            "a token is empty, or contains blanks or characters that are not allowed in a header; its value is not shown"
        )
    return text


def _claimed_times(token: str) -> tuple[float | None, float | None]:
    """When a JWT says that it ends and began. Nobody verifies it: only the server can, and only it must."""
    parts = token.split(".")
    if len(parts) != 3:
        return None, None
    try:
        document = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
    except (binascii.Error, ValueError):
        return None, None
    return decode_claims(document)
