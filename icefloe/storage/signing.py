"""Requests to S3 that a catalog signs: what is asked of it, what it answers, and which answers are used again.

An answer that may be kept is used for half a minute, for requests of the same method, region and address; so nothing else
that varies, such as a range, may be among the headers that are signed.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from icefloe.bounded_cache import BoundedCache
from icefloe.storage.properties import flag

_KEPT_SECONDS = 30.0
_KEPT_ANSWERS = 100


def signs_remotely(properties: Mapping[str, str]) -> bool:
    """Whether a catalog is to sign each request, as Java Iceberg and PyIceberg say it."""
    return bool(flag(properties, "s3.remote-signing-enabled") or properties.get("s3.signer"))


@dataclass(frozen=True, slots=True)
class SignRequest:
    """A request to a store that is to be signed; the body is given only where the catalog must see it."""

    method: str
    region: str
    uri: str
    headers: Mapping[str, Sequence[str]]
    body: str | None = None


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """Where to send the request, and with which headers besides its own."""

    uri: str = field(repr=False)
    headers: Mapping[str, Sequence[str]] = field(repr=False)
    is_reusable: bool = False


Sign: TypeAlias = Callable[[SignRequest], SignedRequest]
"""Has a request signed; it can be pickled if the storage is to be."""


class Signatures:
    """Signatures of one store, asked for when no good one is kept; threads may share it."""

    def __init__(self, sign: Sign) -> None:
        self._sign = sign
        self._kept: BoundedCache[tuple[str, str, str], tuple[float, SignedRequest]] = BoundedCache(_KEPT_ANSWERS)

    def of(self, request: SignRequest, *, is_repeated: bool = False) -> SignedRequest:
        """The request, signed; anew if the store refused it before."""
        key = (request.method, request.region, request.uri)
        kept = None if is_repeated else self._kept.find(key)
        if kept is not None and time.monotonic() < kept[0]:
            return kept[1]
        signed = self._sign(request)
        if signed.is_reusable:
            self._kept.keep(key, (time.monotonic() + _KEPT_SECONDS, signed))
        return signed
