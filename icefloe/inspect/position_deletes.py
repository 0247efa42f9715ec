"""The metadata table of position deletes: a row for each row that a delete file or a deletion vector deletes."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, expressions as ex, manifests as mf, parallel
from icefloe.formats.deletion_vector_codec import read_vector
from icefloe.formats.file_formats import reader_of
from icefloe.inspect.entries import partition_column, repeated
from icefloe.inspect.pruning import KnownValues, SourcedManifest, manifests_to_read, partition_field_ids
from icefloe.inspect.request import MetadataRequest
from icefloe.inspect.schemas import table_partition_type
from icefloe.schema import Schema, StructType, reserved, schema_to_arrow, types
from icefloe.versions import Feature, allows

_BATCH_ROWS = 1 << 16
_SMALL_ROWS = 1 << 17
"""Files of no more rows are read ahead as a whole, others while their rows are asked for."""

_BOUNDS_OF = (reserved.DELETE_FILE_PATH.field_id, reserved.DELETE_FILE_POS.field_id)


@dataclass(frozen=True, slots=True, eq=False)
class _DeleteFile:
    """A delete file, its row of the manifest, and the snapshot that it is read of."""

    file: mf.DataFile
    columns: mf.ManifestColumns
    snapshot_id: int


def position_delete_batches(request: MetadataRequest) -> Generator[pa.RecordBatch, None, None]:
    """The deleted positions, file by file."""
    rows = DeleteRows(request)
    found = parallel.in_order(rows.files, delete_manifests(request), request.workers)
    parts = parallel.in_order(rows.ahead, chain.from_iterable(found), request.workers)
    try:
        for part in parts:
            yield from request.narrowed(part)
    finally:
        parts.close()
        found.close()


def delete_manifests(request: MetadataRequest) -> list[SourcedManifest]:
    """The manifests that may hold wanted delete files."""
    partition = table_partition_type(request.metadata)
    return manifests_to_read(request, partition, lambda manifest: manifest.content is mf.ManifestContent.DELETES)


@dataclass(frozen=True)
class DeleteRows:
    """From a delete manifest to its files, and from these to rows; runs in threads."""

    request: MetadataRequest

    @cached_property
    def partition(self) -> StructType:
        """The partition type of the table."""
        return table_partition_type(self.request.metadata)

    @cached_property
    def _names(self) -> frozenset[str]:
        schemas = (self.request.projection, self.request.filter_schema)
        return frozenset(field.name for schema in schemas for field in schema.fields)

    @cached_property
    def _arrow_schema(self) -> pa.Schema:
        fields = [field for field in self.request.schema.fields if field.name in self._names]
        return schema_to_arrow(Schema(*fields), ids=False)

    def files(self, sourced: SourcedManifest) -> list[_DeleteFile]:
        """The position delete files and vectors of a manifest that may hold a row that matches."""
        source, manifest = sourced
        wanted = mf.Wanted(
            mf.ALL_COLUMNS, True, frozenset((mf.Metric.LOWER_BOUNDS, mf.Metric.UPPER_BOUNDS)), _BOUNDS_OF
        )
        columns = source.read(manifest, wanted)
        is_position = pc.equal(columns.column("content"), int(mf.FileContent.POSITION_DELETES))
        columns = columns.filter(pc.and_(columns.is_live, is_position))
        if self.request.is_filtered:
            columns = columns.filter(ex.might_match(self.request.bound, self._known(columns)))
        return [
            _DeleteFile(file, columns.slice(row, 1), source.snapshot_id) for row, file in enumerate(columns.files())
        ]

    def _known(self, columns: mf.ManifestColumns) -> KnownValues:
        """What is known of the rows of each file."""
        schema = self.request.schema
        exact = {
            schema.find_id("spec_id"): repeated(columns.spec_id, len(columns), pa.int32()),
            schema.find_id("delete_file_path"): columns.column("file_path"),
            schema.find_id("content_offset"): columns.column("content_offset"),
            schema.find_id("content_size_in_bytes"): columns.column("content_size_in_bytes"),
        }
        if self.partition.fields:
            field_ids = partition_field_ids(schema, self.partition, "partition").values()
            exact.update(zip(field_ids, partition_column(columns, self.partition).flatten(), strict=True))
        known = {field_id: (values, values) for field_id, values in exact.items() if field_id is not None}
        for field_id, field_type in zip(_BOUNDS_OF, (types.StringType(), types.LongType()), strict=True):
            lower, upper = columns.lower_bounds(field_id, field_type), columns.upper_bounds(field_id, field_type)
            if lower is not None and upper is not None and not self._is_relative:
                known[field_id] = (lower, upper)
        if reserved.DELETE_FILE_PATH.field_id in known:
            # The bounds of vectors are those of the one file that they are about.
            about = columns.column("referenced_data_file")
            lower, upper = known[reserved.DELETE_FILE_PATH.field_id]
            known[reserved.DELETE_FILE_PATH.field_id] = (pc.coalesce(about, lower), pc.coalesce(about, upper))
        return KnownValues(len(columns), known)

    @property
    def _is_relative(self) -> bool:
        return allows(self.request.metadata.format_version, Feature.RELATIVE_PATHS)

    def ahead(self, deletes: _DeleteFile) -> Iterator[pa.RecordBatch]:
        """The rows of a file; those of a small one are read at once."""
        rows = self._batches(deletes)
        return iter(list(rows)) if deletes.file.record_count <= _SMALL_ROWS else rows

    def _batches(self, deletes: _DeleteFile) -> Iterator[pa.RecordBatch]:
        try:
            yield from map(partial(self._batch, deletes), self._rows(deletes.file))
        except (errors.CorruptFileError, errors.StorageError) as error:
            raise mf.error_of_snapshot(error, deletes.snapshot_id) from error

    def _rows(self, file: mf.DataFile) -> Iterator[pa.RecordBatch]:
        """Batches of paths and positions, and of deleted rows where these are wanted and there are some."""
        if file.is_deletion_vector:
            yield from self._vector(file)
            return
        names = ("row",) if "row" in self._names else ()
        fields = [self.request.schema.find_field(name) for name in ("file_path", "pos", *names)]
        with mf.open_file(file, self.request.storage) as source:
            reader = reader_of(file.file_format)(source, file.file_path, Schema(*fields))
            for batch in reader.batches(batch_rows=_BATCH_ROWS):
                for name in ("file_path", "pos"):
                    if batch.column(name).null_count:
                        raise errors.CorruptFileError(file.file_path, f"some of its rows have no {name}")
                yield batch

    def _vector(self, file: mf.DataFile) -> Iterator[pa.RecordBatch]:
        about, offset, size = file.referenced_data_file, file.content_offset, file.content_size_in_bytes
        if about is None or offset is None or size is None:
            raise errors.CorruptFileError(
                file.file_path, "its manifest does not say where in it the deletion vector is, and what it is about"
            )
        read = mf.range_reader(file, self.request.storage)
        vector = read_vector(read, offset, size, file.file_path, cardinality=file.record_count)
        positions = vector.positions()
        for start in range(0, len(positions), _BATCH_ROWS):
            part = pa.array(positions[start : start + _BATCH_ROWS])
            yield pa.RecordBatch.from_arrays([repeated(about, len(part), pa.string()), part], ["file_path", "pos"])

    def _batch(self, deletes: _DeleteFile, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of the filter and of the result, for rows of a delete file."""
        file, count = deletes.file, rows.num_rows
        values: dict[str, object] = {
            "file_path": self._resolved(rows.column("file_path")),
            "pos": rows.column("pos"),
            "spec_id": file.spec_id,
            "delete_file_path": file.file_path,
            "content_offset": file.content_offset,
            "content_size_in_bytes": file.content_size_in_bytes,
        }
        if "partition" in self._names:
            one = partition_column(deletes.columns, self.partition)
            values["partition"] = one.take(pa.array([0] * count, pa.int32()))
        if "row" in rows.schema.names:
            values["row"] = rows.column("row")
        columns = []
        for field in self._arrow_schema:
            value = values.get(field.name)
            if not isinstance(value, pa.Array):
                value = repeated(value, count, field.type) if value is not None else pa.nulls(count, field.type)
            columns.append(value if value.type == field.type else value.cast(field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self._arrow_schema)

    def _resolved(self, paths: pa.Array) -> pa.Array:
        """Paths as locations; the spec does not say whether those in delete files may be relative."""
        if not self._is_relative:
            return paths
        encoded = paths.dictionary_encode()
        names = list(map(self.request.metadata.resolve, encoded.dictionary.to_pylist()))
        return pa.array(names, pa.string()).take(encoded.indices)
