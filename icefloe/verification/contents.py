"""Whether a data or delete file holds what its manifest says: by its footer, or by all of its rows."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa

from icefloe import properties as props
from icefloe.data import group_rows, open_file, partition_constants
from icefloe.errors import InvalidInputError
from icefloe.formats.array_metrics import MetricsCollector
from icefloe.formats.field_ids import foreign_ids, misplaced_ids, missing_ids, variant_ids
from icefloe.formats.file_formats import FileReader, file_reader
from icefloe.formats.metrics import FULL, Metrics
from icefloe.formats.parquet.metrics import parquet_metrics
from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.formats.position_deletes import POSITION_DELETE_SCHEMA
from icefloe.manifests import DataFile, FileContent
from icefloe.partitioning import PartitionSpec, transforms as tr
from icefloe.schema import Schema, parse_name_mapping, reserved
from icefloe.verification.codes import Code, Level
from icefloe.verification.metrics import compare_metrics
from icefloe.verification.subject import Subject

Problem = tuple[Code, str]


class Contents:
    """Looks into files; threads share it."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    @cached_property
    def _mapping(self) -> Any:
        text = props.NAME_MAPPING.of(self._subject.metadata.properties)
        return None if text is None else parse_name_mapping(text)

    def problems(self, file: DataFile, snapshot_id: int) -> tuple[list[Problem], int]:
        """What is wrong with a file of rows of a snapshot, and how many rows were read for it."""
        is_position = file.content is FileContent.POSITION_DELETES
        schema = POSITION_DELETE_SCHEMA if is_position else self._subject.columns_of(snapshot_id)
        with open_file(file, self._subject.storage) as source:
            reader = self._reader(file, source, schema)
            ids = [] if is_position else list(self._ids(file, reader.file_schema, schema))
            if self._subject.level.includes(Level.DATA):
                problems, rows = self._by_rows(file, reader, schema)
                return [*ids, *problems], rows
            return [*ids, *self._by_footer(file, source, reader, schema)], 0

    def _ids(self, file: DataFile, found: Schema, schema: Schema) -> Iterator[Problem]:
        """What is wrong with the field ids of a file; those that a name mapping gives count as the file's own."""
        schemas = self._subject.metadata.schemas
        if self._mapping is None:
            if not any(field_id >= 0 for field_id in found.fields_by_id):
                yield Code.FIELD_IDS, "its columns have no field ids, and the table has no name mapping"
                return
            if missing := missing_ids(found, self._variants):
                yield Code.FIELD_IDS, f"{', '.join(map(repr, missing))} has no field id, so that no reader finds it"
        for each in misplaced_ids(found, schemas, self._variants):
            yield Code.FIELD_IDS, f"its column {each} in the table"
        if self._knows_all_ids:
            for each in foreign_ids(found, schemas, self._variants):
                yield Code.FIELD_IDS, f"its column {each}, which no schema of the table has"
        counted = file.value_counts.keys() | file.lower_bounds.keys() | file.upper_bounds.keys()
        for field_id in sorted(counted - found.fields_by_id.keys()):
            column = schema.names_by_id.get(field_id)
            if column is not None:
                yield (
                    Code.FIELD_IDS,
                    f"its manifest counts values of column {column!r}, and it has none of id {field_id}",
                )

    @cached_property
    def _variants(self) -> frozenset[int]:
        return variant_ids(self._subject.metadata.schemas)

    @cached_property
    def _knows_all_ids(self) -> bool:
        """Whether no schema was removed, with columns that files may still have."""
        schemas = self._subject.metadata.schemas
        return len(schemas) == max(each.schema_id for each in schemas) + 1

    def _reader(self, file: DataFile, source: Any, wanted: Schema) -> FileReader:
        return file_reader(
            file.file_format,
            source,
            file.file_path,
            wanted,
            mapping=self._mapping,
            constants=partition_constants(file, self._subject.metadata) if file.content is FileContent.DATA else None,
        )

    def _by_footer(self, file: DataFile, source: Any, reader: FileReader, schema: Schema) -> Iterator[Problem]:
        if not isinstance(reader, ParquetFileReader):
            source.seek(0)
            counter = self._reader(file, source, Schema(reserved.POS))
            yield from _compare_rows(file, sum(batch.num_rows for batch in counter.batches()))
            return
        yield from _compare_rows(file, reader.footer.num_rows)
        modes = dict.fromkeys(schema.fields_by_id, FULL)
        found = parquet_metrics(reader.footer, schema, modes, file_schema=reader.file_schema)
        yield from compare_metrics(file, found, schema, is_exact=False)

    def _by_rows(self, file: DataFile, reader: FileReader, wanted: Schema) -> tuple[list[Problem], int]:
        present = reader.file_schema.fields_by_id
        modes = {field_id: FULL for field_id in wanted.fields_by_id if field_id in present}
        collector = MetricsCollector(wanted, modes)
        partitions = _PartitionCheck(file, self._subject.metadata.spec(file.spec_id), wanted, present.keys())
        for batch in reader.batches():
            collector.add(batch)
            partitions.add(batch)
        found: Metrics = collector.metrics()
        rows = collector.record_count
        problems = [*_compare_rows(file, rows), *partitions.problems()]
        return [*problems, *compare_metrics(file, found, wanted, is_exact=True)], rows


def _compare_rows(file: DataFile, rows: int) -> Iterator[Problem]:
    if rows != file.record_count:
        yield Code.RECORD_COUNT, f"its record count is {file.record_count}; it has {rows} rows"


class _PartitionCheck:
    """Whether the rows of a data or equality delete file are of its partition, as far as its columns tell."""

    def __init__(self, file: DataFile, spec: PartitionSpec, schema: Schema, present: Any) -> None:
        self._schema = schema
        # Equality deletes may hold key columns only, and rows of others for information; their partition is their scope.
        known = file.content is FileContent.DATA
        chosen = [
            (field, value)
            for field, value in zip(spec.fields, file.partition, strict=True)
            if known
            and field.source_id in present
            and field.source_id in self._schema.fields_by_id
            and not isinstance(field.transform, tr.UnknownTransform)
        ]
        self._spec = PartitionSpec(*(field for field, _ in chosen))
        self._expected = tuple(value for _, value in chosen)
        self._problem: str | None = None

    def add(self, batch: Any) -> None:
        """Look at more rows."""
        if self._problem is not None or not self._spec.fields:
            return
        try:
            for found, rows in group_rows(pa.Table.from_batches([batch]), self._spec, self._schema):
                if repr(found) != repr(self._expected):
                    self._problem = (
                        f"its partition is {self._shown(self._expected)}, but {len(rows)} or more of its rows "
                        f"are of {self._shown(found)}"
                    )
                    return
        except InvalidInputError as error:
            self._problem = f"its rows have no partition: {error}"

    def _shown(self, values: tuple[Any, ...]) -> str:
        return ", ".join(f"{field.name}={value!r}" for field, value in zip(self._spec.fields, values, strict=True))

    def problems(self) -> Iterator[Problem]:
        """What was found."""
        if self._problem is not None:
            yield Code.PARTITION_VALUES, self._problem
