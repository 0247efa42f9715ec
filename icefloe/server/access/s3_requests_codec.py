"""Decides what a request to S3 does, from its method, address, headers and body; what is not known to be harmless is refused.

An address is decoded once, as S3 does it, and written anew from its parts, so that what is signed is what was checked. Names
that a store or a proxy might resolve (`.`, `..`, also when decoded twice), parameters and headers beyond those that readers and
writers of tables need, copies from elsewhere among them, are errors.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from urllib.parse import unquote_to_bytes, urlsplit
from xml.etree.ElementTree import ParseError

from icefloe.errors import ForbiddenError, InvalidInputError
from icefloe.storage import SignRequest, s3_codec as s3

Query = Mapping[str, str]

_OPERATION = "x-id"
_DELETE, _UPLOADS, _UPLOAD, _PART = "delete", "uploads", "uploadId", "partNumber"
_PREFIX = "prefix"
_LISTING = frozenset(
    {
        "list-type",
        _PREFIX,
        "delimiter",
        "continuation-token",
        "start-after",
        "marker",
        "max-keys",
        "encoding-type",
        "fetch-owner",
    }
)
_LIST_PARTS = frozenset({_UPLOAD, "max-parts", "part-number-marker"})
_SIGNED_HEADERS = re.compile(
    r"content-md5|content-type|content-encoding|x-amz-(checksum-.+|sdk-checksum-algorithm|trailer|decoded-content-length"
    r"|server-side-encryption(-aws-kms-key-id|-bucket-key-enabled|-context)?|storage-class|request-payer|meta-.+"
    r"|expected-bucket-owner|tagging)"
)
_UNSIGNED_HEADERS = re.compile(
    r"host|range|if-.+|accept|accept-encoding|user-agent|content-length|expect|connection|cache-control|authorization"
    r"|amz-sdk-.+|x-amz-date|x-amz-security-token|x-amz-content-sha256|x-amz-user-agent|x-amz-te|date|transfer-encoding"
    r"|traceparent|tracestate|x-amzn-trace-id"
)
_PAYLOADS = re.compile(r"UNSIGNED-PAYLOAD|STREAMING-UNSIGNED-PAYLOAD-TRAILER|[0-9a-f]{64}")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ODD_IN_URI = re.compile(r"[^!-~]|[\\\"<>^`{|}]")
_ENCODING = re.compile(r"<\?xml[^>]*\bencoding\s*=\s*[\"']([^\"'>]*)")
_AMAZON = re.compile(r"(?:(?P<bucket>.+)\.)?s3(?:[.-](?P<region>[a-z0-9-]+))?\.amazonaws\.com(?:\.cn)?")


class Effect(Enum):
    """What a request does with the keys that it names."""

    READ = "read"
    LIST = "list"
    """Names what begins with the key."""
    WRITE = "write"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class S3Request:
    """A request that was understood: what it does, in which bucket and with which keys, and how it is written."""

    effect: Effect
    bucket: str
    keys: tuple[str, ...]
    uri: str
    headers: Mapping[str, str]
    """Those that are signed."""
    payload: str
    """The hash of the body, or why there is none."""


def parse_request(request: SignRequest, endpoint: str | None) -> S3Request:
    """What a request does at an endpoint, or at Amazon; InvalidInputError or ForbiddenError if it is none to be signed."""
    base, bucket, key, query = _address(request.uri, endpoint)
    effect, keys = _effect(request, key, query)
    headers, payload = _headers(request)
    if request.body is not None and not key:
        # The very body that was looked at, and no other.
        payload = hashlib.sha256(request.body.encode()).hexdigest()
    uri = s3.target(base, key, tuple(query.items()))
    return S3Request(effect, bucket, keys, uri, headers, payload)


def _address(uri: str, endpoint: str | None) -> tuple[str, str, str, Query]:
    """The address of the bucket, the bucket, the key, and the parameters, decoded."""
    if _ODD_IN_URI.search(uri):
        raise InvalidInputError("the uri to sign has characters that must be percent-encoded")
    parts = urlsplit(uri)
    if parts.fragment or "#" in uri or "@" in parts.netloc:
        raise InvalidInputError("the uri to sign has a user or a fragment")
    root, bucket = _host(f"{parts.scheme}://{parts.netloc}", endpoint)
    rest = parts.path
    if root is not None and bucket is None and rest.startswith(f"{urlsplit(root).path}/"):
        first, slash, after = rest[len(urlsplit(root).path) + 1 :].partition("/")
        bucket, rest = _decoded(first), f"{slash}{after}"
        root = f"{root}/{bucket}"
    if root is None or bucket is None or not _BUCKET.fullmatch(bucket):
        raise ForbiddenError("the uri to sign is not one of the store of this warehouse")
    key = _decoded(rest.removeprefix("/"))
    _check_names(key)
    return root, bucket, key, _query(parts.query)


def _host(origin: str, endpoint: str | None) -> tuple[str | None, str | None]:
    """The root of a store, and the bucket if the host names it; no root if it is another store."""
    if endpoint is not None:
        known = urlsplit(endpoint)
        if origin.lower() == f"{known.scheme}://{known.netloc}".lower():
            return endpoint.rstrip("/"), None
        scheme, _, host = origin.partition("://")
        bucket = host.lower().removesuffix(f".{known.netloc.lower()}")
        is_bucket = scheme == known.scheme and bucket != host.lower() and not known.path.strip("/")
        return (origin, bucket) if is_bucket else (None, None)
    match = _AMAZON.fullmatch(origin.removeprefix("https://").lower()) if origin.startswith("https://") else None
    return (None, None) if match is None else (origin, match["bucket"])


def _decoded(text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise InvalidInputError("the uri to sign is not percent-encoded UTF-8") from None


def _check_names(key: str) -> None:
    for text in (key, unquote_to_bytes(key).decode(errors="replace")):
        if "\0" in text or any(name in (".", "..") for name in re.split(r"[/\\]", text)):
            raise ForbiddenError("the uri to sign has a `.` or `..`")


def _query(text: str) -> Query:
    query: dict[str, str] = {}
    for part in filter(None, text.split("&")):
        name, _, value = (_decoded(piece) for piece in part.partition("="))
        if name in query:
            raise InvalidInputError(f"the uri to sign has the parameter {name!r:.100} twice")
        query[name] = value
    return query


def _effect(request: SignRequest, key: str, query: Query) -> tuple[Effect, tuple[str, ...]]:
    names = frozenset(query) - {_OPERATION}
    if not key:
        return _of_bucket(request, names, query)
    match request.method:
        case "GET" | "HEAD" if names <= {_PART, "versionId"}:
            return Effect.READ, (key,)
        case "GET" if _UPLOAD in names and names <= _LIST_PARTS:
            return Effect.WRITE, (key,)
        case "PUT" if not names or names == {_UPLOAD, _PART}:
            return Effect.WRITE, (key,)
        case "POST" if names in ({_UPLOADS}, {_UPLOAD}):
            return Effect.WRITE, (key,)
        case "DELETE" if not names or names == {_UPLOAD}:
            return Effect.DELETE, (key,)
        case _:
            raise _unknown(request.method, names)


def _of_bucket(request: SignRequest, names: frozenset[str], query: Query) -> tuple[Effect, tuple[str, ...]]:
    match request.method:
        case "GET" if _PREFIX in names and names <= _LISTING and query.get("list-type", "2") in ("1", "2"):
            _check_names(query[_PREFIX])
            return Effect.LIST, (query[_PREFIX],)
        case "POST" if names == {_DELETE}:
            return Effect.DELETE, _deleted(request.body)
        case _:
            raise _unknown(request.method, names)


def _deleted(body: str | None) -> tuple[str, ...]:
    if not body:
        raise InvalidInputError("a deletion of several objects is signed only with its body, whose keys are checked")
    encoding = _ENCODING.search(body)
    if "<!" in body or (encoding is not None and encoding[1].lower() != "utf-8"):
        raise InvalidInputError("the body to sign has declarations, or another encoding than UTF-8")
    try:
        keys = s3.decode_deletion(body.encode())
    except (ParseError, ValueError) as error:
        raise InvalidInputError(f"the body to sign does not say which objects to delete: {error}") from None
    for key in keys:
        _check_names(key)
    return tuple(keys)


def _unknown(method: str, names: frozenset[str]) -> ForbiddenError:
    shown = ", ".join(sorted(names))[:200] or "no parameters"
    return ForbiddenError(f"{method} with {shown} is not among the requests to a table's files")


def _headers(request: SignRequest) -> tuple[dict[str, str], str]:
    """The headers to sign, and the hash of the payload that the client states."""
    signed: dict[str, str] = {}
    payload = s3.UNSIGNED_PAYLOAD
    for name, values in request.headers.items():
        lower, value = name.lower(), ",".join(values)
        if lower == s3.CONTENT_HASH and _PAYLOADS.fullmatch(value):
            payload = value
        elif _SIGNED_HEADERS.fullmatch(lower):
            signed[lower] = value
        elif not _UNSIGNED_HEADERS.fullmatch(lower) and lower.startswith("x-"):
            raise ForbiddenError(f"the header {name!r:.100} is not among those of requests to a table's files")
    if any(not (character == "\t" or " " <= character <= "~") for value in signed.values() for character in value):
        raise InvalidInputError("a header of the request to sign has characters that headers cannot have")
    return signed, payload
