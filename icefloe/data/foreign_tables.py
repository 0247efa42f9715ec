"""Tables of files that are not Iceberg's: where their files are, and what their columns are if nobody says."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from icefloe import errors, parallel, partitioning as pt
from icefloe.data.foreign_files import ForeignFile, find_files
from icefloe.data.scanning import default_workers
from icefloe.formats.file_formats import reader_of
from icefloe.schema import Schema, assign_fresh_type_ids, reserved, types
from icefloe.storage import Storage


@dataclass(frozen=True, slots=True)
class ForeignPartition:
    """Where files of a table that is not Iceberg's are, and what they have in common: values as text, by column."""

    location: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ForeignTable:
    """A table of files that is not Iceberg's; without `partitions`, the folders of its location name them."""

    location: str
    file_format: str
    partition_columns: tuple[str, ...] = ()
    partitions: tuple[ForeignPartition, ...] | None = None
    schema: Schema | None = None
    """Its columns, those of partitions among them; without it, they are those of its files."""
    properties: Mapping[str, str] = field(default_factory=dict)
    name: tuple[str, ...] = ()
    """What its catalog calls it, if it is in one."""
    is_managed: bool = False
    """Whether its catalog deletes its files with it, and moves them with its name."""
    is_bucketed: bool = False
    """Whether its rows are spread over files in a way of Hive's or Spark's."""

    def files(self, storage: Storage) -> list[ForeignFile]:
        """Its files, with the values of their partitions."""
        if self.partitions is None:
            return find_files(storage, self.location, self.file_format)
        return [
            replace(file, partition=partition.values)
            for partition in self.partitions
            for file in find_files(storage, partition.location, self.file_format)
            if not file.partition
        ]

    def check_folders(self, storage: Storage) -> None:
        """A folder may be empty, but it must be there."""
        folders = [partition.location for partition in self.partitions or ()] or [self.location]
        for location in folders:
            check_folder(location, storage)

    def columns_of_partitions(self, files: Sequence[ForeignFile]) -> tuple[str, ...]:
        """The partition columns, in the order of the folders, the same for all of them."""
        if self.partition_columns or self.partitions is not None:
            return self.partition_columns
        examples = {tuple(file.partition or ()): file.location for file in files}
        if len(examples) > 1:
            first, second, *_ = examples.items()
            raise errors.InvalidInputError(
                f"{self.location} has files by ({', '.join(first[0])}), as {first[1]}, and by ({', '.join(second[0])}),"
                f" as {second[1]}; the folders of all files must have the same names"
            )
        return next(iter(examples), ())


def check_folder(location: str, storage: Storage) -> None:
    """A folder may be empty, but it must be there."""
    around, _, name = location.rstrip("/").rpartition("/")
    if name not in storage.list_folders(around) and not storage.exists(location):
        raise errors.InvalidInputError(f"{location} is neither a file nor a folder with files")


def inferred_schema(files: Sequence[ForeignFile], partition_columns: Sequence[str], storage: Storage) -> Schema:
    """The columns of all files by name, and those of their folders, whose types are as their texts look; all optional."""

    def with_schema(file: ForeignFile) -> tuple[ForeignFile, Schema]:
        with storage.open_input(file.location, size=file.size) as source:
            return file, reader_of(file.file_format)(source, file.location, Schema(reserved.POS)).file_schema

    columns: dict[str, types.NestedField] = {}
    for file, schema in parallel.in_order(with_schema, files, default_workers(), "icefloe-schemas"):
        for column in schema.fields:
            known = columns.setdefault(column.name, column)
            if _plain(known) != _plain(column):
                raise errors.InvalidInputError(
                    f"column {column.name!r} is {column.field_type} in {file.location}, and {known.field_type} in other files;"
                    " give the schema that the table shall have"
                )
    for name in partition_columns:
        texts = {(file.partition or {}).get(name, pt.HIVE_NULL) for file in files} - {pt.HIVE_NULL, ""}
        columns.setdefault(name, types.NestedField(0, name, _type_of(texts)))
    return _numbered(columns)


def _numbered(columns: Mapping[str, types.NestedField]) -> Schema:
    new_id = count(1).__next__
    return Schema(
        *(
            types.NestedField(new_id(), name, assign_fresh_type_ids(column.field_type, new_id))
            for name, column in columns.items()
        )
    )


def _plain(column: types.NestedField) -> types.IcebergType:
    """The type of a column, whatever ids its file has inside of it."""
    return assign_fresh_type_ids(column.field_type, count(1).__next__)


def _type_of(texts: set[str]) -> types.IcebergType:
    """The type that all texts are written in."""
    if texts and all(_is(text, int) and str(int(text)) == text for text in texts):
        return types.LongType()
    if texts and all(_is(text, dt.date.fromisoformat) for text in texts):
        return types.DateType()
    return types.StringType()


def _is(text: str, parse: Callable[[str], object]) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True
