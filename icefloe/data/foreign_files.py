"""From a file that something else wrote to the entry that names it in a table: what it must hold, and what it says of itself.

Nothing is written and nothing is read but footers, unless only the rows can tell that a required column has no nulls.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.parquet as pq

from icefloe import errors, manifests as mf, metadata as md, parallel, partitioning as pt, properties as props
from icefloe.avro import avro_name
from icefloe.data.file_rolling import data_file_of
from icefloe.data.opening import identity_values
from icefloe.data.scanning import default_workers
from icefloe.formats.field_ids import misplaced_ids, missing_ids, variant_ids
from icefloe.formats.file_formats import AVRO, ORC, PARQUET, reader_of
from icefloe.formats.file_reading import FileReader
from icefloe.formats.file_schema import file_columns
from icefloe.formats.file_writing import WrittenFile
from icefloe.formats.metrics import FULL, Metrics, MetricsMode, metrics_modes
from icefloe.formats.parquet.metrics import parquet_metrics, split_offsets
from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.partitioning import transforms as tr
from icefloe.progress import Listener, watched
from icefloe.schema import MAX_COLUMN_ID, Schema, Value, decode, name_mapping, reserved, select_ids, types
from icefloe.storage import Input, Storage, absolute_location, names_below

_HIDDEN = ("_", ".")


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A file of rows that a table is to have. `partition` is what its folders are named by; None if nothing is said."""

    location: str
    size: int
    file_format: str
    partition: Mapping[str, str] | None = None


@dataclass(frozen=True)
class ForeignFiles:
    """Files as a table will name them, and whether some need its name mapping, as they have no field ids."""

    files: tuple[mf.DataFile, ...]
    need_mapping: bool


def find_files(storage: Storage, location: str, file_format: str) -> list[ForeignFile]:
    """The files of a folder, and of the `name=value` folders in it, or the one file that the location is.

    As Spark reads folders, names that begin with `_` or `.` are passed over, and so are folders that are no partitions.
    """
    root = location.rstrip("/")
    files = []
    for info in storage.list_prefix(root):
        *folders, name = names_below(root, info.location)
        if name.startswith(_HIDDEN) or not all("=" in folder and not folder.startswith(".") for folder in folders):
            continue
        texts = pt.split_hive_path("/".join(folders))
        files.append(ForeignFile(info.location, info.size, file_format, texts))
    if not files and storage.exists(root):
        return [ForeignFile(root, storage.stat(root).size, file_format, {})]
    return sorted(files, key=lambda file: file.location)


def foreign_file(storage: Storage, location: str) -> ForeignFile:
    """One file by its location; the ending says the format, and Parquet is what has no ending that is known."""
    location = absolute_location(location)
    ending = location.rpartition(".")[2].lower()
    return ForeignFile(location, storage.stat(location).size, ending if ending in (AVRO, ORC) else PARQUET)


def describe_files(
    files: Sequence[ForeignFile],
    metadata: md.TableMetadata,
    storage: Storage,
    spec: pt.PartitionSpec | None = None,
    workers: int | None = None,
    progress: Listener | None = None,
) -> ForeignFiles:
    """The entries of files, each checked against the table's schema and the partition that its folders name."""
    describe = _Describe(metadata, storage, metadata.spec() if spec is None else spec)
    pairs = list(
        parallel.in_order(
            describe,
            watched("files", files, progress),
            default_workers() if workers is None else workers,
            "icefloe-footers",
        )
    )
    return ForeignFiles(tuple(file for file, _ in pairs), any(needs for _, needs in pairs))


class _Describe:
    """Looks at one file; threads share it."""

    def __init__(self, metadata: md.TableMetadata, storage: Storage, spec: pt.PartitionSpec) -> None:
        self._metadata = metadata
        self._storage = storage
        self._schema = metadata.schema()
        self._spec = spec
        # Without a name mapping of the table, every column has the name that it has now.
        text = props.NAME_MAPPING.of(metadata.properties)
        self._mapping = (
            name_mapping.create_name_mapping(self._schema) if text is None else name_mapping.parse_name_mapping(text)
        )
        self._variants = variant_ids(metadata.schemas)
        self._modes = metrics_modes(self._schema, metadata.properties, metadata.sort_order())

    def __call__(self, file: ForeignFile) -> tuple[mf.DataFile, bool]:
        try:
            with self._storage.open_input(file.location, size=file.size) as source:
                return self._describe(file, source)
        except (errors.IncompatibleChangeError, errors.NoSuchColumnError) as problem:
            raise type(problem)(f"{file.location} cannot be added: {problem}") from None

    def _describe(self, file: ForeignFile, source: Input) -> tuple[mf.DataFile, bool]:
        probe = reader_of(file.file_format)(source, file.location, Schema(reserved.POS))
        footer = probe.footer if isinstance(probe, ParquetFileReader) else None
        rows = sum(batch.num_rows for batch in probe.batches()) if footer is None else footer.num_rows
        self._check_ids(probe.file_schema)
        partition = self._partition(file, footer)
        constants = identity_values(self._spec, partition)
        reader = self._reader(file, source, self._schema, constants)
        metrics = Metrics(rows) if footer is None else self._metrics(footer, reader.file_schema, self._modes)
        self._check_nulls(file, source, reader.file_schema, constants, footer)
        done = WrittenFile(metrics, () if footer is None else split_offsets(footer), file.size)
        entry = data_file_of(done, file.location, file.file_format, spec_id=self._spec.spec_id, partition=partition)
        return entry, any(field_id < 0 for field_id in probe.file_schema.fields_by_id)

    def _reader(self, file: ForeignFile, source: Input, wanted: Schema, constants: Mapping[int, Value]) -> FileReader:
        source.seek(0)
        return reader_of(file.file_format)(source, file.location, wanted, mapping=self._mapping, constants=constants)

    def _metrics(self, footer: pq.FileMetaData, file_schema: Schema, modes: Mapping[int, MetricsMode]) -> Metrics:
        return parquet_metrics(footer, self._schema, modes, file_schema=file_schema)

    def _check_ids(self, file_schema: Schema) -> None:
        """A file has ids everywhere or nowhere, and those of a file of another table mean other columns there.

        Where a file has ids, no reader looks at the names of columns, so one without would be null for ever.
        """
        missing = missing_ids(file_schema, self._variants)
        if not any(field_id >= 0 for field_id in file_schema.fields_by_id):
            return
        if missing:
            raise errors.IncompatibleChangeError(
                f"{', '.join(map(repr, missing))} in it has no field id, as other columns have; write the file with ids"
                " everywhere, or without any"
            )
        self._check_names(file_schema)
        if misplaced := misplaced_ids(file_schema, self._metadata.schemas, self._variants):
            raise errors.IncompatibleChangeError(
                f"its column {misplaced[0]} in the table; was it written for another table?"
            )
        last = self._metadata.last_column_id
        if later := [field_id for field_id in file_schema.fields_by_id if last < field_id <= MAX_COLUMN_ID]:
            raise errors.IncompatibleChangeError(
                f"its column {file_schema.names_by_id[later[0]]!r} has the field id {later[0]}, which the table has not given"
                " to a column yet, and will give to another; was it written for another table?"
            )

    def _check_names(self, file_schema: Schema) -> None:
        for field in file_schema.fields:
            schemas = (schema.fields_by_id for schema in self._metadata.schemas)
            own = {fields[field.field_id].name for fields in schemas if field.field_id in fields}
            names = {*own, *map(avro_name, own)}
            if names and field.name.lower() not in map(str.lower, names):
                raise errors.IncompatibleChangeError(
                    f"its column {field.name!r} has the field id {field.field_id}, which is that of"
                    f" {sorted(names)[0]!r} in the table; was it written for another table?"
                )
            if names and field.name not in names and isinstance(field.field_type, types.NestedType):
                raise errors.IncompatibleChangeError(
                    f"its column {field.name!r} is {sorted(names)[0]!r} in the table, and Spark finds nested columns by name;"
                    " write the file with the name that the table has"
                )

    def _partition(self, file: ForeignFile, footer: pq.FileMetaData | None) -> tuple[Value, ...]:
        if not self._spec.fields:
            return ()
        folders = pt.split_hive_path(file.location) if file.partition is None else file.partition
        texts = _by_field_name(folders, self._spec)
        metrics, columns = None, frozenset[int]()
        if footer is not None:
            ids = {field.source_id for field in self._spec.fields}
            file_schema = file_columns(footer.schema.to_arrow_schema(), self._schema, self._mapping)
            columns = frozenset(ids & file_schema.fields_by_id.keys())
            metrics = self._metrics(footer, file_schema, dict.fromkeys(ids, FULL))
        if all(field.name in texts for field in self._spec.fields):
            values = pt.partition_values(texts, self._spec, self._schema)
            if metrics is not None:
                _check_partition(values, self._spec, self._schema, metrics, file.location)
            return values
        if metrics is None or not columns:
            names = ", ".join(field.name for field in self._spec.fields)
            raise errors.InvalidInputError(
                f"{file.location} says nothing of its partition; put it into folders named by {names}, as in"
                f" {self._spec.fields[0].name}=value"
            )
        return _infer_partition(self._spec, self._schema, metrics, file.location)

    def _check_nulls(
        self,
        file: ForeignFile,
        source: Input,
        file_schema: Schema,
        constants: Mapping[int, Value],
        footer: pq.FileMetaData | None,
    ) -> None:
        """A required column of the table has no nulls in the file either."""
        doubtful = [field for field in _required(self._schema, file_schema) if field.field_id not in constants]
        if footer is not None:
            counted = self._metrics(footer, file_schema, dict.fromkeys(self._schema.fields_by_id, FULL))
            for field in doubtful:
                if counted.null_value_counts.get(field.field_id):
                    raise _null_in(field.name)
            doubtful = [field for field in doubtful if field.field_id not in counted.null_value_counts]
        if not doubtful:
            return
        wanted = select_ids(self._schema, [field.field_id for field in doubtful])
        for batch in self._reader(file, source, wanted, constants).batches():
            for field, column in zip(wanted.fields, batch.columns, strict=True):
                if column.null_count:
                    raise _null_in(field.name)


def _required(schema: Schema, file_schema: Schema) -> Iterator[types.NestedField]:
    """The required columns of the table that the file has as optional ones."""
    for field in schema.fields:
        present = file_schema.fields_by_id.get(field.field_id)
        if field.required and present is not None and not present.required:
            yield field


def _null_in(name: str) -> errors.IncompatibleChangeError:
    return errors.IncompatibleChangeError(f"required column {name!r} has nulls in it")


def _by_field_name(texts: Mapping[str, str], spec: pt.PartitionSpec) -> dict[str, str]:
    """Values of folders by the names of partition fields, as the case of folders does not matter."""
    lower = {name.lower(): text for name, text in texts.items()}
    by_name = {field.name: lower.get(field.name.lower()) for field in spec.fields}
    return {name: pt.HIVE_NULL if text == "" else text for name, text in by_name.items() if text is not None}


# -- which partition all rows of a file are of, as far as the statistics of its columns say


class _Doubt(Exception):
    """Why the statistics do not say which partition it is."""


class _Several(_Doubt):
    """They say that there is more than one."""


def _infer_partition(spec: pt.PartitionSpec, schema: Schema, metrics: Metrics, location: str) -> tuple[Value, ...]:
    """The one partition of all rows; an error if there are several, or the statistics do not say."""
    values = []
    for field in spec.fields:
        try:
            values.append(_partition_value(field, schema, metrics))
        except _Doubt as doubt:
            raise errors.InvalidInputError(f"{location}: no value of partition field {field.name!r}: {doubt}") from None
    return tuple(values)


def _check_partition(
    values: Sequence[Value], spec: pt.PartitionSpec, schema: Schema, metrics: Metrics, location: str
) -> None:
    """Fail if the statistics contradict the partition that folders name."""
    for field, value in zip(spec.fields, values, strict=True):
        try:
            in_rows = _partition_value(field, schema, metrics)
        except _Several as several:
            raise errors.InvalidInputError(
                f"{location}: its folders say that {field.name!r} is {value!r}, but {several}"
            ) from None
        except _Doubt:
            continue
        if in_rows != value and metrics.record_count:
            raise errors.InvalidInputError(
                f"{location}: its folders say that {field.name!r} is {value!r}, and its rows {in_rows!r}"
            )


def _partition_value(field: pt.PartitionField, schema: Schema, metrics: Metrics) -> Value:
    if isinstance(field.transform, tr.VoidTransform) or not metrics.record_count:
        return None
    source = field.source_id
    column, field_type = schema.names_by_id.get(source, str(source)), schema.fields_by_id[source].field_type
    nulls = metrics.null_value_counts.get(source)
    if nulls == metrics.record_count:
        return None
    lower, upper = metrics.lower_bounds.get(source), metrics.upper_bounds.get(source)
    if nulls is None or lower is None or upper is None:
        raise _Doubt(f"the file has no statistics of {column!r}")
    if isinstance(field_type, types.FloatType | types.DoubleType):
        # Bounds leave NaN out, and a footer does not count it.
        raise _Doubt(f"the statistics of {column!r} do not tell whether there is a NaN")
    if nulls:
        raise _Several(f"{column!r} is null in some rows only")
    low, high = decode(lower, field_type), decode(upper, field_type)
    apply = field.transform.apply
    if low == high or (field.transform.preserves_order and apply(low, field_type) == apply(high, field_type)):
        return apply(low, field_type)
    # Bounds of texts may have been cut by the writer, so two of them need not be two values.
    problem = _Doubt if isinstance(field_type, types.StringType | types.BinaryType) else _Several
    raise problem(f"rows have {column!r} from {low!r} to {high!r}, which are several partitions")
