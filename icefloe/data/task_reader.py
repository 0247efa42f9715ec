"""How one task becomes Arrow batches of the wanted columns: pruned, projected, without deleted and unwanted rows."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from icefloe import properties as props
from icefloe.data.layout import columns_to_read, table_columns
from icefloe.data.metadata_columns import RowFacts, metadata_array
from icefloe.data.opening import open_file, partition_constants
from icefloe.data.task_deletes import DeleteLoader, TaskDeletes
from icefloe.expressions import AlwaysFalse, AlwaysTrue, mask
from icefloe.formats.file_formats import file_reader
from icefloe.formats.file_reading import DEFAULT_BATCH_ROWS
from icefloe.formats.parquet.metrics import row_group_filter
from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.formats.projection import project_batch
from icefloe.metadata import TableMetadata
from icefloe.planning import FileScanTask
from icefloe.schema import (
    NameMapping,
    ProjectStruct,
    Schema,
    parse_name_mapping,
    plan_projection,
    reserved,
    schema_to_arrow,
)
from icefloe.storage import Storage


@dataclass(frozen=True)
class ReadContext:
    """What the tasks of one scan share. Not slotted, for what is made once, when first asked for."""

    metadata: TableMetadata
    storage: Storage
    batch_rows: int = DEFAULT_BATCH_ROWS
    prune_row_groups: bool = field(default=True, kw_only=True)
    """Whether row groups of Parquet files are left out by their statistics; off only to check that it changes nothing."""

    @cached_property
    def deletes(self) -> DeleteLoader:
        """Reads the deletes of tasks, once where tasks share them."""
        return DeleteLoader(self.metadata, self.storage)

    @cached_property
    def name_mapping(self) -> NameMapping | None:
        """The ids of columns of files that have none."""
        text = props.NAME_MAPPING.of(self.metadata.properties)
        return None if text is None else parse_name_mapping(text)


def read_task(task: FileScanTask, wanted: Schema, context: ReadContext) -> Iterator[Any]:
    """Record batches of the wanted columns, in the order of the file; none of them empty.

    Deleted rows are left out, unless `_deleted` is wanted, which tells them. The file is closed with the iterator.
    """
    if isinstance(task.residual, AlwaysFalse):
        return
    columns = columns_to_read(task, wanted, context.metadata)
    deletes = context.deletes.load(task, columns)
    finish = _Finish(task, wanted, columns, context.metadata)
    with open_file(task.file, context.storage) as source:
        reader = file_reader(
            task.file.file_format,
            source,
            task.file.file_path,
            columns,
            mapping=context.name_mapping,
            constants=partition_constants(task.file, context.metadata),
        )
        for batch in _batches(reader, task, columns, context):
            found = finish.batch(batch, deletes)
            if found.num_rows:
                yield found


def _batches(reader: Any, task: FileScanTask, columns: Schema, context: ReadContext) -> Iterator[Any]:
    split = None if task.is_whole_file else (task.start, task.data_bytes)
    if isinstance(reader, ParquetFileReader):
        prune = context.prune_row_groups and not isinstance(task.residual, AlwaysTrue)
        groups = row_group_filter(task.residual, columns) if prune else None
        yield from reader.batches(split, groups, context.batch_rows)
    else:
        yield from reader.batches(split, batch_rows=context.batch_rows)


class _Finish:
    """Makes batches of the wanted columns from batches of the columns that were read."""

    def __init__(self, task: FileScanTask, wanted: Schema, columns: Schema, metadata: TableMetadata) -> None:
        self._task = task
        self._wanted = wanted
        self._metadata = metadata
        self._target = schema_to_arrow(wanted)
        self._plain = table_columns(wanted)
        self._places = {each.field_id: place for place, each in enumerate(columns.fields)}
        self._marks_deleted = any(each.field_id == reserved.DELETED.field_id for each in wanted.fields)
        self._is_same = columns.fields[: len(self._plain.fields)] == self._plain.fields
        self._plan: ProjectStruct | None = None if self._is_same else plan_projection(self._plain, columns)

    def batch(self, batch: Any, deletes: TaskDeletes) -> Any:
        """The wanted rows and columns of a batch."""
        positions = self._column(batch, reserved.POS.field_id)
        deleted = deletes.mask(batch, None if positions is None else positions.to_numpy())
        keep = None if deleted is None or self._marks_deleted else ~deleted
        if not isinstance(self._task.residual, AlwaysTrue):
            matching = np.asarray(mask(self._task.residual, batch))
            keep = matching if keep is None else keep & matching
        if keep is not None and not keep.all():
            batch = batch.filter(pa.array(keep))
            deleted = None if deleted is None else deleted[keep]
        return self._assemble(batch, deleted)

    def _assemble(self, batch: Any, deleted: Any) -> Any:
        facts = RowFacts(
            self._task,
            batch.num_rows,
            self._column(batch, reserved.POS.field_id),
            self._column(batch, reserved.ROW_ID.field_id),
            self._column(batch, reserved.LAST_UPDATED_SEQUENCE_NUMBER.field_id),
            deleted,
        )
        plain = iter(self._table_columns(batch))
        arrays = [
            metadata_array(each, facts, self._metadata) if reserved.is_reserved_id(each.field_id) else next(plain)
            for each in self._wanted.fields
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._target)

    def _table_columns(self, batch: Any) -> list[Any]:
        if self._plan is None:
            return list(batch.columns[: len(self._plain.fields)])
        found: list[Any] = project_batch(batch, self._plan, self._plain, self._task.file.file_path).columns
        return found

    def _column(self, batch: Any, field_id: int) -> Any:
        place = self._places.get(field_id)
        return None if place is None else batch.column(place)
