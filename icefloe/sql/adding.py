"""`add_files`: which files of a folder, or of a table that is not Iceberg's, become part of a table as they are."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from icefloe.catalog import Identifier, parse_namespace, show
from icefloe.data import ForeignFile, find_files
from icefloe.errors import InvalidInputError, InvalidValueError
from icefloe.formats.file_formats import DATA_FORMATS
from icefloe.metadata import TableMetadata, summary as totals
from icefloe.partitioning import HIVE_NULL, PartitionSpec, partition_values, transforms as tr
from icefloe.schema import Value
from icefloe.sql.calling import Call, ForeignTable, Rows
from icefloe.storage import Storage, absolute_location

Filter = Mapping[str, str | None]
"""Partitions to take: values as text, by column; None is null."""


def add_files(call: Call) -> Rows:
    """Run the procedure: one row with the number of files that were added, and of partitions that they are in."""
    workers = call.get("parallelism")
    if workers is not None and workers < 1:
        raise InvalidInputError(f"parallelism is {workers}; it must be 1 or more")
    table, name = call.table(), show(call.identifier())
    source = parse_namespace(call.get("source_table"))
    partition_filter: Filter = call.get("partition_filter") or {}
    foreign = _folder(source) or call.find_foreign(source)
    files = _files(foreign, table.storage)
    if not files:
        _check_folder(foreign.location, table.storage)
    spec = _matching_spec(_columns(foreign, files), table.metadata, name)
    _check_filter(partition_filter, spec, name)
    chosen = [file for file in files if _matches(file, partition_filter, spec, table.metadata)]
    if spec.fields and files and not chosen:
        raise InvalidInputError(f"{show(source)} has no partition that matches {dict(partition_filter)}")
    with table.transaction() as tx:
        snapshot = tx.add_files(
            chosen,
            check_duplicate_files=call.get("check_duplicate_files") is not False,
            spec_id=spec.spec_id,
            workers=workers,
        )
    if snapshot is None or snapshot.summary is None:
        return [(0, 0)]
    counts = (snapshot.summary.properties.get(key) for key in (totals.ADDED_DATA_FILES, totals.CHANGED_PARTITION_COUNT))
    return [tuple(int(count or 0) for count in counts)]


def _folder(source: Identifier) -> ForeignTable | None:
    """``parquet.`folder` ``: files by their location."""
    if len(source) != 2 or source[0].lower() not in DATA_FORMATS:
        return None
    return ForeignTable(absolute_location(source[1]), source[0].lower())


def _files(foreign: ForeignTable, storage: Storage) -> list[ForeignFile]:
    if foreign.partitions is None:
        return find_files(storage, foreign.location, foreign.file_format)
    return [
        replace(file, partition=partition.values)
        for partition in foreign.partitions
        for file in find_files(storage, partition.location, foreign.file_format)
        if not file.partition
    ]


def _check_folder(location: str, storage: Storage) -> None:
    """A folder may be empty, but it must be there."""
    around, _, name = location.rstrip("/").rpartition("/")
    if name not in storage.list_folders(around):
        raise InvalidInputError(f"{location} is neither a file nor a folder with files")


def _columns(foreign: ForeignTable, files: Sequence[ForeignFile]) -> tuple[str, ...]:
    """The partition columns of the source, in the order of its folders, the same for all of them."""
    if foreign.partition_columns or foreign.partitions is not None:
        return foreign.partition_columns
    examples = {tuple(file.partition or ()): file.location for file in files}
    if len(examples) > 1:
        first, second, *_ = examples.items()
        raise InvalidInputError(
            f"{foreign.location} has files by ({', '.join(first[0])}), as {first[1]}, and by ({', '.join(second[0])}),"
            f" as {second[1]}; the folders of all files must have the same names"
        )
    return next(iter(examples), ())


def _matching_spec(columns: Sequence[str], metadata: TableMetadata, name: str) -> PartitionSpec:
    """The spec of the table with these columns, as they are, in this order."""
    names = [column.lower() for column in columns]
    for spec in (metadata.spec(), *metadata.specs_by_id.values()):
        if all(isinstance(field.transform, tr.IdentityTransform) for field in spec.fields) and (
            [field.name.lower() for field in spec.fields] == names
        ):
            return spec
    raise InvalidInputError(
        f"table {name} has no partition spec of the columns ({', '.join(columns)}) that the source is partitioned by;"
        f" it is partitioned by {metadata.spec()}"
    )


def _check_filter(partition_filter: Filter, spec: PartitionSpec, name: str) -> None:
    names = [field.name for field in spec.fields]
    for column in partition_filter:
        if column not in names:
            raise InvalidInputError(
                f"partition_filter names {column!r}; table {name} is"
                + (f" partitioned by {', '.join(names)}" if names else " not partitioned, so leave the filter out")
            )


def _matches(file: ForeignFile, partition_filter: Filter, spec: PartitionSpec, metadata: TableMetadata) -> bool:
    if not partition_filter:
        return True
    held = {name.lower(): text for name, text in (file.partition or {}).items()}
    asked = PartitionSpec(*(field for field in spec.fields if field.name in partition_filter))
    texts = {field.name: held[field.name.lower()] for field in asked.fields}
    try:
        return _values(texts, asked, metadata) == _values(partition_filter, asked, metadata)
    except InvalidValueError as problem:
        raise InvalidInputError(f"partition_filter, or a folder of {file.location}: {problem}") from None


def _values(texts: Filter, spec: PartitionSpec, metadata: TableMetadata) -> tuple[Value, ...]:
    plain = {name: HIVE_NULL if text is None else text for name, text in texts.items()}
    return partition_values(plain, spec, metadata.schema())
