"""Tables of real files with a plan by the letter of the spec: what the data room reads, without the planning room."""

import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from icefloe.data import WriteRequest, data_file_of, shape_table, write_data_files
from icefloe.errors import InvalidSchemaError
from icefloe.expressions import AlwaysTrue, Expression, as_expression, bind
from icefloe.formats.arrow_types import stored_schema
from icefloe.formats.deletion_vector_codec import write_deletion_vectors
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.formats.equality_deletes import equality_delete_writer
from icefloe.formats.position_deletes import write_position_deletes
from icefloe.formats.projection import project_batch
from icefloe.manifests import DataFile, FileContent
from icefloe.metadata import new_table_metadata
from icefloe.partitioning import UNPARTITIONED, UNSORTED, PartitionSpec, SortOrder
from icefloe.planning import FileScanTask
from icefloe.schema import Schema, plan_projection, reserved
from icefloe.storage import Storage
from icefloe.table import DataScan
from icefloe.versions import Feature, allows


@dataclass(frozen=True)
class PlannedScan(DataScan):
    """A scan whose columns and plan are known."""

    columns: Schema = field(default_factory=Schema)
    tasks: tuple[FileScanTask, ...] = ()

    def table_columns(self) -> Schema:
        return self.columns

    def plan_files(self) -> Generator[FileScanTask, None, None]:
        yield from self.tasks


@dataclass(frozen=True)
class Live:
    """A file of the table and its data sequence number."""

    file: DataFile
    sequence_number: int


class RowTable:
    """A table whose files are listed in memory. Each change is one commit with the next sequence number."""

    def __init__(
        self,
        schema: Schema,
        version: int,
        spec: PartitionSpec = UNPARTITIONED,
        order: SortOrder = UNSORTED,
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        storage: Storage | None = None,
    ) -> None:
        self.storage = Storage() if storage is None else storage
        self.version = version
        self.location = f"memory://tables/{uuid.uuid4()}" if location is None else location
        created = new_table_metadata(
            schema, UNPARTITIONED, UNSORTED, self.location, properties, version, uuid=uuid.uuid4(), timestamp_ms=1
        )
        # With the ids of the test, which a new table would give afresh.
        self.metadata = created.evolve(
            schemas=(schema.with_id(0),),
            partition_specs=(spec.with_id(0),),
            sort_orders=(UNSORTED, *((order,) if order.fields else ())),
            default_sort_order_id=order.order_id,
            last_column_id=schema.highest_field_id,
        )
        self.sequence_number = 0
        self.next_row_id = 0
        self.data: list[Live] = []
        self.deletes: list[Live] = []

    @property
    def schema(self) -> Schema:
        return self.metadata.schema()

    def commit(self, added: Iterable[DataFile]) -> list[DataFile]:
        """The files as part of the table, with row ids where the version has them."""
        self.sequence_number += 1 if allows(self.version, Feature.SEQUENCE_NUMBERS) else 0
        found = []
        for file in added:
            if file.content is FileContent.DATA:
                if allows(self.version, Feature.ROW_LINEAGE) and file.first_row_id is None:
                    file = replace(file, first_row_id=self.next_row_id)
                    self.next_row_id += file.record_count
                self.data.append(Live(file, self.sequence_number))
            else:
                self.deletes.append(Live(file, self.sequence_number))
            found.append(file)
        return found

    def remove(self, files: Iterable[DataFile]) -> None:
        gone = {(file.file_path, file.content_offset) for file in files}
        self.data = [each for each in self.data if (each.file.file_path, each.file.content_offset) not in gone]
        self.deletes = [each for each in self.deletes if (each.file.file_path, each.file.content_offset) not in gone]

    def append(self, rows: Any, *, workers: int | None = None, **options: Any) -> list[DataFile]:
        request = WriteRequest(self.metadata, self.storage, **options)
        return self.commit(write_data_files(rows, request, workers=workers))

    def delete_positions(
        self, deletes: Mapping[str, Iterable[int]], *, as_vectors: bool | None = None
    ) -> list[DataFile]:
        """Delete rows by file and position, with what the version has for that."""
        if as_vectors is None:
            as_vectors = allows(self.version, Feature.DELETION_VECTORS)
        return self.commit(self.vectors(deletes) if as_vectors else [self.position_file(deletes)])

    def vectors(self, deletes: Mapping[str, Iterable[int]]) -> list[DataFile]:
        location = f"{self.location}/data/{uuid.uuid4()}.puffin"
        vectors = {path: DeletionVector.from_positions(positions) for path, positions in deletes.items()}
        content, stored = write_deletion_vectors(vectors)
        self.storage.write(location, content)
        files = {each.file.file_path: each.file for each in self.data}
        return [
            DataFile(
                location,
                "puffin",
                each.cardinality,
                len(content),
                FileContent.POSITION_DELETES,
                files[each.referenced_data_file].spec_id,
                files[each.referenced_data_file].partition,
                referenced_data_file=each.referenced_data_file,
                content_offset=each.offset,
                content_size_in_bytes=each.length,
            )
            for each in stored
        ]

    def position_file(self, deletes: Mapping[str, Iterable[int]], file_format: str = "parquet") -> DataFile:
        """A position delete file, as a table had it before it was upgraded if its version no longer takes new ones."""
        location = f"{self.location}/data/{uuid.uuid4()}-deletes.{file_format}"
        files = {each.file.file_path: each.file for each in self.data}
        first = files[next(iter(deletes))]
        with self.storage.open_output(location) as sink:
            done = write_position_deletes(sink, dict(deletes), 2, file_format)
        return data_file_of(
            done.file,
            location,
            file_format,
            content=FileContent.POSITION_DELETES,
            spec_id=first.spec_id,
            partition=first.partition,
            referenced_data_file=done.referenced_data_file,
        )

    def equality_file(
        self,
        keys: Any,
        field_ids: Iterable[int],
        schema: Schema | None = None,
        of: DataFile | None = None,
        file_format: str = "parquet",
    ) -> DataFile:
        """An equality delete file for the partition of a data file, or for all."""
        location = f"{self.location}/data/{uuid.uuid4()}-deletes.{file_format}"
        with self.storage.open_output(location) as sink:
            writer = equality_delete_writer(sink, schema or self.schema, field_ids, self.version, file_format)
            plan = plan_projection(writer.schema, select_names(schema or self.schema, keys.schema.names))
            for batch in keys.to_batches():
                projected = project_batch(batch, plan, writer.schema, location)
                writer.write(shape_table(pa.Table.from_batches([projected]), writer.schema))
            done = writer.close()
        return data_file_of(
            done,
            location,
            file_format,
            content=FileContent.EQUALITY_DELETES,
            equality_ids=tuple(field_ids),
            spec_id=self.metadata.default_spec_id if of is None else of.spec_id,
            partition=() if of is None else of.partition,
        )

    def tasks(self, predicate: Expression | None = None) -> tuple[FileScanTask, ...]:
        """Every file, the whole predicate, and the deletes that apply (spec: Scan Planning)."""
        residual = AlwaysTrue() if predicate is None else predicate
        return tuple(
            FileScanTask(each.file, tuple(self._applying(each)), residual, each.sequence_number) for each in self.data
        )

    def _applying(self, data: Live) -> Iterator[DataFile]:
        near = [
            each
            for each in self.deletes
            if (each.file.spec_id, each.file.partition) == (data.file.spec_id, data.file.partition)
        ]
        path = data.file.file_path
        vectors = [
            each.file for each in near if each.file.is_deletion_vector and each.file.referenced_data_file == path
        ]
        yield from vectors
        for each in self.deletes:
            match each.file.content:
                case FileContent.POSITION_DELETES if not vectors and not each.file.is_deletion_vector and each in near:
                    if each.file.referenced_data_file in (None, path) and data.sequence_number <= each.sequence_number:
                        yield each.file
                case FileContent.EQUALITY_DELETES if data.sequence_number < each.sequence_number:
                    if each in near or not self.metadata.spec(each.file.spec_id).fields:
                        yield each.file

    def columns(self, *names: str) -> Schema:
        """Columns of the table, all if none is named, and metadata columns."""
        chosen = [self._column(name) for name in names] or list(self.schema.fields)
        return Schema(*chosen, schema_id=self.schema.schema_id)

    def _column(self, name: str) -> Any:
        return reserved.metadata_column(name) or self.schema.find_field(name)

    def bound(self, text: str | Expression) -> Expression:
        return bind(as_expression(text), self.schema)

    def scan(self, predicate: str | Expression | None = None, *names: str, limit: int | None = None) -> PlannedScan:
        bound = None if predicate is None else self.bound(predicate)
        columns, tasks = self.columns(*names), self.tasks(bound)
        return PlannedScan(self.metadata, self.storage, limit=limit, columns=columns, tasks=tasks)

    def read(self, predicate: str | Expression | None = None, *names: str) -> Any:
        return self.scan(predicate, *names).to_arrow()

    def lineage(self) -> Any:
        """All rows with their ids."""
        schema = Schema(*self.schema.fields, *reserved.ROW_LINEAGE_COLUMNS)
        return PlannedScan(self.metadata, self.storage, columns=schema, tasks=self.tasks()).to_arrow()


def select_names(schema: Schema, names: list[str]) -> Schema:
    """Columns at the top, in the order of the names."""
    return Schema(*(schema.find_field(name) for name in names))


def is_storable(schema: Schema) -> bool:
    """Whether a file can hold the schema at all: something but unknown in each struct, list and map."""
    try:
        stored_schema(schema)
    except InvalidSchemaError:
        return False
    return True


def rows_of(table: Any) -> list[dict[str, Any]]:
    """The rows of an Arrow table."""
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def numbers(*values: int | None) -> Any:
    """A table with one column `id`."""
    return pa.table({"id": pa.array(values, pa.int64())})
