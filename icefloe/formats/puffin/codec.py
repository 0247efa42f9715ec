"""The JSON of a Puffin footer: which blobs the file holds, and its properties (spec: Puffin, FileMetadata)."""

from typing import Annotated

import msgspec

from icefloe.errors import CorruptFileError, InvalidValueError
from icefloe.formats.puffin.values import BlobMetadata

_Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Size = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_FieldId = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class _Blob(msgspec.Struct, rename="kebab", omit_defaults=True, frozen=True):
    # The order of the fields is the order in which the Java library writes them.
    type: str
    fields: list[_FieldId]
    snapshot_id: _Long
    sequence_number: _Long
    offset: _Size
    length: _Size
    compression_codec: str | None = None
    properties: dict[str, str] | None = None


class _Footer(msgspec.Struct, omit_defaults=True, frozen=True):
    blobs: list[_Blob]
    properties: dict[str, str] | None = None


_DECODER = msgspec.json.Decoder(_Footer)


def footer_to_json(blobs: tuple[BlobMetadata, ...], properties: dict[str, str]) -> bytes:
    """The footer payload, in the form of the Java library."""
    footer = _Footer(
        [
            _Blob(
                blob.type,
                list(blob.fields),
                blob.snapshot_id,
                blob.sequence_number,
                blob.offset,
                blob.length,
                blob.compression_codec,
                blob.properties or None,
            )
            for blob in blobs
        ],
        properties or None,
    )
    try:
        return msgspec.json.encode(footer)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValueError(f"a Puffin footer cannot be written as JSON: {error}") from error


def footer_from_json(payload: bytes, location: str) -> tuple[tuple[BlobMetadata, ...], dict[str, str]]:
    """Blobs and file properties of a footer payload."""
    try:
        footer = _DECODER.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise CorruptFileError(location, f"the Puffin footer is not the JSON that it must be: {error}") from error
    blobs = tuple(
        BlobMetadata(
            blob.type,
            tuple(blob.fields),
            blob.snapshot_id,
            blob.sequence_number,
            blob.offset,
            blob.length,
            blob.compression_codec,
            blob.properties or {},
        )
        for blob in footer.blobs
    )
    return blobs, footer.properties or {}
