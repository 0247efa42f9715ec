"""`add_files`: which files of a folder, or of a table that is not Iceberg's, become part of a table as they are."""

from collections.abc import Mapping, Sequence

from icefloe.catalog import parse_namespace, show
from icefloe.data import ForeignFile, check_folder
from icefloe.errors import InvalidInputError, InvalidValueError
from icefloe.metadata import TableMetadata, summary as totals
from icefloe.partitioning import HIVE_NULL, PartitionSpec, partition_values, transforms as tr
from icefloe.schema import Value
from icefloe.sql.calling import Call, Rows, folder_named

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
    foreign = folder_named(source) or call.foreign.find(source)
    files = foreign.files(table.storage)
    if not files:
        check_folder(foreign.location, table.storage)
    spec = _matching_spec(foreign.columns_of_partitions(files), table.metadata, name)
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
