"""From a file that something else wrote to the entry that names it in a table: what it must hold, and what it says of itself.

Nothing is written and nothing is read but footers, unless only the rows can tell that a required column has no nulls.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from icefloe import properties as props
from icefloe.avro import avro_name
from icefloe.data.foreign_partitions import check_told, infer_partition
from icefloe.data.opening import open_file, partition_constants
from icefloe.data.scanning import default_workers
from icefloe.errors import IncompatibleChangeError, InvalidInputError, NoSuchColumnError
from icefloe.formats.field_ids import misplaced_ids, missing_ids, variant_ids
from icefloe.formats.file_formats import AVRO, ORC, PARQUET, file_reader
from icefloe.formats.file_schema import file_columns
from icefloe.formats.metrics import FULL, Metrics, MetricsMode, metrics_modes
from icefloe.formats.parquet.metrics import parquet_metrics, split_offsets
from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.manifests import DataFile
from icefloe.metadata import TableMetadata
from icefloe.parallel import in_order
from icefloe.partitioning import HIVE_NULL, PartitionSpec, partition_values, split_hive_path
from icefloe.schema import (
    MAX_COLUMN_ID,
    NameMapping,
    NestedType,
    Schema,
    create_name_mapping,
    parse_name_mapping,
    reserved,
    select_ids,
)
from icefloe.storage import Storage, absolute_location, names_below

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

    files: tuple[DataFile, ...]
    need_mapping: bool


def find_files(storage: Storage, location: str, file_format: str) -> list[ForeignFile]:
    """The files of a folder, and of the `name=value` folders in it, or the one file that the location is.

    As Spark reads folders, names that begin with `_` or `.` are passed over, and so are folders that are no partitions.
    """
    root = location.rstrip("/")
    found = []
    for info in storage.list_prefix(root):
        *folders, name = names_below(root, info.location)
        if name.startswith(_HIDDEN) or not all("=" in each and not each.startswith(".") for each in folders):
            continue
        texts = split_hive_path("/".join(folders))
        found.append(ForeignFile(info.location, info.size, file_format, texts))
    if not found and storage.exists(root):
        return [ForeignFile(root, storage.stat(root).size, file_format, {})]
    return sorted(found, key=lambda each: each.location)


def foreign_file(storage: Storage, location: str) -> ForeignFile:
    """One file by its location; the ending says the format, and Parquet is what has no ending that is known."""
    place = absolute_location(location)
    ending = place.rpartition(".")[2].lower()
    return ForeignFile(place, storage.stat(place).size, ending if ending in (AVRO, ORC) else PARQUET)


def describe_files(
    files: Sequence[ForeignFile],
    metadata: TableMetadata,
    storage: Storage,
    spec: PartitionSpec | None = None,
    workers: int | None = None,
) -> ForeignFiles:
    """The entries of files, each checked against the table's schema and the partition that its folders name."""
    describe = _Describe(metadata, storage, metadata.spec() if spec is None else spec)
    found = list(in_order(describe, files, default_workers() if workers is None else workers, "icefloe-footers"))
    return ForeignFiles(tuple(file for file, _ in found), any(needs for _, needs in found))


def mapping_of(metadata: TableMetadata) -> NameMapping:
    """The table's name mapping; without one, every column by the name that it has now."""
    text = props.NAME_MAPPING.of(metadata.properties)
    return create_name_mapping(metadata.schema()) if text is None else parse_name_mapping(text)


class _Describe:
    """Looks at one file; threads share it."""

    def __init__(self, metadata: TableMetadata, storage: Storage, spec: PartitionSpec) -> None:
        self._metadata = metadata
        self._storage = storage
        self._schema = metadata.schema()
        self._spec = spec
        self._mapping = mapping_of(metadata)
        self._variants = variant_ids(metadata.schemas)
        self._modes = metrics_modes(self._schema, metadata.properties, metadata.sort_order())

    def __call__(self, given: ForeignFile) -> tuple[DataFile, bool]:
        bare = DataFile(given.location, given.file_format, 0, given.size, spec_id=self._spec.spec_id)
        try:
            with open_file(bare, self._storage) as source:
                return self._describe(given, source)
        except (IncompatibleChangeError, NoSuchColumnError) as problem:
            raise type(problem)(f"{given.location} cannot be added: {problem}") from None

    def _describe(self, given: ForeignFile, source: Any) -> tuple[DataFile, bool]:
        probe = file_reader(given.file_format, source, given.location, Schema(reserved.POS))
        footer = probe.footer if isinstance(probe, ParquetFileReader) else None
        rows = sum(each.num_rows for each in probe.batches()) if footer is None else footer.num_rows
        self._check_ids(probe.file_schema)
        partition = self._partition(given, footer)
        bare = DataFile(
            given.location, given.file_format, rows, given.size, spec_id=self._spec.spec_id, partition=partition
        )
        constants = partition_constants(bare, self._metadata)
        reader = self._reader(given, source, self._schema, constants)
        metrics = Metrics(rows) if footer is None else self._metrics(footer, reader.file_schema, self._modes)
        self._check_nulls(given, source, reader.file_schema, constants, footer)
        file = DataFile(
            given.location,
            given.file_format,
            rows,
            given.size,
            spec_id=self._spec.spec_id,
            partition=partition,
            column_sizes=metrics.column_sizes,
            value_counts=metrics.value_counts,
            null_value_counts=metrics.null_value_counts,
            nan_value_counts=metrics.nan_value_counts,
            lower_bounds=metrics.lower_bounds,
            upper_bounds=metrics.upper_bounds,
            split_offsets=None if footer is None else split_offsets(footer) or None,
        )
        return file, any(field_id < 0 for field_id in probe.file_schema.fields_by_id)

    def _reader(self, given: ForeignFile, source: Any, wanted: Schema, constants: Mapping[int, Any]) -> Any:
        source.seek(0)
        return file_reader(
            given.file_format, source, given.location, wanted, mapping=self._mapping, constants=constants
        )

    def _metrics(self, footer: Any, file_schema: Schema, modes: Mapping[int, MetricsMode]) -> Metrics:
        return parquet_metrics(footer, self._schema, modes, file_schema=file_schema)

    def _check_ids(self, found: Schema) -> None:
        """A file has ids everywhere or nowhere, and those of a file of another table mean other columns there.

        Where a file has ids, no reader looks at the names of columns, so one without would be null for ever.
        """
        schemas, variants = self._metadata.schemas, self._variants
        missing = missing_ids(found, variants)
        if not any(field_id >= 0 for field_id in found.fields_by_id):
            return
        if missing:
            raise IncompatibleChangeError(
                f"{', '.join(map(repr, missing))} in it has no field id, as other columns have; write the file with ids"
                " everywhere, or without any"
            )
        self._check_names(found)
        if misplaced := misplaced_ids(found, schemas, variants):
            raise IncompatibleChangeError(f"its column {misplaced[0]} in the table; was it written for another table?")
        if later := [each for each in found.fields_by_id if self._metadata.last_column_id < each <= MAX_COLUMN_ID]:
            raise IncompatibleChangeError(
                f"its column {found.names_by_id[later[0]]!r} has the field id {later[0]}, which the table has not given to a"
                " column yet, and will give to another; was it written for another table?"
            )

    def _check_names(self, found: Schema) -> None:
        for field in found.fields:
            own = [
                each.fields_by_id[field.field_id]
                for each in self._metadata.schemas
                if field.field_id in each.fields_by_id
            ]
            names = {name for each in own for name in (each.name, avro_name(each.name))}
            if names and field.name.lower() not in map(str.lower, names):
                raise IncompatibleChangeError(
                    f"its column {field.name!r} has the field id {field.field_id}, which is that of"
                    f" {sorted(names)[0]!r} in the table; was it written for another table?"
                )
            if names and field.name not in names and isinstance(field.field_type, NestedType):
                raise IncompatibleChangeError(
                    f"its column {field.name!r} is {sorted(names)[0]!r} in the table, and Spark finds nested columns by name;"
                    " write the file with the name that the table has"
                )

    def _partition(self, given: ForeignFile, footer: Any) -> tuple[Any, ...]:
        if not self._spec.fields:
            return ()
        told = _by_field_name(
            split_hive_path(given.location) if given.partition is None else given.partition, self._spec
        )
        metrics, columns = None, frozenset[int]()
        if footer is not None:
            ids = {field.source_id for field in self._spec.fields}
            file_schema = file_columns(footer.schema.to_arrow_schema(), self._schema, self._mapping)
            columns = frozenset(ids & file_schema.fields_by_id.keys())
            metrics = self._metrics(footer, file_schema, dict.fromkeys(ids, FULL))
        if all(field.name in told for field in self._spec.fields):
            values = partition_values(told, self._spec, self._schema)
            if metrics is not None:
                check_told(values, self._spec, self._schema, metrics, given.location)
            return values
        if metrics is None or not columns:
            names = ", ".join(field.name for field in self._spec.fields)
            raise InvalidInputError(
                f"{given.location} says nothing of its partition; put it into folders named by {names}, as in"
                f" {self._spec.fields[0].name}=value"
            )
        return infer_partition(self._spec, self._schema, metrics, given.location)

    def _check_nulls(
        self, given: ForeignFile, source: Any, file_schema: Schema, constants: Mapping[int, Any], footer: Any
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
        for batch in self._reader(given, source, wanted, constants).batches():
            for field, column in zip(wanted.fields, batch.columns, strict=True):
                if column.null_count:
                    raise _null_in(field.name)


def _required(schema: Schema, file_schema: Schema) -> Iterator[Any]:
    """The required columns of the table that the file has as optional ones."""
    for field in schema.fields:
        present = file_schema.fields_by_id.get(field.field_id)
        if field.required and present is not None and not present.required:
            yield field


def _null_in(name: str) -> IncompatibleChangeError:
    return IncompatibleChangeError(f"required column {name!r} has nulls in it")


def _by_field_name(texts: Mapping[str, str], spec: PartitionSpec) -> dict[str, str]:
    """Values of folders by the names of partition fields, as which case folders have them does not matter."""
    lower = {name.lower(): text for name, text in texts.items()}
    found = {field.name: lower.get(field.name.lower()) for field in spec.fields}
    return {name: HIVE_NULL if text == "" else text for name, text in found.items() if text is not None}
