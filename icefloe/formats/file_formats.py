"""Which writer and reader stand for the name of a file format, as manifests and properties have it."""

from collections.abc import Mapping

from icefloe.errors import InvalidPropertyError
from icefloe.formats.avro_reader import AvroFileReader
from icefloe.formats.avro_writer import AvroFileWriter
from icefloe.formats.file_reading import FileReader
from icefloe.formats.file_writing import FileWriter
from icefloe.formats.orc.reader import OrcFileReader
from icefloe.formats.orc.writer import OrcFileWriter
from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.formats.parquet.writer import ParquetFileWriter

PARQUET, AVRO, ORC = "parquet", "avro", "orc"
DATA_FORMATS = (PARQUET, AVRO, ORC)
"""The formats that hold rows."""

_DELETE_PREFIXES = tuple(f"write.delete.{file_format}." for file_format in DATA_FORMATS)


_WRITERS: dict[str, type[FileWriter]] = {PARQUET: ParquetFileWriter, AVRO: AvroFileWriter, ORC: OrcFileWriter}
_READERS: dict[str, type[FileReader]] = {PARQUET: ParquetFileReader, AVRO: AvroFileReader, ORC: OrcFileReader}


def writer_of(file_format: str) -> type[FileWriter]:
    """The writer of files of that format."""
    return _WRITERS[_known(file_format)]


def reader_of(file_format: str) -> type[FileReader]:
    """The reader of files of that format."""
    return _READERS[_known(file_format)]


def delete_file_properties(properties: Mapping[str, str] | None) -> dict[str, str]:
    """The settings of data files with those that the table has for delete files in their place."""
    settings = dict(properties or {})
    return settings | {
        key.replace("write.delete.", "write.", 1): text
        for key, text in settings.items()
        if key.startswith(_DELETE_PREFIXES)
    }


def _known(file_format: str) -> str:
    name = file_format.lower()
    if name not in _WRITERS:
        raise InvalidPropertyError(
            f"file format {file_format!r} does not hold rows; those that do are {', '.join(DATA_FORMATS)}"
        )
    return name
