"""The opaque texts that plans are continued with: they describe a scan, or a part of one, so that any replica can serve them.

They give no rights: whoever sends one must be allowed to read the table, as for the plan itself, and gets nothing that
another plan would not give. A checksum tells texts of ours from others.
"""

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from hashlib import blake2b
from typing import NoReturn
from uuid import uuid4

import msgspec

from icefloe.errors import InvalidInputError, NoSuchPlanError, NoSuchPlanTaskError
from icefloe.rest import decode_plan_request, encode_plan_request
from icefloe.server.planning.pages import Part
from icefloe.server.planning.scans import PinnedScan

LONGEST_ID = 1500
"""Characters of a plan id, which is part of a path."""
_LONGEST_TASK = 4 << 20
_MOST_BYTES = 16 << 20
_CHECKSUM = 8


@dataclass(frozen=True, slots=True)
class PlanId:
    """What a plan id says: the table, and the scan unless that would be too long."""

    table: str
    scan: PinnedScan | None


class _TextWire(msgspec.Struct, array_like=True):
    """Kind, table, schema, request, and what makes it special: a part, or a number that nothing else has."""

    kind: str
    table: str
    schema_id: int
    request: str | None
    part: tuple[int, int | None, int, int | None] | None
    nonce: str | None = None


def plan_id_of(scan: PinnedScan) -> str:
    """A new id for a plan of the scan."""
    nonce = uuid4().hex
    request = encode_plan_request(scan.request).decode()
    text = _pack(_TextWire("id", scan.table, scan.schema_id, request, None, nonce))
    if len(text) <= LONGEST_ID:
        return text
    return _pack(_TextWire("id", scan.table, scan.schema_id, None, None, nonce))


def read_plan_id(text: str) -> PlanId:
    """What an id says."""
    wire = _unpack(text, LONGEST_ID)
    if wire is None or wire.kind != "id":
        raise NoSuchPlanError(f"there is no plan {text!r:.100}")
    return PlanId(wire.table, _scan(wire))


def plan_task_of(scan: PinnedScan, part: Part) -> str:
    """The text for a part of a plan."""
    request = encode_plan_request(scan.request).decode()
    place = (part.first, part.last, part.start, part.stop)
    return _pack(_TextWire("task", scan.table, scan.schema_id, request, place))


def read_plan_task(text: str) -> tuple[PinnedScan, Part]:
    """What such a text says."""
    wire = _unpack(text, _LONGEST_TASK)
    if wire is None or wire.kind != "task" or wire.part is None:
        no_such_task(text)
    scan = _scan(wire)
    if scan is None:
        no_such_task(text)
    return scan, Part(*wire.part)


def no_such_task(text: str) -> NoReturn:
    """Fail: this is no task of a plan of the table."""
    raise NoSuchPlanTaskError(f"there is no plan task {text!r:.100}")


def _scan(wire: _TextWire) -> PinnedScan | None:
    if wire.request is None:
        return None
    return PinnedScan(wire.table, decode_plan_request(wire.request.encode()), wire.schema_id)


def _pack(wire: _TextWire) -> str:
    data = msgspec.json.encode(wire)
    return urlsafe_b64encode(_checksum(data) + zlib.compress(data)).rstrip(b"=").decode()


def _unpack(text: str, longest: int) -> _TextWire | None:
    if len(text) > longest:
        return None
    try:
        packed = urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(packed[_CHECKSUM:], _MOST_BYTES)
        if not unpacking.eof or unpacking.unused_data or _checksum(data) != packed[:_CHECKSUM]:
            return None
        return msgspec.json.decode(data, type=_TextWire)
    except (Base64Error, zlib.error, msgspec.MsgspecError, InvalidInputError, ValueError):
        return None


def _checksum(data: bytes) -> bytes:
    return blake2b(data, digest_size=_CHECKSUM).digest()
