"""What a task needs of the inside of variants, for its filter and for what is shown of them, and where in its batches that is.

Of Parquet files it comes from the reader, which then reads only the parts that are needed; of all others from the whole variants.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import expressions as ex, planning
from icefloe.formats.variant.extraction import Extraction, extract
from icefloe.schema import NestedField, Schema, field_to_arrow, types

Shown = Mapping[str, ex.BoundExtract]
"""Values inside of variants that are wanted as columns, by the names of these."""


def shown_fields(shown: Shown) -> list[pa.Field]:
    """The Arrow columns of what is shown."""
    return [field_to_arrow(NestedField(1, name, term.field_type), ids=False) for name, term in shown.items()]


class TaskExtracts:
    """The extracts of one task, whose batches have `columns` of the table at first."""

    def __init__(self, task: planning.FileScanTask, wanted: Schema, columns: Schema, shown: Shown) -> None:
        self._path = task.file.file_path
        self._shown = shown
        terms = ex.bound_terms(task.residual)
        self._filtered = sorted((term for term in terms if isinstance(term, ex.BoundExtract)), key=str)
        whole = {term.reference.field_id for term in terms if not isinstance(term, ex.BoundExtract)}
        whole |= set(wanted.fields_by_id)
        whole |= {field_id for deletes in task.equality_deletes for field_id in deletes.equality_ids or ()}
        self.extractions = [*map(_for_test, self._filtered), *map(_to_show, shown.values())]
        self.only = {extraction.field_id for extraction in self.extractions} - whole
        self.fields = shown_fields(shown)
        self._first = len(columns.fields)

    def for_filter(self, batch: pa.RecordBatch, *, is_read: bool) -> dict[ex.BoundExtract, pa.Array]:
        """What the terms of the filter are; `is_read`: the reader extracted it, behind the columns."""
        if not is_read:
            return {}
        return {term: batch.column(self._first + at) for at, term in enumerate(self._filtered)}

    def shown(self, batch: pa.RecordBatch, *, is_read: bool) -> list[pa.Array]:
        """The columns to show."""
        first = self._first + len(self._filtered)
        columns = []
        for at, (term, field) in enumerate(zip(self._shown.values(), self.fields, strict=True)):
            if is_read:
                values = batch.column(first + at)
            else:
                values = extract(_variants(batch, term.reference), _to_show(term), self._path)
            is_extension = isinstance(field.type, pa.BaseExtensionType)
            columns.append(pa.ExtensionArray.from_storage(field.type, values) if is_extension else values)
        return columns


def _for_test(term: ex.BoundExtract) -> Extraction:
    return Extraction(term.reference.field_id, term.path, term.field_type)


def _to_show(term: ex.BoundExtract) -> Extraction:
    kind = None if isinstance(term.field_type, types.VariantType) else term.field_type
    return Extraction(term.reference.field_id, term.path, kind)


def _variants(batch: pa.RecordBatch, reference: ex.BoundReference) -> pa.Array:
    column = batch.column(reference.names[0])
    return column if len(reference.names) == 1 else pc.struct_field(column, list(reference.names[1:]))
