"""Which schemas a table of each format version may have (spec: Schemas and Data Types, Default values)."""

from math import isfinite

from icefloe.errors import InvalidSchemaError
from icefloe.schema import types
from icefloe.schema.schema import MAX_COLUMN_ID, Schema
from icefloe.versions import Feature, require


def check_schema_for_version(schema: Schema, version: int) -> None:
    """Fail unless a table of this format version may have the schema."""
    for field_id, field in schema.fields_by_id.items():
        name = schema.names_by_id[field_id]
        if not 0 <= field_id <= MAX_COLUMN_ID:
            raise InvalidSchemaError(f"column {name!r} has the id {field_id}; ids above {MAX_COLUMN_ID} are reserved")
        if field.field_type.feature is not None:
            require(version, field.field_type.feature, f"column {name!r} of type {field.field_type}")
        # Older readers miss only the initial default: a write default alone does them no harm (spec: Appendix E).
        if field.initial_default is not None:
            require(version, Feature.COLUMN_DEFAULTS, f"the initial default of column {name!r}")
        check_defaults(field, name)


def check_defaults(field: types.NestedField, name: str) -> None:
    """Fail if the field has a default that its type may not have; `name` names it in the error."""
    for default in (field.initial_default, field.write_default):
        if default is None:
            continue
        match field.field_type:
            case types.UnknownType() | types.VariantType() | types.GeometryType() | types.GeographyType():
                raise InvalidSchemaError(
                    f"column {name!r} of type {field.field_type} has the default {default!r:.100}; only null is allowed"
                )
            case types.StructType() if default != ():
                raise InvalidSchemaError(
                    f"struct column {name!r} has the default {default!r:.100}; it may be null or the empty struct,"
                    " and the fields in it have their own defaults"
                )
            # JSON, which schemas are stored in, has no other numbers (spec: Appendix D).
            case types.FloatType() | types.DoubleType() if not isfinite(default):
                raise InvalidSchemaError(f"column {name!r} has the default {default}; it must be finite")
            case _:
                pass
