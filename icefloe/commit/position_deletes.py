"""Which rows of a data file a position delete file deletes: read when a deletion vector is to take its place."""

import pyarrow.compute as pc

from icefloe.commit.workbench import Workbench
from icefloe.errors import InvalidInputError
from icefloe.formats.avro_reader import AvroFileReader
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.formats.orc.reader import OrcFileReader
from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.manifests import DataFile
from icefloe.schema import Schema, reserved
from icefloe.storage.identities import identities

_POSITIONS = Schema(reserved.DELETE_FILE_PATH, reserved.DELETE_FILE_POS)
_READERS: dict[str, type[ParquetFileReader] | type[AvroFileReader] | type[OrcFileReader]] = {
    "parquet": ParquetFileReader,
    "avro": AvroFileReader,
    "orc": OrcFileReader,
}


def positions_in(bench: Workbench, deletes: DataFile, path: str) -> DeletionVector:
    """The positions that the file deletes in the data file of that path, in its normal form; each file is read once in a commit."""
    return positions_by_file(bench, deletes).get(path, DeletionVector(()))


def positions_by_file(bench: Workbench, deletes: DataFile) -> dict[str, DeletionVector]:
    """All positions that the file deletes, by the normal form of the data file's path."""
    return bench.remember(("position deletes", deletes.file_path), lambda: _read(bench, deletes))


def _read(bench: Workbench, deletes: DataFile) -> dict[str, DeletionVector]:
    reader = _READERS.get(deletes.file_format)
    if reader is None:
        known = ", ".join(_READERS)
        raise InvalidInputError(
            f"position delete file {deletes.file_path!r} is of format {deletes.file_format!r}; it must be one of {known}"
        )
    found: dict[str, DeletionVector] = {}
    with bench.storage.open_input(deletes.file_path, size=deletes.file_size_in_bytes) as source:
        for batch in reader(source, deletes.file_path, _POSITIONS).batches():
            paths, positions = identities(batch.column(0)), batch.column(1)
            for path in pc.unique(paths).to_pylist():
                vector = DeletionVector.from_positions(positions.filter(pc.equal(paths, path)))
                found[path] = found[path] | vector if path in found else vector
    return found
