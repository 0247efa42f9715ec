"""Of which type the partition values of a manifest are: that of the spec, or the one that the manifest was written with."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from icefloe.errors import IcefloeError
from icefloe.manifests.arrow_values import as_values
from icefloe.partitioning import fields_from_json, partition_type
from icefloe.schema import is_promotion, schema_from_json, types


def partition_columns(
    stored: Mapping[int, tuple[Any, types.IcebergType]], of_spec: types.StructType | None, header: Mapping[str, str]
) -> tuple[types.StructType, dict[int, Any]]:
    """The partition tuple in the types of the spec; where those cannot hold its values, in those of the file.

    A table that replaces another keeps the ids of its columns by their names, whatever their types (Java's rule), so that
    manifests of one spec can be of several types. Without `of_spec` the types are those of the file.
    """
    if of_spec is None:
        of_spec = types.StructType(
            *(types.NestedField(key, str(key), kind) for key, (_, kind) in sorted(stored.items()))
        )
    by_place = not any(field.field_id in stored for field in of_spec.fields)
    fields, found = [], {}
    for place, field in enumerate(of_spec.fields):
        # Fields of files without ids are numbered -1, -2, ... by their place.
        entry = stored.get(-1 - place if by_place else field.field_id)
        if entry is None:
            fields.append(field)
            continue
        column, kind = entry
        actual = _actual(field, kind, header)
        fields.append(types.NestedField(field.field_id, field.name, actual))
        if not isinstance(actual, types.UnknownType):
            found[field.field_id] = as_values(column, actual)
    return types.StructType(*fields), found


def _actual(field: types.NestedField, kind: types.IcebergType, header: Mapping[str, str]) -> types.IcebergType:
    wanted = field.field_type
    if kind == wanted or isinstance(kind, types.UnknownType):
        return wanted
    if isinstance(wanted, types.UnknownType | types.StringType):
        return kind
    # What the file calls a number may be a date or a time for the spec: only the schema that it was written with can tell.
    written = _written_types(header.get("schema", ""), header.get("partition-spec", "")).get(field.field_id)
    return wanted if written is None or is_promotion(written, wanted) else written


@lru_cache(maxsize=64)
def _written_types(schema: str, spec: str) -> Mapping[int, types.IcebergType]:
    try:
        found = partition_type(fields_from_json(json.loads(spec)), schema_from_json(json.loads(schema)))
    except (IcefloeError, ValueError, RecursionError):
        return {}
    return {field.field_id: field.field_type for field in found.fields}
