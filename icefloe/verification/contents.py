"""Whether a data or delete file holds what its manifest says: by its footer, or by all of its rows."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa

from icefloe.data.grouping import group_rows
from icefloe.data.opening import open_file, partition_constants
from icefloe.errors import InvalidInputError
from icefloe.formats.array_metrics import MetricsCollector
from icefloe.formats.file_formats import FileReader, file_reader
from icefloe.formats.metrics import FULL, Metrics
from icefloe.formats.parquet_metrics import parquet_metrics
from icefloe.formats.parquet_reader import ParquetFileReader
from icefloe.formats.position_deletes import POSITION_DELETE_SCHEMA
from icefloe.manifests.files import DataFile, FileContent
from icefloe.metadata.properties import NAME_MAPPING
from icefloe.partitioning.spec import PartitionSpec
from icefloe.partitioning.transforms import UnknownTransform
from icefloe.schema.name_mapping_codec import parse_name_mapping
from icefloe.schema.reserved import POS
from icefloe.schema.schema import Schema
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
        text = NAME_MAPPING.of(self._subject.metadata.properties)
        return None if text is None else parse_name_mapping(text)

    def problems(self, file: DataFile, snapshot_id: int) -> tuple[list[Problem], int]:
        """What is wrong with a file of rows of a snapshot, and how many rows were read for it."""
        is_position = file.content is FileContent.POSITION_DELETES
        schema = POSITION_DELETE_SCHEMA if is_position else self._subject.columns_of(snapshot_id)
        with open_file(file, self._subject.storage) as source:
            reader = self._reader(file, source, schema)
            if self._subject.level.includes(Level.DATA):
                return self._by_rows(file, reader, schema)
            return list(self._by_footer(file, source, reader, schema)), 0

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
            counter = self._reader(file, source, Schema(POS))
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
            and not isinstance(field.transform, UnknownTransform)
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
