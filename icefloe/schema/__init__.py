"""What a column is: types, ids, defaults, single-value encodings, evolution, name mapping."""

from icefloe.schema.arrow import (
    EXTENSION_METADATA_KEY,
    EXTENSION_NAME_KEY,
    FIELD_ID_KEY,
    VARIANT_STORAGE,
    WKB_EXTENSION,
    field_to_arrow,
    file_schema_from_arrow,
    schema_from_arrow,
    schema_to_arrow,
    type_from_arrow,
    type_to_arrow,
)
from icefloe.schema.binary import arrow_value_type, decode, decode_array, encode_array
from icefloe.schema.bounds import (
    DEFAULT_BOUND_WIDTH,
    decode_bound,
    decode_bounds,
    encode_bound,
    next_prefix,
    truncate_lower,
    truncate_upper,
)
from icefloe.schema.codec import schema_from_json, schema_to_json, type_from_json, type_to_json
from icefloe.schema.coercion import bytes_from_hex, coerce
from icefloe.schema.ddl import parse_ddl
from icefloe.schema.ddl_text import format_ddl
from icefloe.schema.evolution import SchemaUpdate
from icefloe.schema.geo_boxes import BoxCollector, GeoPoint, bounding_box
from icefloe.schema.geo_intersection import GeoBox, boxes_may_intersect, intersects
from icefloe.schema.ids import assign_fresh_ids, assign_fresh_type_ids
from icefloe.schema.name_mapping import (
    NameMapping,
    apply_name_mapping,
    create_name_mapping,
    format_name_mapping,
    parse_name_mapping,
    update_name_mapping,
)
from icefloe.schema.projection import plan_projection, select, select_ids
from icefloe.schema.promotion import can_promote, is_promotion, promote_value
from icefloe.schema.rules import check_schema_for_version
from icefloe.schema.schema import MAX_COLUMN_ID, Schema
from icefloe.schema.types import JSON, IcebergType, NestedField, StructType, Value
from icefloe.schema.value_codec import value_from_json, value_to_json
from icefloe.schema.values import parse_text, to_text
from icefloe.schema.wkb import EWKB_HINT
from icefloe.schema.wkb_arrays import check_wkb_column
