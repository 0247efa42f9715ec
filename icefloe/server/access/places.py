"""Decides which places of a store belong to a table, so that credentials and signatures for it reach no other.

A place is a folder of its own: it ends with a slash, so that `t1` never covers `t10`. Metadata says where a table's files are,
and whoever may change a table writes that; so a place counts only beneath the folder of the table's namespace, or beneath a
location that the operator allows, and not in the folder of another table of that namespace, or of a namespace in it.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from icefloe import properties as props
from icefloe.catalog import Identifier, show
from icefloe.errors import InvalidLocationError
from icefloe.metadata import TableMetadata, resolve_location
from icefloe.storage import is_beneath, parse_location

logger = logging.getLogger("icefloe.server")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of a bucket."""

    bucket: str
    prefix: str
    """Ends with a slash, and is never empty."""
    scheme: str = "s3"
    root: str = field(default="", compare=False)
    """What stands before the prefix, as the table spells it."""

    def has(self, key: str) -> bool:
        """Whether a key, taken literally, is in the folder."""
        return key.startswith(self.prefix)

    def __str__(self) -> str:
        return f"{self.root or f'{self.scheme}://{self.bucket}'}/{self.prefix}"


@dataclass(frozen=True, slots=True)
class Territory:
    """Where the tables of a warehouse may have their files."""

    folder_of: Callable[[Identifier], str | None]
    """The folder of a namespace, by its name alone."""
    pointer_of: Callable[[Identifier], str | None]
    """Where the metadata file of a table is; None if there is no such table."""
    has_namespace: Callable[[Identifier], bool]
    allowed: Sequence[str] = ()
    """Locations beneath which any table may have its files."""

    def places(self, identifier: Identifier, metadata: TableMetadata) -> tuple[Place, ...]:
        """The folders of a table in object stores; those that it may not have are left out, with a word in the log."""
        places: list[Place] = []
        for location in _folders(metadata):
            place = _place(location)
            if place is None:
                continue
            if not self._may_have(identifier, location, place):
                logger.warning("no access is given to %s: table %s may not have files there", place, show(identifier))
            elif place not in places:
                places.append(place)
        return tuple(place for place in places if not any(_is_within(place, other) for other in places))

    def _may_have(self, identifier: Identifier, location: str, place: Place) -> bool:
        if any(is_beneath(root, location) for root in self.allowed):
            return True
        folder = self.folder_of(identifier[:-1])
        if folder is None or not is_beneath(folder, location):
            return False
        return not self._is_anothers(identifier, folder, place)

    def _is_anothers(self, identifier: Identifier, folder: str, place: Place) -> bool:
        """Whether the folder that the place is in has the name of another table, which is at home there, or of a namespace."""
        start = f"{parse_location(folder).key.rstrip('/')}/".lstrip("/")
        first = place.prefix.removeprefix(start).partition("/")[0]
        other = (*identifier[:-1], unquote(first))
        if self.has_namespace(other):
            # Its tables are in there, also if this table has the same name.
            return True
        pointer = None if other == identifier else self.pointer_of(other)
        return pointer is not None and is_beneath(f"{folder.rstrip('/')}/{first}", pointer)


def _folders(metadata: TableMetadata) -> Iterator[str]:
    """The location of the table, and the others that its properties name."""
    if metadata.location is None:
        return
    yield metadata.location
    for known in (props.METADATA_PATH, props.DATA_PATH, props.OBJECT_STORAGE_PATH, props.FOLDER_STORAGE_PATH):
        path = known.of(metadata.properties)
        if path is not None:
            yield resolve_location(metadata.location, path)


def _place(location: str) -> Place | None:
    """The folder of an object store that a location names; None of others, and of one whose names could mislead a store."""
    try:
        parsed = parse_location(location)
    except InvalidLocationError:
        return None
    if parsed.scheme in ("file", "memory", "hdfs"):
        return None
    prefix = f"{parsed.key.rstrip('/')}/"
    names = prefix[:-1].split("/")
    if any(name in ("", ".", "..") for name in names):
        return None
    return Place(parsed.authority, prefix, parsed.scheme, parsed.root)


def _is_within(place: Place, other: Place) -> bool:
    return place != other and (place.scheme, place.bucket) == (other.scheme, other.bucket) and other.has(place.prefix)
