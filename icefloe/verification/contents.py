"""Whether a data or delete file holds what its manifest says: by its footer, or by all of its rows."""

from collections.abc import Collection, Iterator
from functools import cached_property

import pyarrow as pa

from icefloe import errors, manifests as mf, properties as props
from icefloe.data import group_rows, partition_constants
from icefloe.formats.array_metrics import MetricsCollector
from icefloe.formats.field_ids import foreign_ids, misplaced_ids, missing_ids, variant_ids
from icefloe.formats.file_formats import FileReader, reader_of
from icefloe.formats.metrics import FULL, Metrics
from icefloe.formats.parquet.metrics import parquet_metrics
from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.formats.position_deletes import POSITION_DELETE_SCHEMA
from icefloe.partitioning import PartitionSpec, transforms as tr
from icefloe.schema import GeoPoint, NameMapping, Schema, Value, decode_bound, parse_name_mapping, reserved, types
from icefloe.storage import Input
from icefloe.verification.codes import Code, Level
from icefloe.verification.subject import Subject

Problem = tuple[Code, str]


class Contents:
    """Looks into files; threads share it."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    @cached_property
    def _mapping(self) -> NameMapping | None:
        text = props.NAME_MAPPING.of(self._subject.metadata.properties)
        return None if text is None else parse_name_mapping(text)

    def problems(self, file: mf.DataFile, snapshot_id: int) -> tuple[list[Problem], int]:
        """What is wrong with a file of rows of a snapshot, and how many rows were read for it."""
        is_position = file.content is mf.FileContent.POSITION_DELETES
        schema = POSITION_DELETE_SCHEMA if is_position else self._subject.columns_of(snapshot_id)
        with mf.open_file(file, self._subject.storage) as source:
            reader = self._reader(file, source, schema)
            ids = [] if is_position else list(self._ids(file, reader.file_schema, schema))
            if self._subject.level.includes(Level.DATA):
                problems, rows = self._by_rows(file, reader, schema)
                return [*ids, *problems], rows
            return [*ids, *self._by_footer(file, source, reader, schema)], 0

    def _ids(self, file: mf.DataFile, file_schema: Schema, schema: Schema) -> Iterator[Problem]:
        """What is wrong with the field ids of a file; those that a name mapping gives count as the file's own."""
        schemas = self._subject.metadata.schemas
        if self._mapping is None:
            if not any(field_id >= 0 for field_id in file_schema.fields_by_id):
                yield Code.FIELD_IDS, "its columns have no field ids, and the table has no name mapping"
                return
            if missing := missing_ids(file_schema, self._variants):
                yield Code.FIELD_IDS, f"{', '.join(map(repr, missing))} has no field id, so that no reader finds it"
        for problem in misplaced_ids(file_schema, schemas, self._variants):
            yield Code.FIELD_IDS, f"its column {problem} in the table"
        if self._knows_all_ids:
            for problem in foreign_ids(file_schema, schemas, self._variants):
                yield Code.FIELD_IDS, f"its column {problem}, which no schema of the table has"
        counted = file.value_counts.keys() | file.lower_bounds.keys() | file.upper_bounds.keys()
        for field_id in sorted(counted & schema.names_by_id.keys() - file_schema.fields_by_id.keys()):
            column = schema.names_by_id[field_id]
            yield Code.FIELD_IDS, f"its manifest counts values of column {column!r}, and it has none of id {field_id}"

    @cached_property
    def _variants(self) -> frozenset[int]:
        return variant_ids(self._subject.metadata.schemas)

    @cached_property
    def _knows_all_ids(self) -> bool:
        """Whether no schema was removed, with columns that files may still have."""
        schemas = self._subject.metadata.schemas
        return len(schemas) == max(schema.schema_id for schema in schemas) + 1

    def _reader(self, file: mf.DataFile, source: Input, schema: Schema) -> FileReader:
        constants = partition_constants(file, self._subject.metadata) if file.content is mf.FileContent.DATA else None
        return reader_of(file.file_format)(source, file.file_path, schema, mapping=self._mapping, constants=constants)

    def _by_footer(self, file: mf.DataFile, source: Input, reader: FileReader, schema: Schema) -> Iterator[Problem]:
        if not isinstance(reader, ParquetFileReader):
            source.seek(0)
            counter = self._reader(file, source, Schema(reserved.POS))
            yield from _compare_rows(file, sum(batch.num_rows for batch in counter.batches()))
            return
        yield from _compare_rows(file, reader.footer.num_rows)
        modes = dict.fromkeys(schema.fields_by_id, FULL)
        metrics = parquet_metrics(reader.footer, schema, modes, file_schema=reader.file_schema)
        yield from _compare_metrics(file, metrics, schema, is_exact=False)

    def _by_rows(self, file: mf.DataFile, reader: FileReader, schema: Schema) -> tuple[list[Problem], int]:
        present = reader.file_schema.fields_by_id
        modes = {field_id: FULL for field_id in schema.fields_by_id if field_id in present}
        collector = MetricsCollector(schema, modes)
        partitions = _PartitionCheck(file, self._subject.metadata.spec(file.spec_id), schema, present)
        for batch in reader.batches():
            collector.add(batch)
            partitions.add(batch)
        rows = collector.record_count
        problems = [*_compare_rows(file, rows), *partitions.problems()]
        return [*problems, *_compare_metrics(file, collector.metrics(), schema, is_exact=True)], rows


def _compare_rows(file: mf.DataFile, rows: int) -> Iterator[Problem]:
    if rows != file.record_count:
        yield Code.RECORD_COUNT, f"its record count is {file.record_count}; it has {rows} rows"


class _PartitionCheck:
    """Whether the rows of a data or equality delete file are of its partition, as far as its columns tell."""

    def __init__(self, file: mf.DataFile, spec: PartitionSpec, schema: Schema, present: Collection[int]) -> None:
        self._schema = schema
        chosen = [
            (field, value)
            for field, value in zip(spec.fields, file.partition, strict=True)
            # Equality deletes may hold key columns only, and rows of others for information; their partition is their scope.
            if file.content is mf.FileContent.DATA
            and field.source_id in present
            and field.source_id in self._schema.fields_by_id
            and not isinstance(field.transform, tr.UnknownTransform)
        ]
        self._spec = PartitionSpec(*(field for field, _ in chosen))
        self._expected = tuple(value for _, value in chosen)
        self._problem: str | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at more rows."""
        if self._problem is not None or not self._spec.fields:
            return
        try:
            for partition, rows in group_rows(pa.Table.from_batches([batch]), self._spec, self._schema):
                if repr(partition) != repr(self._expected):
                    self._problem = (
                        f"its partition is {self._shown(self._expected)}, but {len(rows)} or more of its rows "
                        f"are of {self._shown(partition)}"
                    )
                    return
        except errors.InvalidInputError as error:
            self._problem = f"its rows have no partition: {error}"

    def _shown(self, values: tuple[Value, ...]) -> str:
        return ", ".join(f"{field.name}={value!r}" for field, value in zip(self._spec.fields, values, strict=True))

    def problems(self) -> Iterator[Problem]:
        """What is wrong with the rows so far."""
        if self._problem is not None:
            yield Code.PARTITION_VALUES, self._problem


_WHOLE_TEXT = 64
"""Bounds of text and bytes in a footer that are this long may have been cut by the writer."""


def _compare_metrics(file: mf.DataFile, actual: Metrics, schema: Schema, is_exact: bool) -> Iterator[Problem]:
    """What is wrong with the metrics of a file; `is_exact` says that the actual ones come from rows and not from a footer."""
    for name in ("value_counts", "null_value_counts", "nan_value_counts"):
        recorded, counted = getattr(file, name), getattr(actual, name)
        for field_id in sorted(recorded.keys() & counted.keys()):
            if recorded[field_id] != counted[field_id]:
                what = f"{name.removesuffix('_counts').replace('_', ' ')} count of column {_name(schema, field_id)}"
                yield Code.COLUMN_COUNTS, f"the {what} is {recorded[field_id]}; the file has {counted[field_id]}"
    for field_id in sorted({*file.lower_bounds, *file.upper_bounds} & schema.fields_by_id.keys()):
        if not isinstance(schema.fields_by_id[field_id].field_type, types.VariantType):
            yield from _compare_bounds(file, actual, field_id, schema, is_exact)


def _compare_bounds(
    file: mf.DataFile, actual: Metrics, field_id: int, schema: Schema, is_exact: bool
) -> Iterator[Problem]:
    field_type = schema.fields_by_id[field_id].field_type
    may_be_cut = not is_exact and isinstance(field_type, types.StringType | types.BinaryType | types.FixedType)
    for word in ("lower", "upper"):
        recorded, own = (getattr(metrics, f"{word}_bounds").get(field_id) for metrics in (file, actual))
        if recorded is None:
            continue
        what = f"the {word} bound of column {_name(schema, field_id)} is"
        try:
            bound = decode_bound(recorded, field_type)
        except errors.InvalidValueError as error:
            yield Code.COLUMN_BOUNDS, f"{what} no value of type {field_type}: {error}"
            continue
        if own is None or (may_be_cut and len(own) >= _WHOLE_TEXT):
            continue
        value = decode_bound(own, field_type)
        if not _covers(bound, value, word == "lower"):
            yield Code.COLUMN_BOUNDS, f"{what} {bound!r}; the file has {value!r}"


def _covers(bound: Value, value: Value, is_lower: bool) -> bool:
    if isinstance(bound, GeoPoint) and isinstance(value, GeoPoint):
        # A box whose west is east of its east goes over the antimeridian, which only both corners tell.
        return bound.y <= value.y if is_lower else bound.y >= value.y
    return bool(bound <= value if is_lower else bound >= value)


def _name(schema: Schema, field_id: int) -> str:
    return repr(schema.names_by_id.get(field_id, str(field_id)))
