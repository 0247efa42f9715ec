"""Deletion vectors as they are read from Puffin files: one, or many with few requests."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

from icefloe import errors, manifests as mf, parallel
from icefloe.formats.deletion_vector_codec import read_vector
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.storage import Storage, is_same_file

_MOST_BYTES = 8 << 20
"""How much is read by one request, unless a single vector is longer."""
_WIDEST_GAP = 64 << 10
"""How many bytes that nobody asked for are read rather than to ask once more."""


@dataclass(frozen=True, slots=True)
class VectorPlace:
    """Where the vector of a data file is, and what its manifest says of it."""

    location: str
    offset: int
    length: int
    cardinality: int
    row_count: int
    file: mf.DataFile = field(compare=False, repr=False)
    """The Puffin file, as an entry of the vector."""

    @classmethod
    def of(cls, deletes: mf.DataFile, file: mf.DataFile) -> "VectorPlace":
        """The place of a vector that is planned for a data file."""
        location, offset, length = deletes.file_path, deletes.content_offset, deletes.content_size_in_bytes
        if offset is None or length is None:
            raise errors.CorruptFileError(location, "its manifest does not say where in it the deletion vector is")
        if not is_same_file(deletes.referenced_data_file, file.file_path):
            raise errors.CorruptFileError(
                location, f"a deletion vector of {deletes.referenced_data_file} is planned for {file.file_path}"
            )
        return cls(location, offset, length, deletes.record_count, file.record_count, deletes)

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.offset + self.length


def read_one_vector(place: VectorPlace, storage: Storage) -> DeletionVector:
    """The vector at a place."""
    return _read(mf.range_reader(place.file, storage), place)


def read_vectors(
    places: Iterable[VectorPlace], storage: Storage, workers: int
) -> Iterator[tuple[VectorPlace, DeletionVector]]:
    """The vectors at these places, in no particular order, by as few requests as do not read much more."""

    def read(stretch: Sequence[VectorPlace]) -> list[tuple[VectorPlace, DeletionVector]]:
        reader = mf.range_reader(stretch[0].file, storage)
        if stretch[1:]:
            start = stretch[0].offset
            data = reader(start, max(place.end for place in stretch) - start)
            reader = partial(_part, data, start)
        return [(place, _read(reader, place)) for place in stretch]

    for vectors in parallel.in_order(read, list(_stretches(places)), workers, "icefloe-vectors"):
        yield from vectors


def _read(reader: Callable[[int, int], bytes], place: VectorPlace) -> DeletionVector:
    return read_vector(
        reader,
        place.offset,
        place.length,
        place.location,
        cardinality=place.cardinality,
        row_count=place.row_count,
    )


def _part(data: bytes, start: int, offset: int, length: int) -> bytes:
    return data[offset - start : offset - start + length]


def _stretches(places: Iterable[VectorPlace]) -> Iterator[list[VectorPlace]]:
    """Places of one file that are near each other, at most so many bytes together; one that cannot be right is alone."""
    stretch: list[VectorPlace] = []
    end = 0
    for place in sorted(places, key=attrgetter("location", "offset")):
        is_near = stretch and place.location == stretch[0].location and place.offset <= end + _WIDEST_GAP
        if is_near and place.offset >= 0 <= place.length and place.end <= stretch[0].offset + _MOST_BYTES:
            stretch.append(place)
        else:
            if stretch:
                yield stretch
            stretch, end = [place], place.offset
        end = max(end, place.end)
    if stretch:
        yield stretch
