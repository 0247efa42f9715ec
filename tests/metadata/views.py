"""A small view that the tests of this room start from."""

from icefloe.metadata import SQLViewRepresentation, ViewMetadata, ViewVersion
from icefloe.metadata.view import ViewVersionLogEntry
from tests.metadata.tables import CREATED_MS, SCHEMA

VIEW_UUID = "fa6506c3-7681-40c8-86dc-e36561f83385"
VERSION = ViewVersion(
    version_id=1,
    schema_id=0,
    timestamp_ms=CREATED_MS,
    representations=(SQLViewRepresentation("SELECT * FROM t", "spark"),),
    default_namespace=("db", "inner"),
    default_catalog="prod",
    summary={"engine-name": "Spark"},
)
VIEW = ViewMetadata(
    view_uuid=VIEW_UUID,
    location="s3://bucket/db/view",
    schemas=(SCHEMA,),
    current_version_id=1,
    versions=(VERSION,),
    version_log=(ViewVersionLogEntry(1, CREATED_MS),),
    properties={"comment": "daily"},
)
