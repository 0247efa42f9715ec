"""Decides which token goes with a request: the one at hand while it is good, another one before its time is over.

A token is renewed in the background ahead of its end. Only when that did not succeed does a request wait for it, and then one
thread asks and all others wait for its answer. A token that came from the client's credential can be had again at any time;
one that was given to us is exchanged while it is good, and if that is refused, sent until the catalog refuses it, since the
clock that calls it expired may be ours.
"""

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import replace

from icefloe.bounded_cache import BoundedCache
from icefloe.catalog.rest.auth.background import RENEWALS
from icefloe.catalog.rest.auth.endpoint import TokenEndpoint, bearer
from icefloe.catalog.rest.auth.protocols import OutgoingRequest, Session
from icefloe.catalog.rest.auth.settings import TOKEN, OAuth2Settings
from icefloe.catalog.rest.auth.token_codec import EXCHANGED_TYPES
from icefloe.catalog.rest.auth.tokens import BearerToken, checked_token, given_token
from icefloe.errors import IcefloeError, ServiceUnavailableError
from icefloe.rest.headers_codec import AUTHORIZATION

LOG = logging.getLogger("icefloe.catalog.rest")

_MOST_TABLES = 1000
_JUST_RENEWED = 10.0
"""Seconds within which a token that is refused is not renewed again: it is not its age that is wrong."""
_LONGEST_PAUSE = 60.0
_EARLY = 1.0
"""Seconds by which a renewal may come before its time."""


class OAuth2Session(Session):
    """A bearer token, and where the next one comes from."""

    __slots__ = (
        "_endpoint",
        "_exchange_refused",
        "_failure",
        "_is_closed",
        "_lock",
        "_renewed",
        "_tables",
        "_token",
        "_used",
    )

    def __init__(self, endpoint: TokenEndpoint, token: BearerToken | None) -> None:
        self._endpoint = endpoint
        self._token: BearerToken | None = None
        self._lock = threading.Lock()
        self._tables: BoundedCache[tuple[str, str], OAuth2Session] = BoundedCache(_MOST_TABLES)
        self._exchange_refused = False
        self._failure: tuple[float, IcefloeError] | None = None
        self._is_closed = False
        self._renewed = float("-inf")
        self._used = endpoint.clock()
        if token is not None:
            self._keep(token)

    @property
    def _settings(self) -> OAuth2Settings:
        return self._endpoint.settings

    def headers(self, request: OutgoingRequest) -> Mapping[str, str]:
        """The token, unless the user has set the header."""
        if request.has(AUTHORIZATION):
            return {}
        token = self._current()
        return {} if token is None else {AUTHORIZATION: bearer(token)}

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Get another token than the refused one; whether there is one now."""
        token = self._token
        if token is None or not self._settings.renews:
            return False
        if bearer(token) not in refused.values():
            return True  # another thread has renewed it meanwhile
        now = self._endpoint.clock()
        if now - self._renewed < _JUST_RENEWED:
            return False
        with self._lock:
            if self._token is not token:
                return True
            try:
                following = self._following(replace(token, expires=now))
            except IcefloeError as error:
                LOG.warning("a token that the catalog refused cannot be renewed: %s", error)
                return False
            if following is not None:
                self._keep(following)
            return following is not None

    def renew_ahead(self) -> None:
        """Renew the token before its end, unless nobody uses it and it can be had again at any time."""
        with self._lock:
            token = self._token
            if token is None or self._is_closed or (token.is_issued and self._used <= token.since):
                return
            now, due = self._endpoint.clock(), token.renewal()
            if due is not None and due > now + _EARLY:
                RENEWALS.schedule(self, due - now)  # a request has renewed it meanwhile, or the clock was set back
                return
            try:
                following = self._following(token)
            except ServiceUnavailableError as error:
                LOG.warning("a token is not renewed yet: %s", error)
                left = 0.0 if token.expires is None else token.expires - now
                if left > 0:
                    RENEWALS.schedule(self, min(max(left / 2, 1.0), _LONGEST_PAUSE))
            except IcefloeError as error:
                LOG.warning("a token is used to its end, as it cannot be renewed: %s", error)
                self._token = token if token.is_issued else replace(token, expires=None)
            else:
                self._keep(following or replace(token, expires=None))

    def for_table(self, config: Mapping[str, str]) -> "OAuth2Session":
        """The session of a table whose configuration brings a token, or one to exchange; else this one."""
        kind = next((key for key in (TOKEN, *EXCHANGED_TYPES) if config.get(key)), None)
        if kind is None:
            return self
        key, now = (kind, config[kind]), self._endpoint.clock()
        known = self._tables.load(key, lambda: self._table(config, kind))
        if now - known._used > self._settings.idle_seconds:
            known = self._table(config, kind)
            self._tables.keep(key, known)
        return known

    def close(self) -> None:
        """Renew nothing any more in the background."""
        self._is_closed = True
        RENEWALS.cancel(self)
        self._tables.clear()

    def _table(self, config: Mapping[str, str], kind: str) -> "OAuth2Session":
        now = self._endpoint.clock()
        if kind == TOKEN:
            lifetime = OAuth2Settings.lifetime_of(config)
            return OAuth2Session(self._endpoint, given_token(config[kind], now, lifetime))
        subject = BearerToken(checked_token(config[kind]), kind, now)
        return OAuth2Session(self._endpoint, self._endpoint.exchanged(subject, self._current()))

    def _current(self) -> BearerToken | None:
        """The token at hand, or one that is fetched now."""
        seen, now = self._token, self._endpoint.clock()
        self._used = now
        if seen is not None and not seen.is_expired(now):
            return seen
        asked = time.monotonic()
        with self._lock:
            if self._token is not seen:
                return self._token
            if self._failure is not None and self._failure[0] >= asked:
                # The thread that was first has just asked for all who waited.
                raise type(self._failure[1])(str(self._failure[1]))
            return self._fetched(seen)

    def _fetched(self, seen: BearerToken | None) -> BearerToken | None:
        try:
            following = self._following(seen)
        except IcefloeError as error:
            is_refused = not isinstance(error, ServiceUnavailableError)
            if seen is None or seen.is_issued or not is_refused:
                self._failure = time.monotonic(), error
                raise
            LOG.warning("a token that seems to be expired is sent all the same, as it cannot be renewed: %s", error)
            following = None
        if following is None and seen is not None:
            following = replace(seen, expires=None)
        if following is not None:
            self._keep(following)
        return following

    def _following(self, token: BearerToken | None) -> BearerToken | None:
        """The token after this one; None if none can be had, as nothing is known that would be one's claim to it."""
        credential = self._settings.credential
        if token is None:
            return None if credential is None else self._endpoint.by_credential(credential)
        if not self._settings.renews:
            return None
        is_late = token.is_expired(self._endpoint.clock())
        if self._settings.exchanges and not self._exchange_refused and not (is_late and token.is_issued):
            if not is_late:
                return self._exchanged(token)
            return None if credential is None else self._endpoint.exchanged_late(token, credential)
        if credential is None or (self._settings.exchanges and not token.is_issued):
            return None
        return self._endpoint.by_credential(credential)

    def _exchanged(self, token: BearerToken) -> BearerToken:
        """Another token for one that is good still; by the credential where the server exchanges none."""
        credential = self._settings.credential
        try:
            return self._endpoint.exchanged(token)
        except ServiceUnavailableError:
            raise
        except IcefloeError as error:
            if credential is None or not token.is_issued:
                raise
            LOG.info("tokens are asked for by the credential alone, as they are not exchanged: %s", error)
            self._exchange_refused = True
        return self._endpoint.by_credential(credential)

    def _keep(self, token: BearerToken) -> None:
        now = self._endpoint.clock()
        if self._token is not None:
            self._renewed = now
        self._token = token
        due = token.renewal()
        if due is not None and self._settings.renews and due > now:
            RENEWALS.schedule(self, due - now)


def oauth2_session(endpoint: TokenEndpoint, properties: Mapping[str, str]) -> OAuth2Session:
    """The session of a catalog: by its token if it has one, else by its credential, else without anything."""
    text = properties.get(TOKEN)
    token = given_token(text, endpoint.clock(), endpoint.settings.lifetime) if text else None
    return OAuth2Session(endpoint, token)
