"""What the readers of all file formats share: which columns are read, and how batches of them become the wanted rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from icefloe.avro import Source
from icefloe.errors import CorruptFileError, IcefloeError
from icefloe.formats.file_schema import columns_to_read, without_positions
from icefloe.formats.projection import project_batch
from icefloe.schema import NameMapping, Schema, Value, field_to_arrow, plan_projection, reserved

DEFAULT_BATCH_ROWS = 131_072
"""The most rows in one batch that a reader gives."""

Split = tuple[int, int]
"""Start and length of a part of a file, in bytes."""


class FileReader(ABC):
    """An open file, read as rows of the wanted schema. `_pos` among the wanted columns gives row positions.

    `source` is a seekable file. `constants` are values by field id for columns that the file lacks. Files without field ids
    need a name mapping. `file_schema` has the columns of the file.
    """

    def __init__(
        self,
        source: Source,
        location: str,
        wanted: Schema,
        *,
        mapping: NameMapping | None = None,
        constants: Mapping[int, Value] | None = None,
    ) -> None:
        self._source = source
        self._location = location
        self._wanted = wanted
        self.file_schema = self._open(mapping, constants)
        self._read_schema = self._columns_to_read(columns_to_read(wanted, self.file_schema, constants))
        self._stored = without_positions(wanted)
        self._plan = plan_projection(self._stored, self._read_schema, constants)

    _may_be_encoded = False
    """Whether texts may be given as dictionaries."""
    _format: str
    _damage: tuple[type[Exception], ...]
    """What libraries raise about the bytes of such a file."""

    @abstractmethod
    def _open(self, mapping: NameMapping | None, constants: Mapping[int, Value] | None) -> Schema:
        """Read what the file says of itself: the columns that it holds."""

    def _columns_to_read(self, needed: Schema) -> Schema:
        """The columns that are read for those that are needed."""
        return needed

    @abstractmethod
    def batches(self, split: Split | None = None, *, batch_rows: int = DEFAULT_BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Record batches of the wanted columns, in the order of the file.

        With a split, the rows of those parts of the file that begin in it.
        """

    def _pieces(self, batch: pa.RecordBatch, first_row: int, rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a batch as batches of the wanted columns; one without columns does not know its rows."""
        for start in range(0, rows, batch_rows):
            count = min(batch_rows, rows - start)
            piece = batch.slice(start, count) if batch.num_columns else batch
            yield self._projected(piece, first_row + start, count)

    def _projected(self, batch: pa.RecordBatch, first_row: int, rows: int) -> pa.RecordBatch:
        projected = project_batch(
            batch, self._plan, self._stored, self._location, rows, may_be_encoded=self._may_be_encoded
        )
        for index, field in enumerate(self._wanted.fields):
            if field.field_id == reserved.POS.field_id:
                positions = pa.array(np.arange(first_row, first_row + rows, dtype=np.int64))
                if not projected.num_columns:  # such a batch has forgotten how many rows it has
                    return pa.RecordBatch.from_arrays([positions], schema=pa.schema([field_to_arrow(field)]))
                return projected.add_column(index, field_to_arrow(field), positions)
        return projected

    @contextmanager
    def _corrupt(self) -> Iterator[None]:
        """Errors of libraries about the bytes of the file, as ours; so are errors of the system without a number."""
        try:
            yield
        except Exception as problem:  # which errors are meant is said by each format
            is_ours = isinstance(problem, IcefloeError)
            is_damage = isinstance(problem, self._damage) or (isinstance(problem, OSError) and problem.errno is None)
            if is_ours or not is_damage:
                raise
            raise CorruptFileError(self._location, f"it cannot be read as {self._format}: {problem}") from problem
