"""What a Puffin file holds: blobs, the metadata of blobs, and the footer that lists them."""

from collections.abc import Callable
from dataclasses import dataclass, field

ReadRange = Callable[[int, int], bytes]
"""Reads `(offset, length)` of a file; fewer bytes than asked for mean that the file ends there."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Content to be written, and what is to be said of it."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    data: bytes
    compression_codec: str | None = None
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BlobMetadata:
    """Where a blob is in its file, and what it is; `length` is that of the bytes as stored."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    compression_codec: str | None = None
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PuffinFooter:
    """All blobs of a file in the order of the footer; `size` is the whole footer's, both of its magics included."""

    blobs: tuple[BlobMetadata, ...]
    properties: dict[str, str]
    size: int
