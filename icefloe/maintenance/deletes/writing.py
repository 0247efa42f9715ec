"""How deletes by position reach files: vectors in Puffin files, or position delete files, each with its entry of a manifest."""

from collections.abc import Iterable, Sequence

from icefloe import manifests as mf, metadata as md, partitioning as pt, properties as props
from icefloe.data import NewFile, NewLocations, data_file_of
from icefloe.formats.deletion_vector_codec import StoredVector, copy_deletion_vectors, write_deletion_vectors
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.formats.position_deletes import write_position_deletes
from icefloe.storage import Storage

PUFFIN = "puffin"
Deleted = Iterable[tuple[mf.DataFile, DeletionVector]]
"""Rows of data files, by position."""


class DeleteWriter:
    """Writes the delete files of one unit of work, which `unique` tells from all others."""

    def __init__(self, metadata: md.TableMetadata, storage: Storage, unique: str) -> None:
        self._metadata = metadata
        self._storage = storage
        self._locations = NewLocations(metadata, unique)

    def vectors(self, deleted: Deleted) -> list[mf.DataFile]:
        """Vectors in one Puffin file, in the order given; none if nothing is deleted."""
        listed = list(deleted)
        if not listed:
            return []
        for file, vector in listed:
            vector.check_rows(file.record_count)
        data, stored = write_deletion_vectors(
            {file.file_path: vector for file, vector in listed}, self._metadata.writes_relative_to
        )
        return self._puffin(data, stored, [file for file, _ in listed])

    def copies(self, vectors: Sequence[mf.DataFile]) -> list[mf.DataFile]:
        """Vectors of other Puffin files in one of their own, byte for byte."""
        blobs = (
            (
                vector.referenced_data_file or "",
                mf.range_reader(vector, self._storage)(vector.content_offset or 0, vector.content_size_in_bytes or 0),
                vector.record_count,
                vector.file_path,
            )
            for vector in vectors
        )
        data, stored = copy_deletion_vectors(blobs, self._metadata.writes_relative_to)
        return self._puffin(data, stored, vectors)

    def positions(self, deleted: Deleted) -> mf.DataFile:
        """A position delete file of data files of one partition."""
        listed = list(deleted)
        first, properties = listed[0][0], self._metadata.properties
        file_format = props.WRITE_DELETE_FORMAT.of(properties) or props.WRITE_FORMAT.of(properties)
        spec = self._metadata.spec(first.spec_id)
        location = self._locations.next(spec, first.partition, file_format, "-deletes")
        rows = {file.file_path: vector for file, vector in listed}
        with self._storage.open_output(location) as output:
            new = NewFile(output, file_format, self._metadata)
            done = write_position_deletes(new.sink, rows, self._metadata.format_version, file_format, properties)
            stored, key_metadata = new.finish(done.file)
        return data_file_of(
            stored,
            location,
            file_format,
            content=mf.FileContent.POSITION_DELETES,
            spec_id=first.spec_id,
            partition=first.partition,
            referenced_data_file=done.referenced_data_file,
            key_metadata=key_metadata,
        )

    def _puffin(self, data: bytes, stored: Sequence[StoredVector], of: Sequence[mf.DataFile]) -> list[mf.DataFile]:
        """The entries of a Puffin file; each vector is of the partition of the file that it is made of."""
        location = self._locations.next(pt.UNPARTITIONED, (), PUFFIN, "-deletes")
        sealed, key_metadata = mf.sealed_file(data, self._metadata)
        self._storage.write(location, sealed)
        return [
            mf.DataFile(
                location,
                PUFFIN,
                blob.cardinality,
                len(sealed),
                mf.FileContent.POSITION_DELETES,
                file.spec_id,
                file.partition,
                referenced_data_file=blob.referenced_data_file,
                content_offset=blob.offset,
                content_size_in_bytes=blob.length,
                key_metadata=key_metadata,
            )
            for blob, file in zip(stored, of, strict=True)
        ]
