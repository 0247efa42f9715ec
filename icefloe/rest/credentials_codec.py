"""The bodies of requests to sign and of their answers, both ways: a client asks a catalog to sign what it sends to a store."""

from collections.abc import Mapping

import msgspec

from icefloe.errors import InvalidInputError
from icefloe.metadata.wire_codec import WireStruct, present, read_wire
from icefloe.storage import SignedRequest, SignRequest

METHODS = frozenset({"PUT", "GET", "HEAD", "POST", "DELETE", "PATCH", "OPTIONS"})
"""What can be asked for."""

_S3 = "s3"
_REUSABLE, _ONCE = "private", "no-cache"


class _SignWire(WireStruct):
    region: str
    uri: str
    method: str
    headers: dict[str, list[str]]
    properties: dict[str, str] | None = None
    body: str | None = None
    provider: str | None = None


class _SignedWire(WireStruct):
    uri: str
    headers: dict[str, list[str]]


def encode_sign_request(request: SignRequest, properties: Mapping[str, str] | None = None) -> bytes:
    """The body of a request to sign; properties are those that came with the table, passed back unchanged."""
    return msgspec.json.encode(
        {
            "region": request.region,
            "uri": request.uri,
            "method": request.method,
            "headers": {name: list(values) for name, values in request.headers.items()},
            **present("properties", dict(properties) if properties else None),
            **present("body", request.body),
            "provider": _S3,
        }
    )


def decode_sign_request(body: bytes) -> tuple[SignRequest, Mapping[str, str]]:
    """The request that a client wants to have signed, and the properties that it passes back."""
    wire = read_wire(body, _SignWire, "the request to sign")
    if wire.provider not in (None, _S3):
        raise InvalidInputError(f"requests to {wire.provider!r:.100} cannot be signed; only those to {_S3!r} can")
    if wire.method.upper() not in METHODS:
        raise InvalidInputError(f"{wire.method!r:.100} is not a method that can be signed; known: {sorted(METHODS)}")
    request = SignRequest(wire.method.upper(), wire.region, wire.uri, wire.headers, wire.body)
    return request, wire.properties or {}


def encode_signed_request(signed: SignedRequest) -> bytes:
    """The body of the answer to a request to sign."""
    headers = {name: list(values) for name, values in signed.headers.items()}
    return msgspec.json.encode({"uri": signed.uri, "headers": headers})


def cache_control(signed: SignedRequest) -> str:
    """Whether a client may use the answer again, as a header says it."""
    return _REUSABLE if signed.is_reusable else _ONCE


def decode_signed_request(body: bytes, cache: str | None) -> SignedRequest:
    """The answer to a request to sign, with its header `Cache-Control`."""
    wire = read_wire(body, _SignedWire, "the signed request")
    directives = {directive.strip().lower() for directive in (cache or "").split(",")}
    return SignedRequest(wire.uri, wire.headers, _REUSABLE in directives and not directives & {_ONCE, "no-store"})
