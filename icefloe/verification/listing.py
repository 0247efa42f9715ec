"""What a listing of the table's folders says of many files at once; a store is asked only for those that it leaves open."""

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from icefloe.errors import IcefloeError
from icefloe.storage import FileInfo, Storage
from icefloe.verification.digest import Numbers

WORTH_IT = 1000
"""A listing has about so many files in one answer: for fewer, asking for each one is as cheap."""

_MORE_THAN_WANTED = 4


class Listing:
    """The sizes of files, by the hash of their location. It only ever says that a file is there; not that one is not."""

    def __init__(self, storage: Storage | None = None, folders: Iterable[str] = (), wanted: int = 0) -> None:
        # A folder may hold much more than the table: then listing it would cost more than it saves.
        most = _MORE_THAN_WANTED * wanted
        found = [] if storage is None else list(islice(_sizes(storage, folders), most))
        pairs = np.array(found, np.int64).reshape(-1, 2)
        order = np.argsort(pairs[:, 0], kind="stable")
        self._locations: Numbers = pairs[order, 0]
        self._lengths: Numbers = pairs[order, 1]

    def has(self, location: str, length: int | None) -> bool:
        """Whether the file was listed with that length."""
        wanted = hash(location)
        at = int(np.searchsorted(self._locations, wanted))
        if at >= len(self._locations) or self._locations[at] != wanted:
            return False
        return length is None or int(self._lengths[at]) == length


def _sizes(storage: Storage, folders: Iterable[str]) -> Iterator[tuple[int, int]]:
    chosen = list(folders)
    for folder in chosen:
        # One that is inside of another is listed with it.
        if any(other != folder and folder.startswith(other) for other in chosen):
            continue
        try:
            each: FileInfo
            for each in storage.list_prefix(folder):
                yield hash(each.location), each.size
        except IcefloeError:
            continue
