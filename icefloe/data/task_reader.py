"""How one task becomes Arrow batches of the wanted columns: pruned, projected, without deleted and unwanted rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, expressions as ex, manifests as mf, metadata as md, planning, properties as props
from icefloe.avro import Source
from icefloe.data.extracts import Shown, TaskExtracts
from icefloe.data.layout import columns_to_read, table_columns
from icefloe.data.opening import partition_by_field, partition_constants
from icefloe.data.task_deletes import DeleteLoader, TaskDeletes
from icefloe.formats.file_formats import PARQUET, reader_of
from icefloe.formats.file_reading import FileReader
from icefloe.formats.parquet.metrics import row_group_filter
from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.formats.projection import constant_array, decoded, project_batch
from icefloe.schema import NameMapping, Schema, parse_name_mapping, plan_projection, reserved, schema_to_arrow, types
from icefloe.storage import Storage

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ReadContext:
    """What the tasks of one scan share. Not slotted, for what is made once, when first asked for."""

    metadata: md.TableMetadata
    storage: Storage

    @cached_property
    def deletes(self) -> DeleteLoader:
        """Reads the deletes of tasks, once where tasks share them."""
        return DeleteLoader(self.metadata, self.storage)

    @cached_property
    def name_mapping(self) -> NameMapping | None:
        """The ids of columns of files that have none."""
        text = props.NAME_MAPPING.of(self.metadata.properties)
        return None if text is None else parse_name_mapping(text)


def read_task(
    task: planning.FileScanTask, wanted: Schema, context: ReadContext, shown: Shown | None = None
) -> Iterator[pa.RecordBatch]:
    """Record batches of the wanted columns, in the order of the file; none of them empty. Behind them stands what is `shown`.

    Deleted rows are left out, unless `_deleted` is wanted, which marks them. The file is closed with the iterator.
    """
    if isinstance(task.residual, ex.AlwaysFalse):
        return
    inside = () if shown is None else tuple(term.reference for term in shown.values())
    columns = columns_to_read(task, wanted, context.metadata, inside)
    deletes = context.deletes.load(task, columns)
    extracts = TaskExtracts(task, wanted, columns, shown or {})
    finish = _Finish(task, wanted, columns, context.metadata, extracts)
    with mf.open_file(task.file, context.storage) as source:
        reader = _reader(source, task, columns, context, extracts)
        for batch in _batches(reader, task, columns):
            finished = finish.batch(batch, deletes)
            if finished.num_rows:
                yield finished


def _reader(
    source: Source, task: planning.FileScanTask, columns: Schema, context: ReadContext, extracts: TaskExtracts
) -> FileReader:
    kind: Callable[..., FileReader] = reader_of(task.file.file_format)
    if kind is ParquetFileReader:
        # Dictionaries are of use to the filter; deletes look at the values.
        may_be_encoded = not isinstance(task.residual, ex.AlwaysTrue) and not task.equality_deletes
        kind = partial(
            kind,
            extractions=extracts.extractions,
            extracted_only=extracts.only,
            may_be_encoded=may_be_encoded,
        )
    constants = partition_constants(task.file, context.metadata)
    return kind(source, task.file.file_path, columns, mapping=context.name_mapping, constants=constants)


def _batches(reader: FileReader, task: planning.FileScanTask, columns: Schema) -> Iterator[pa.RecordBatch]:
    split = None if task.is_whole_file else (task.start, task.data_bytes)
    if isinstance(reader, ParquetFileReader) and not isinstance(task.residual, ex.AlwaysTrue):
        return reader.batches(split, row_group_filter(task.residual, columns))
    return reader.batches(split)


class _Finish:
    """Makes batches of the wanted columns from batches of the columns that were read."""

    def __init__(
        self,
        task: planning.FileScanTask,
        wanted: Schema,
        columns: Schema,
        metadata: md.TableMetadata,
        extracts: TaskExtracts,
    ) -> None:
        self._task = task
        self._extracts = extracts
        self._is_extracted = task.file.file_format.lower() == PARQUET
        self._wanted = wanted
        self._metadata = metadata
        self._target = pa.schema([*schema_to_arrow(wanted), *extracts.fields])
        self._plain = table_columns(wanted)
        self._indices = {field.field_id: index for index, field in enumerate(columns.fields)}
        self._marks_deleted = any(field.field_id == reserved.DELETED.field_id for field in wanted.fields)
        is_same = columns.fields[: len(self._plain.fields)] == self._plain.fields
        self._plan = None if is_same else plan_projection(self._plain, columns)

    def batch(self, batch: pa.RecordBatch, deletes: TaskDeletes) -> pa.RecordBatch:
        """The wanted rows and columns of a batch."""
        positions = self._column(batch, reserved.POS)
        deleted = deletes.mask(batch, None if positions is None else positions.to_numpy())
        keep = None if deleted is None or self._marks_deleted else pa.array(~deleted)
        if not isinstance(self._task.residual, ex.AlwaysTrue):
            matching = self._matching(batch)
            keep = matching if keep is None else pc.and_(keep, matching)
        if keep is not None and keep.true_count < len(keep):
            batch = batch.filter(keep)
            deleted = None if deleted is None else deleted[keep.to_numpy(zero_copy_only=False)]
        plain = iter(self._table_columns(batch))
        arrays = [
            self._metadata_column(field, batch, deleted) if reserved.is_reserved_id(field.field_id) else next(plain)
            for field in self._wanted.fields
        ]
        arrays += self._extracts.shown(batch, is_read=self._is_extracted)
        return pa.RecordBatch.from_arrays(arrays, schema=self._target)

    def _matching(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Which rows match what is left of the filter."""
        try:
            known = self._extracts.for_filter(batch, is_read=self._is_extracted)
            return ex.mask(self._task.residual, batch, known)
        except errors.InvalidValueError as error:
            # A variant or a shape that another program wrote.
            raise errors.CorruptFileError(
                self._task.file.file_path, f"a value that the filter needs cannot be read: {error}"
            ) from error

    def _table_columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        if self._plan is None:
            return [decoded(column) for column in batch.columns[: len(self._plain.fields)]]
        return list(project_batch(batch, self._plan, self._plain, self._task.file.file_path).columns)

    def _column(self, batch: pa.RecordBatch, field: types.NestedField) -> pa.Array | None:
        index = self._indices.get(field.field_id)
        return None if index is None else batch.column(index)

    def _metadata_column(self, field: types.NestedField, batch: pa.RecordBatch, deleted: Mask | None) -> pa.Array:
        """What a metadata column holds for these rows (spec: Reserved Field IDs, Row Lineage)."""
        task, rows = self._task, batch.num_rows
        match field.field_id:
            case reserved.FILE.field_id:
                return constant_array(task.file.file_path, field.field_type, pa.string(), rows)
            case reserved.POS.field_id:
                return self._column(batch, reserved.POS)
            case reserved.DELETED.field_id:
                return pa.array(np.zeros(rows, np.bool_) if deleted is None else deleted)
            case reserved.SPEC_ID.field_id:
                return constant_array(task.spec_id, field.field_type, pa.int32(), rows)
            case reserved.PARTITION_ID if isinstance(field.field_type, types.StructType):
                # A struct of the fields of all specs; those that the file's spec lacks are null.
                values = partition_by_field(task.file, self._metadata.specs_by_id, field.field_type.fields)
                target = self._target.field(field.name).type
                return constant_array(tuple(values.items()), field.field_type, target, rows)
            case reserved.ROW_ID.field_id | reserved.LAST_UPDATED_SEQUENCE_NUMBER.field_id if task.first_row_id is None:
                return pa.nulls(rows, pa.int64())
            case reserved.ROW_ID.field_id:
                positions = self._column(batch, reserved.POS)
                return pc.coalesce(self._column(batch, field), pc.add(positions, task.first_row_id))
            case reserved.LAST_UPDATED_SEQUENCE_NUMBER.field_id:
                return pc.fill_null(self._column(batch, field), task.known_sequence_number)
            case _:
                raise errors.InvalidInputError(f"the metadata column {field.name!r} is not known to a scan of files")
