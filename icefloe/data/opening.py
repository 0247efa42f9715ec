"""How a file of a table is opened for reading, and which of its columns are constants of its partition."""

import uuid
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from icefloe.errors import IncompatibleChangeError, StateError
from icefloe.manifests import DataFile
from icefloe.metadata import TableMetadata
from icefloe.partitioning import PartitionSpec, transforms as tr
from icefloe.schema import types
from icefloe.storage import Storage


def open_file(file: DataFile, storage: Storage) -> Any:
    """A seekable reader of the file, to be closed by the caller."""
    if file.key_metadata is not None:
        raise StateError(f"{file.file_path} is encrypted; encrypted data and delete files cannot be read yet")
    return storage.open_input(file.file_path, size=file.file_size_in_bytes)


def partition_by_field(
    file: DataFile, specs: Mapping[int, PartitionSpec], fields: Iterable[types.NestedField]
) -> dict[int, Any]:
    """The values of the file's partition by the ids of these fields of all specs; None where its own spec lacks one.

    A value that is none of the field's type is of a column that has been replaced since, and cannot be told by that type.
    """
    own = dict(zip((each.field_id for each in specs[file.spec_id].fields), file.partition, strict=True))
    found = {}
    for field in fields:
        kind = field.field_type
        value = found[field.field_id] = None if isinstance(kind, types.UnknownType) else own.get(field.field_id)
        if value is not None and not _is_of(value, kind):
            raise IncompatibleChangeError(
                f"partition field {field.name!r} of {file.file_path} is {value!r}, which cannot be read as"
                f" {kind}: the column was replaced by one of another type; read by snapshot or tag"
            )
    return found


def _is_of(value: Any, kind: types.IcebergType) -> bool:
    is_small = isinstance(value, int) and -(2**31) <= value < 2**31
    return type(value) is _CLASSES.get(type(kind), int) and (
        is_small or not isinstance(kind, types.IntegerType | types.DateType)
    )


_CLASSES: dict[type[types.IcebergType], type] = {
    types.BooleanType: bool,
    types.FloatType: float,
    types.DoubleType: float,
    types.DecimalType: Decimal,
    types.StringType: str,
    types.UUIDType: uuid.UUID,
    types.FixedType: bytes,
    types.BinaryType: bytes,
}
"""What internal values are; all others are whole numbers."""


def partition_constants(file: DataFile, metadata: TableMetadata) -> dict[int, Any]:
    """The values of identity partition fields by the ids of their columns (spec: Column Projection)."""
    spec = metadata.spec(file.spec_id)
    return {
        field.source_id: value
        for field, value in zip(spec.fields, file.partition, strict=True)
        if isinstance(field.transform, tr.IdentityTransform)
    }
