"""Which columns of a file are constants of its partition."""

import uuid
from collections.abc import Iterable, Mapping
from decimal import Decimal

from icefloe import errors, manifests as mf, metadata as md
from icefloe.partitioning import PartitionSpec, transforms as tr
from icefloe.schema import Value, types


def partition_by_field(
    file: mf.DataFile, specs: Mapping[int, PartitionSpec], fields: Iterable[types.NestedField]
) -> dict[int, Value]:
    """The values of the file's partition by the ids of these fields of all specs; None where its own spec lacks one.

    A value of another type than the field's is of a column that has been replaced since, and cannot be shown as that type.
    """
    own = dict(zip((field.field_id for field in specs[file.spec_id].fields), file.partition, strict=True))
    values = {}
    for field in fields:
        field_type = field.field_type
        value = None if isinstance(field_type, types.UnknownType) else own.get(field.field_id)
        if value is not None and not _is_of(value, field_type):
            raise errors.IncompatibleChangeError(
                f"partition field {field.name!r} of {file.file_path} is {value!r}, which cannot be read as"
                f" {field_type}: the column was replaced by one of another type; read by snapshot or tag"
            )
        values[field.field_id] = value
    return values


def _is_of(value: Value, field_type: types.IcebergType) -> bool:
    is_small = isinstance(value, int) and -(2**31) <= value < 2**31
    return type(value) is _CLASSES.get(type(field_type), int) and (
        is_small or not isinstance(field_type, types.IntegerType | types.DateType)
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


def partition_constants(file: mf.DataFile, metadata: md.TableMetadata) -> dict[int, Value]:
    """The values of identity partition fields by the ids of their columns (spec: Column Projection)."""
    return identity_values(metadata.spec(file.spec_id), file.partition)


def identity_values(spec: PartitionSpec, partition: tuple[Value, ...]) -> dict[int, Value]:
    """The same of a partition."""
    return {
        field.source_id: value
        for field, value in zip(spec.fields, partition, strict=True)
        if isinstance(field.transform, tr.IdentityTransform)
    }
