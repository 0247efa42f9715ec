"""The words of S3's protocol: parameters and headers of requests, and the XML of bodies and answers, both ways."""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from urllib.parse import quote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

CONTENT_HASH = "x-amz-content-sha256"
UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
RANGE, SIZE = "range", "content-length"
ONLY_IF_ABSENT: Mapping[str, str] = {"if-none-match": "*"}
NEW_UPLOAD: tuple[tuple[str, str], ...] = (("uploads", ""),)
DELETE_MANY: tuple[tuple[str, str], ...] = (("delete", ""),)
NO_SUCH_BUCKET, NO_SUCH_KEY = "NoSuchBucket", "NoSuchKey"
_CONTENT_RANGE = re.compile(r"bytes (?:\d+-\d+|\*)/(\d+)")
_NOT_IN_XML = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """An object of a listing."""

    key: str
    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a listing: objects, common prefixes, and how to ask for the next page."""

    entries: tuple[Entry, ...]
    prefixes: tuple[str, ...]
    token: str | None


def target(base: str, key: str, query: Sequence[tuple[str, str]] = ()) -> str:
    """The address of a key beneath that of its bucket, encoded as S3 signs it."""
    parameters = "&".join(f"{_encoded(name)}={_encoded(value)}" for name, value in sorted(query))
    return f"{base}/{quote(key, safe='/-_.~')}" + (f"?{parameters}" if parameters else "")


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")


def part_query(upload: str, number: int) -> tuple[tuple[str, str], ...]:
    """The parameters of one part of an upload."""
    return ("partNumber", str(number)), *upload_query(upload)


def upload_query(upload: str) -> tuple[tuple[str, str], ...]:
    """The parameters of an upload as a whole."""
    return (("uploadId", upload),)


def list_query(prefix: str, *, deep: bool, token: str | None) -> tuple[tuple[str, str], ...]:
    """The parameters of a page of a listing, of all objects or of those before the next slash."""
    query = [("list-type", "2"), ("prefix", prefix)]
    if not deep:
        query.append(("delimiter", "/"))
    if token is not None:
        query.append(("continuation-token", token))
    return tuple(query)


def byte_range(offset: int, length: int) -> dict[str, str]:
    """The header of a ranged read."""
    return {RANGE: f"bytes={offset}-{offset + length - 1}"}


def last_bytes(length: int) -> dict[str, str]:
    """The header of a read of the end."""
    return {RANGE: f"bytes=-{length}"}


def whole_size(headers: Mapping[str, str]) -> int | None:
    """The size of the object that an answer is a part of."""
    match = _CONTENT_RANGE.fullmatch(headers.get("content-range", ""))
    text = match[1] if match else headers.get(SIZE, "")
    return int(text) if text.isdigit() else None


def modified_ms(headers: Mapping[str, str]) -> int:
    """When the object was written, in milliseconds since 1970."""
    text = headers.get("last-modified")
    return round(parsedate_to_datetime(text).timestamp() * 1000) if text else 0


def tag(headers: Mapping[str, str]) -> str:
    """The entity tag of a part."""
    return headers.get("etag", "")


def fits_xml(key: str) -> bool:
    """Whether a key can be named in a body."""
    return _NOT_IN_XML.search(key) is None and "\r" not in key


def encode_deletion(keys: Iterable[str]) -> str:
    """The body of a request that deletes many objects; only failures are to be told."""
    objects = "".join(f"<Object><Key>{escape(key)}</Key></Object>" for key in keys)
    return f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Quiet>true</Quiet>{objects}</Delete>'


def deletion_headers(body: bytes) -> dict[str, str]:
    """The headers of such a request."""
    digest = hashlib.md5(body, usedforsecurity=False).digest()
    return {"content-md5": base64.b64encode(digest).decode(), "content-type": "application/xml"}


def decode_deletion(body: bytes) -> list[str]:
    """The keys that a request is to delete; ValueError for anything that another reader might understand otherwise."""
    root = ElementTree.fromstring(body)
    if _name(root) != "Delete" or any(_name(child) not in ("Object", "Quiet") for child in root):
        raise ValueError("not a deletion of objects")
    objects = [list(child) for child in root if _name(child) == "Object"]
    if not objects or any([_name(part) for part in parts] != ["Key"] for parts in objects):
        raise ValueError("an object without exactly one key, or with more than that")
    if any(len(parts[0]) or not parts[0].text for parts in objects):
        raise ValueError("a key that is not a text")
    return [parts[0].text or "" for parts in objects]


def decode_failures(body: bytes) -> dict[str, str]:
    """What the answer to such a request tells: for each key that is still there, why."""
    errors = [child for child in ElementTree.fromstring(body) if _name(child) == "Error"]
    return {_text(error, "Key"): f"{_text(error, 'Code')}: {_text(error, 'Message')}" for error in errors}


def encode_parts(tags: Sequence[str]) -> bytes:
    """The body that completes an upload."""
    parts = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(part)}</ETag></Part>"
        for number, part in enumerate(tags, 1)
    )
    return f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()


def decode_upload(body: bytes) -> str:
    """The id of a new upload."""
    return _text(ElementTree.fromstring(body), "UploadId")


def decode_listing(body: bytes) -> Listing:
    """A page of a listing."""
    root = ElementTree.fromstring(body)
    entries = [
        Entry(_text(child, "Key"), int(_text(child, "Size")), _milliseconds(_text(child, "LastModified")))
        for child in root
        if _name(child) == "Contents"
    ]
    prefixes = [_text(child, "Prefix") for child in root if _name(child) == "CommonPrefixes"]
    return Listing(tuple(entries), tuple(prefixes), _text(root, "NextContinuationToken") or None)


def decode_problem(body: bytes) -> tuple[str, str]:
    """Code and message of an error; empty texts of a body that is none."""
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        return "", ""
    return (_text(root, "Code"), _text(root, "Message")) if _name(root) == "Error" else ("", "")


def encryption_headers(config: Mapping[str, str | bool]) -> dict[str, str]:
    """The headers of a write that the store is to encrypt, by a key of its own."""
    names = {"server_side_encryption": "x-amz-server-side-encryption"}
    names["sse_kms_key_id"] = f"{names['server_side_encryption']}-aws-kms-key-id"
    return {names[key]: str(value) for key, value in config.items()}


def _milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _text(element: ElementTree.Element, name: str) -> str:
    return next((child.text or "" for child in element if _name(child) == name), "")
