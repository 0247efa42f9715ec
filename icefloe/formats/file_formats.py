"""Which writer and reader stand for the name of a file format, as manifests and properties have it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from icefloe.errors import InvalidPropertyError
from icefloe.formats.avro_reader import AvroFileReader
from icefloe.formats.avro_writer import AvroFileWriter
from icefloe.formats.metrics import MetricsMode
from icefloe.formats.orc.reader import OrcFileReader
from icefloe.formats.orc.writer import OrcFileWriter
from icefloe.formats.parquet.footer import Sink
from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.formats.parquet.writer import ParquetFileWriter
from icefloe.formats.written_file import WrittenFile
from icefloe.partitioning import UNSORTED, SortOrder
from icefloe.schema import NameMapping, Schema

PARQUET, AVRO, ORC = "parquet", "avro", "orc"
DATA_FORMATS = (PARQUET, AVRO, ORC)
"""The formats that hold rows."""

_DELETE_PREFIXES = tuple(f"write.delete.{each}." for each in DATA_FORMATS)


class FileWriter(Protocol):
    """Writes batches to a file; see the writers of the formats."""

    @property
    def bytes_written(self) -> int:
        """About how large the file would be if it were closed now."""
        ...

    def write(self, batch: Any) -> None:
        """Take in a record batch or table with the columns of the schema, found by name."""
        ...

    def close(self) -> WrittenFile:
        """Finish the file, and say what it holds. The sink is left open."""
        ...


class FileReader(Protocol):
    """Reads a file as rows of the wanted schema; see the readers of the formats."""

    file_schema: Schema

    def batches(self, split: tuple[int, int] | None = None, *, batch_rows: int = ...) -> Iterator[Any]:
        """Record batches of the wanted columns, in the order of the file."""
        ...


_WRITERS: dict[str, Callable[..., FileWriter]] = {
    PARQUET: ParquetFileWriter,
    AVRO: AvroFileWriter,
    ORC: OrcFileWriter,
}
_READERS: dict[str, Callable[..., FileReader]] = {PARQUET: ParquetFileReader, AVRO: AvroFileReader, ORC: OrcFileReader}


def file_writer(
    file_format: str,
    sink: Sink,
    schema: Schema,
    properties: Mapping[str, str] | None = None,
    *,
    sort_order: SortOrder = UNSORTED,
    modes: dict[int, MetricsMode] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> FileWriter:
    """A writer of a file of that format."""
    kind = _WRITERS[_known(file_format)]
    return kind(sink, schema, properties, sort_order=sort_order, modes=modes, metadata=metadata)


def file_reader(
    file_format: str,
    source: Any,
    location: str,
    wanted: Schema,
    *,
    mapping: NameMapping | None = None,
    constants: Mapping[int, Any] | None = None,
) -> FileReader:
    """A reader of a file of that format."""
    kind = _READERS[_known(file_format)]
    return kind(source, location, wanted, mapping=mapping, constants=constants)


def delete_file_properties(properties: Mapping[str, str] | None) -> dict[str, str]:
    """The settings of data files with those that the table has for delete files in their place."""
    found = dict(properties or {})
    for key, text in (properties or {}).items():
        if key.startswith(_DELETE_PREFIXES):
            found[key.replace("write.delete.", "write.", 1)] = text
    return found


def _known(file_format: str) -> str:
    name = file_format.lower()
    if name not in _WRITERS:
        raise InvalidPropertyError(
            f"file format {file_format!r} does not hold rows; those that do are {', '.join(DATA_FORMATS)}"
        )
    return name
