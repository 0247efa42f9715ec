"""Where new data and delete files of a table go, and what they are called.

The property `write.data.path` moves them; `write.object-storage.enabled` puts a hash before their path, so that object stores
spread them (the same one as the Java library's).
"""

import threading

import mmh3

from icefloe import errors, metadata as md, partitioning as pt, properties as props
from icefloe.schema import Value

_HASH_BITS = 20
_FOLDER_BITS = 4
_FOLDERS = 3


class NewLocations:
    """Locations of the files of one write, numbered from 0; threads share it. `unique` distinguishes the write from all others."""

    def __init__(self, metadata: md.TableMetadata, unique: str) -> None:
        self._metadata = metadata
        self._unique = unique
        self._folder = data_folder(metadata)
        self._next = 0
        self._lock = threading.Lock()

    def next(self, spec: pt.PartitionSpec, partition: tuple[Value, ...], extension: str, suffix: str = "") -> str:
        """The location of one more file: `<folder>/<partition path>/<number>-<unique><suffix>.<extension>`."""
        with self._lock:
            number, self._next = self._next, self._next + 1
        name = f"{number:05d}-{self._unique}{suffix}.{extension}"
        folder = pt.partition_path(spec, partition, self._metadata.schema()) if spec.fields else ""
        properties = self._metadata.properties
        if props.OBJECT_STORAGE_ENABLED.of(properties):
            return self._hashed(name, folder, props.OBJECT_STORAGE_PARTITIONED_PATHS.of(properties))
        return "/".join(part for part in (self._folder, folder, name) if part)

    def _hashed(self, name: str, folder: str, with_partition: bool) -> str:
        path = f"{folder}/{name}" if folder and with_partition else name
        entropy = entropy_folders(path)
        location = self._metadata.location or ""
        if not self._folder.startswith(location):
            context = "/".join(location.rstrip("/").split("/")[-2:])
            return f"{self._folder}/{entropy}/{context}/{path}"
        return f"{self._folder}/{entropy}{'/' if with_partition else '-'}{path}"


def data_folder(metadata: md.TableMetadata) -> str:
    """The folder of all data files of a table, without a slash at its end."""
    path = props.DATA_PATH.of(metadata.properties)
    if path is not None:
        return md.strip_trailing_slash(md.resolve_location(metadata.location, path))
    if metadata.location is None:
        raise errors.InvalidLocationError(
            "the table has no location, so nothing can be written; its catalog must supply one"
        )
    return f"{md.strip_trailing_slash(metadata.location)}/data"


def entropy_folders(path: str) -> str:
    """The hash of a path as folders of bits: `0101/0110/1001/10110010`."""
    bits = f"{mmh3.hash(path, 0, signed=False) & (2**_HASH_BITS - 1):0{_HASH_BITS}b}"
    cut = _FOLDERS * _FOLDER_BITS
    return "/".join([*(bits[i : i + _FOLDER_BITS] for i in range(0, cut, _FOLDER_BITS)), bits[cut:]])
