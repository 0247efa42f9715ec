"""How a file of a table is opened for reading, and which of its columns are constants of its partition."""

from typing import Any

from icefloe.errors import StateError
from icefloe.manifests import DataFile
from icefloe.metadata.table import TableMetadata
from icefloe.partitioning import IdentityTransform
from icefloe.storage import Storage


def open_file(file: DataFile, storage: Storage) -> Any:
    """A seekable reader of the file, to be closed by the caller."""
    if file.key_metadata is not None:
        raise StateError(f"{file.file_path} is encrypted; encrypted data and delete files cannot be read yet")
    return storage.open_input(file.file_path, size=file.file_size_in_bytes)


def partition_constants(file: DataFile, metadata: TableMetadata) -> dict[int, Any]:
    """The values of identity partition fields by the ids of their columns (spec: Column Projection)."""
    spec = metadata.spec(file.spec_id)
    return {
        field.source_id: value
        for field, value in zip(spec.fields, file.partition, strict=True)
        if isinstance(field.transform, IdentityTransform)
    }
