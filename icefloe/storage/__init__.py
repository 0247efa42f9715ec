"""One small protocol for files, over the local disk, memory, object stores and HDFS."""

from icefloe.metadata.locations import is_absolute, relativize, resolve_location
from icefloe.storage.locations import (
    Location,
    LocationMatch,
    absolute_location,
    compare_locations,
    normalize_location,
    parse_location,
    same_location,
)
from icefloe.storage.protocol import FOLDER_MARK, DeleteFailure, FileInfo, Files, OutputStream, Tail
from icefloe.storage.storage import Storage
from icefloe.storage.streams import prefetch

__all__ = [
    "FOLDER_MARK",
    "DeleteFailure",
    "FileInfo",
    "Files",
    "Location",
    "LocationMatch",
    "OutputStream",
    "Storage",
    "Tail",
    "absolute_location",
    "compare_locations",
    "is_absolute",
    "normalize_location",
    "parse_location",
    "prefetch",
    "relativize",
    "resolve_location",
    "same_location",
]
