"""How requests that a catalog signs are sent to S3: connections, waiting, and when one is sent again.

A request is sent again after a failure that another attempt may not meet, each time with a signature of that moment; one that
the store refuses, once. What must not happen twice is sent once.
"""

import os
import random
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from icefloe.errors import IcefloeError, NothingStoredError, StorageError
from icefloe.storage import s3_codec as s3
from icefloe.storage.locations import Location
from icefloe.storage.properties import redacted, seconds, secrets_of, whole_number
from icefloe.storage.protocol import check_length
from icefloe.storage.s3 import Address
from icefloe.storage.signing import Sign, Signatures, SignRequest

if TYPE_CHECKING:
    import httpx2

_CONNECTIONS = 64
_SENT_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_REFUSED = 403
_CACHED_METHODS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Call:
    """A request about a location: its method, key in the bucket, parameters, headers and body."""

    location: Location
    method: str
    key: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    shown_body: str | None = None
    """The body, if the signer must see it."""
    is_sent_once: bool = False
    longest: int | None = None
    """How many bytes the answer may have."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the store answered; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class SignedRequests:
    """Requests to one bucket, each of them signed by a catalog; threads may share it."""

    def __init__(self, address: Address, properties: Mapping[str, str], sign: Sign) -> None:
        self._address = address
        self._signatures = Signatures(sign)
        self._secrets = secrets_of(properties)
        self._retries = whole_number(properties, "s3.retry.num-retries", 5)
        self._first_wait = whole_number(properties, "s3.retry.min-wait-ms", 100, 1) / 1000
        self._longest_wait = whole_number(properties, "s3.retry.max-wait-ms", 20_000, 1) / 1000
        read = seconds(properties, "s3.request-timeout", 60).total_seconds()
        connect = seconds(properties, "s3.connect-timeout", 10).total_seconds()
        self._timeouts = {"connect": connect, "read": read, "write": read, "pool": None}
        self._proxy = properties.get("s3.proxy-uri") or _proxy_of(address.url)
        self._lock = threading.Lock()
        self._process = 0

    def send(self, call: Call) -> Answer:
        """The answer of the store, whatever its status; an error if there is none, or only one to try again later."""
        refused = False
        attempts = 0 if call.is_sent_once else self._retries
        while True:
            try:
                answer = self._sent(call, refused)
            except OSError as error:
                if isinstance(error, IcefloeError):
                    raise
                problem = StorageError(str(call.location), f"the store could not be reached: {self._shown(error)}")
                answer = None
            if answer is not None and answer.status == _REFUSED and not refused and call.method in _CACHED_METHODS:
                # Perhaps by a signature that was kept too long.
                refused = True
                continue
            if answer is not None and (answer.status not in _SENT_AGAIN or attempts == 0):
                return answer
            if attempts == 0:
                raise problem
            attempts -= 1
            time.sleep(self._wait(self._retries - attempts) * (0.5 + random.random() / 2))

    def _wait(self, attempt: int) -> float:
        return min(self._longest_wait, self._first_wait * 2.0**attempt)

    def _sent(self, call: Call, is_repeated: bool) -> Answer:
        uri = s3.target(self._address.url, call.key, call.query)
        # A range is not signed, so that one signature serves all ranges of a file.
        shown = {name: [value] for name, value in call.headers.items() if name != s3.RANGE}
        request = SignRequest(call.method, self._address.region, uri, shown, call.shown_body)
        try:
            signed = self._signatures.of(request, is_repeated=is_repeated)
        except IcefloeError as error:
            # Nothing was sent to the store.
            kind = NothingStoredError if call.method == "PUT" else StorageError
            raise kind(str(call.location), f"the catalog did not sign {call.method}: {self._shown(error)}") from None
        headers = {name.lower(): ", ".join(values) for name, values in signed.headers.items()}
        headers |= {s3.CONTENT_HASH: headers.get(s3.CONTENT_HASH, s3.UNSIGNED_PAYLOAD), **call.headers}
        return self._exchange(call, signed.uri, headers)

    def _exchange(self, call: Call, uri: str, headers: dict[str, str]) -> Answer:
        import httpx2

        parts = urlsplit(uri)
        headers["host"] = parts.netloc.rpartition("@")[2]
        # Sent as it was signed, to the letter, which a URL that is parsed and written again may not be.
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        extensions = {"timeout": self._timeouts, "target": path.encode()}
        request = httpx2.Request(
            call.method,
            f"{parts.scheme}://{headers['host']}/",
            headers=headers,
            content=call.body,
            extensions=extensions,
        )
        try:
            response = self._transport().handle_request(request)
            try:
                return self._read(call, response)
            finally:
                response.close()
        except httpx2.TransportError as error:
            raise ConnectionError(self._shown(error) or type(error).__name__) from None

    def _read(self, call: Call, response: "httpx2.Response") -> Answer:
        headers = {name.lower(): value for name, value in response.headers.items()}
        length = headers.get(s3.SIZE, "")
        if call.longest is not None and response.status_code < 300 and length.isdigit():
            check_length(call.location, int(length), call.longest)
        # Bytes as they are stored: what was written compressed is not unpacked on the way.
        body = b"" if call.method == "HEAD" else b"".join(response.iter_raw())
        return Answer(response.status_code, headers, body)

    def _transport(self) -> "httpx2.HTTPTransport":
        import httpx2

        with self._lock:
            # Connections do not survive a fork.
            if self._process != os.getpid():
                limits = httpx2.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS)
                self._http = httpx2.HTTPTransport(limits=limits, proxy=self._proxy)
                weakref.finalize(self, self._http.close)
                self._process = os.getpid()
            return self._http

    def _shown(self, error: Exception) -> str:
        return redacted(str(error), self._secrets)[:500]


def _proxy_of(url: str) -> str | None:
    """The proxy that the environment names for an address."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)
