"""Which credentials a catalog gave for a location, and when they are asked for again.

The longest prefix wins. Credentials are refreshed five minutes before they expire, or at half of what is left to them if that
is less, by one thread; the others go on with what they have as long as it is good. A store that refuses all the same, as it
does when a clock is wrong or a token was revoked, causes one refresh more. Pickles carry the newest credentials and the way
to refresh them, and all copies in a process refresh as one.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import uuid4

from icefloe.bounded_cache import BoundedCache
from icefloe.errors import IcefloeError, StorageError
from icefloe.storage.locations import SCHEMES, Location
from icefloe.storage.properties import SHOWN_KEYS, checked_properties, first_of, shown_properties

logger = logging.getLogger("icefloe.storage")

REFRESHED_AHEAD = 300.0
"""Seconds before their expiry at which credentials are refreshed."""
_BETWEEN_ATTEMPTS = 10.0
"""Seconds after a refresh that failed, while what we have is still good."""
_BETWEEN_URGENT_ATTEMPTS = 2.0
"""Seconds after a refresh that failed, and nothing is good; until then everybody is told of that failure."""
_BETWEEN_REFUSALS = 30.0
"""Seconds between refreshes because of a store that refuses."""
_EXPIRY = re.compile(r"s3\.session-token-expires-at-ms|gcs\.oauth2\.token-expires-at|adls\.sas-token-expires-at-ms\..+")
_NEVER = float("inf")
_IDENTITIES = {
    "s3.access-key-id": re.compile(
        r"(s3|client)\.(access-key-id|secret-access-key|session-token|session-token-expires-at-ms|profile-name|role-arn)"
        r"|s3\.anonymous|client\.assume-role\..+"
    ),
    "gcs.oauth2.token": re.compile(r"gcs\.(oauth2\.token|oauth2\.token-expires-at|no-auth)"),
    "adls.sas-token": re.compile(
        r"adls\.(sas-token.*|account-key|auth\.shared-key\..*|connection-string.*|token|anon)"
    ),
}
"""For each kind of vended identity, how its own settings begin, and which settings it takes the place of."""
_SHARED_CREDENTIALS = 256


@dataclass(frozen=True, slots=True)
class StorageCredential:
    """Settings, credentials among them, for the locations that begin with a prefix."""

    prefix: str
    config: Mapping[str, str] = field(hash=False)

    @property
    def expires_at(self) -> float:
        """The first time, in seconds since 1970, at which a token of it expires; infinity if that is not said."""
        texts = [value for key, value in self.config.items() if _EXPIRY.fullmatch(key)]
        return min((int(text) / 1000 for text in texts if text.isdigit()), default=_NEVER)

    def __repr__(self) -> str:
        return f"StorageCredential({self.prefix!r}, {shown_properties(self.config)})"


Refresh: TypeAlias = Callable[[], Sequence[StorageCredential]]
"""Asks the catalog for new credentials; it can be pickled if the storage is to be."""


class _Current:
    """The newest credentials, shared by all copies in this process."""

    def __init__(self, credentials: Sequence[StorageCredential]) -> None:
        self.refreshing = threading.Lock()
        self.failure: tuple[float, Exception] | None = None
        self.before: Sequence[StorageCredential] = ()
        self.credentials: Sequence[StorageCredential] = ()
        self.put(credentials)

    def put(self, credentials: Sequence[StorageCredential]) -> None:
        now = time.time()
        left = min((credential.expires_at for credential in credentials), default=_NEVER) - now
        self.before, self.credentials = self.credentials, credentials
        self.received = now
        self.due = now + left - min(REFRESHED_AHEAD, max(0.0, left) / 2)


_SHARED: BoundedCache[str, _Current] = BoundedCache(_SHARED_CREDENTIALS)


class VendedCredentials:
    """The credentials that a catalog gave for a table, by prefix, and how new ones are had before they expire."""

    def __init__(self, credentials: Iterable[StorageCredential], refresh: Refresh | None = None) -> None:
        self._key = uuid4().hex
        self._refresh = refresh
        self._current = _SHARED.load(self._key, lambda: _Current(tuple(map(_checked, credentials))))

    def find(self, location: Location) -> StorageCredential | None:
        """The credential with the longest prefix of the location, refreshed if it is about to expire; None if there is none."""
        credential = self._longest(location)
        if credential is None or self._refresh is None or time.time() < self._current.due:
            return credential
        self._renew(has_expired=credential.expires_at <= time.time())
        return self._longest(location)

    def divide(self, location: Location) -> bool:
        """Whether different credentials hold within the bucket, or container, of the location."""
        root = f"{location.scheme}://{location.authority}/"
        prefixes = {_normal(credential.prefix) for credential in self._current.credentials}
        return len([prefix for prefix in prefixes if prefix.startswith(root) or root.startswith(prefix)]) > 1

    def after_refusal(self, location: Location, used: StorageCredential | None) -> bool:
        """Whether there are other credentials than those that a store refused, perhaps after asking for them."""
        if used is None or self._refresh is None:
            return False
        current = self._current
        with current.refreshing:
            last = max(current.received, current.failure[0] if current.failure else 0.0)
            # It may have expired on its way to the store.
            is_old = time.time() >= min(current.due, last + _BETWEEN_REFUSALS)
            if self._longest(location) == used and is_old:
                self._replace(is_urgent=False)
        return self._longest(location) != used

    def secrets(self) -> set[str]:
        """Every value of these credentials, and of those before them, that must not be shown."""
        known = (*self._current.before, *self._current.credentials)
        return {value for credential in known for key, value in credential.config.items() if key not in SHOWN_KEYS}

    def _longest(self, location: Location) -> StorageCredential | None:
        text = f"{location.scheme}://{location.authority}{location.path}"
        matching = [one for one in self._current.credentials if _begins(text, one.prefix)]
        return max(matching, key=lambda one: len(_normal(one.prefix)), default=None)

    def _renew(self, *, has_expired: bool) -> None:
        asked = time.time()
        current = self._current
        # While it is good still, what we have is used; another thread is about to replace it.
        if not current.refreshing.acquire(blocking=has_expired):
            return
        try:
            if time.time() < current.due:
                return
            if has_expired and current.failure is not None and current.failure[0] >= asked - _BETWEEN_URGENT_ATTEMPTS:
                raise current.failure[1]
            self._replace(is_urgent=has_expired)
        finally:
            current.refreshing.release()

    def _replace(self, *, is_urgent: bool) -> None:
        """Ask for new credentials, under the lock; a failure is an error only if the old ones are of no use."""
        assert self._refresh is not None
        current = self._current
        try:
            current.put(tuple(map(_checked, self._refresh())))
            current.failure = None
        except Exception as error:  # noqa: BLE001 - whatever it is, the old credentials may be good still
            failure = error if isinstance(error, IcefloeError) else self._hidden(error)
            current.failure = (time.time(), failure)
            if is_urgent:
                raise failure from None
            current.due = max(current.due, time.time() + _BETWEEN_ATTEMPTS)
            logger.warning("credentials of a storage could not be refreshed, and are tried again: %s", failure)

    def _hidden(self, error: Exception) -> StorageError:
        prefix = next((credential.prefix for credential in self._current.credentials), "")
        return StorageError(prefix, f"new credentials could not be had from the catalog: {type(error).__name__}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VendedCredentials) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _restored, (self._key, tuple(self._current.credentials), self._refresh)

    def __repr__(self) -> str:
        return f"VendedCredentials({list(self._current.credentials)})"


@dataclass(frozen=True, slots=True)
class Grant:
    """How the store of a location learns its settings of this moment: properties, and what a catalog vended over them."""

    properties: Mapping[str, str] = field(repr=False)
    credentials: VendedCredentials
    location: Location

    def settings(self) -> dict[str, str]:
        """The settings of now, from credentials that are good still."""
        credential = self.credentials.find(self.location)
        return dict(self.properties) if credential is None else with_credential(self.properties, credential.config)

    def used(self) -> StorageCredential | None:
        """The credential of now."""
        return self.credentials.find(self.location)

    def after_refusal(self, used: StorageCredential | None) -> bool:
        """Whether it is worth asking the store again."""
        return self.credentials.after_refusal(self.location, used)


def with_credential(properties: Mapping[str, str], config: Mapping[str, str]) -> dict[str, str]:
    """The properties with those that a catalog vended, whose identity takes the place of any other."""
    replaced = [
        settings
        for begin, settings in _IDENTITIES.items()
        if first_of(config, *(key for key in config if key.startswith(begin)))
    ]
    kept = {key: value for key, value in properties.items() if not any(one.fullmatch(key) for one in replaced)}
    return {**kept, **config}


def _restored(key: str, credentials: Sequence[StorageCredential], refresh: Refresh | None) -> VendedCredentials:
    vended = VendedCredentials.__new__(VendedCredentials)
    vended._key, vended._refresh = key, refresh
    vended._current = _SHARED.load(key, lambda: _Current(credentials))
    expiry = min((credential.expires_at for credential in credentials), default=_NEVER)
    with vended._current.refreshing:
        if expiry > min((credential.expires_at for credential in vended._current.credentials), default=_NEVER):
            vended._current.put(credentials)
    return vended


def _checked(credential: StorageCredential) -> StorageCredential:
    return StorageCredential(credential.prefix, checked_properties(credential.config))


def _begins(location: str, prefix: str) -> bool:
    """Whether a location in normal form has the prefix; a folder may be written without its last slash."""
    normal = _normal(prefix)
    return location.startswith(normal) or f"{location}/" == normal


def _normal(prefix: str) -> str:
    """A prefix with the scheme and the account spelled as in normal forms of locations; `s3` alone is one, too."""
    scheme, separator, rest = prefix.partition("://")
    known = SCHEMES.get(scheme.lower(), scheme)
    container, at, host = rest.partition("@")
    if known == "abfs" and at:
        host, slash, path = host.partition("/")
        rest = f"{container}@{host.lower().replace('.blob.', '.dfs.', 1)}{slash}{path}"
    return f"{known}{separator}{rest}"
