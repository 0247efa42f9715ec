"""Decides how tables are named and described in lineage: by OpenLineage's rules of naming, as its own Spark agent names them.

A table is the place of its files, so that whoever reads or writes them, by whatever catalog, means one dataset; its name in the
catalog is a symlink to it.
"""

from collections.abc import Mapping

from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    DatasetFacet,
    catalog_dataset as catalogs,
    dataset_version_dataset as versions,
    input_statistics_input_dataset as inputs,
    lifecycle_state_change_dataset as lifecycle,
    output_statistics_output_dataset as outputs,
    schema_dataset as schemas,
    symlinks_dataset as symlinks,
)

from icefloe.commit import CommitReport
from icefloe.errors import without_credentials
from icefloe.planning import ScanReport
from icefloe.schema import IcebergType, NestedField, Schema, StructType
from icefloe.schema.types import ListType, MapType

_BUCKETS = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "gcs": "gs", "wasbs": "wasbs"}
"""Stores whose keys have no slash in front, and what OpenLineage calls their schemes."""


def dataset_name(location: str) -> tuple[str, str]:
    """The namespace and name of what is at a location."""
    scheme, is_url, rest = location.partition("://")
    if not is_url or scheme == "file":
        path = location.removeprefix("file:") if not is_url else rest
        return "file", "/" + path.strip("/")
    authority, _, path = rest.partition("/")
    known = _BUCKETS.get(scheme)
    name = path.strip("/") if known else "/" + path.strip("/")
    return f"{known or scheme}://{authority.rpartition('@')[2] if known == 's3' else authority}", name or "/"


def input_of(report: ScanReport, catalog: str, properties: Mapping[str, str]) -> InputDataset:
    """What a scan read."""
    namespace, name = _name(report)
    counts = report.counts
    read = inputs.InputStatisticsInputDatasetFacet(
        size=counts.result_bytes + counts.result_delete_bytes,
        fileCount=counts.result_data_files + counts.result_delete_files,
    )
    return InputDataset(
        namespace=namespace,
        name=name,
        facets=_facets(report, catalog, properties),
        inputFacets={"inputStatistics": read},
    )


def output_of(report: CommitReport, catalog: str, properties: Mapping[str, str]) -> OutputDataset:
    """What a commit wrote; one without a snapshot altered the table."""
    namespace, name = _name(report)
    facets = _facets(report, catalog, properties)
    counts = report.counts
    if report.snapshot_id is None:
        facets["lifecycleStateChange"] = lifecycle.LifecycleStateChangeDatasetFacet(
            lifecycle.LifecycleStateChange.ALTER
        )
        return OutputDataset(namespace=namespace, name=name, facets=facets)
    written = outputs.OutputStatisticsOutputDatasetFacet(
        rowCount=counts.added_records,
        size=counts.added_bytes,
        fileCount=counts.added_data_files + counts.added_delete_files,
    )
    return OutputDataset(namespace=namespace, name=name, facets=facets, outputFacets={"outputStatistics": written})


def _name(report: ScanReport | CommitReport) -> tuple[str, str]:
    return ("icefloe", report.table) if report.location is None else dataset_name(without_credentials(report.location))


def _facets(report: ScanReport | CommitReport, catalog: str, properties: Mapping[str, str]) -> dict[str, DatasetFacet]:
    uri, warehouse = (_shown(properties.get(key)) for key in ("uri", "warehouse"))
    facets: dict[str, DatasetFacet] = {
        "catalog": catalogs.CatalogDatasetFacet(
            framework="iceberg",
            type=properties.get("type", "unknown"),
            name=catalog,
            metadataUri=uri,
            warehouseUri=warehouse,
            source="icefloe",
        )
    }
    if report.table:
        name = report.table.removeprefix(f"{catalog}.")
        named = symlinks.Identifier(namespace=uri or warehouse or catalog, name=name, type="TABLE")
        facets["symlinks"] = symlinks.SymlinksDatasetFacet([named])
    if report.schema is not None:
        facets["schema"] = schemas.SchemaDatasetFacet(_fields(report.schema))
    if report.snapshot_id is not None:
        facets["version"] = versions.DatasetVersionDatasetFacet(str(report.snapshot_id))
    return facets


def _shown(address: str | None) -> str | None:
    """An address without users, passwords and what follows a question mark."""
    return None if address is None else without_credentials(address).partition("?")[0]


def _fields(schema: Schema) -> list[schemas.SchemaDatasetFacetFields]:
    return [_field(column, position) for position, column in enumerate(schema.fields, 1)]


def _field(column: NestedField, position: int | None = None) -> schemas.SchemaDatasetFacetFields:
    kind = column.field_type
    word = {StructType: "struct", ListType: "array", MapType: "map"}.get(type(kind), str(kind))
    return schemas.SchemaDatasetFacetFields(
        name=column.name, type=word, description=column.doc, ordinal_position=position, fields=_inner(kind)
    )


def _inner(kind: IcebergType) -> list[schemas.SchemaDatasetFacetFields]:
    """What is inside: of arrays `_element`, of maps `key` and `value`, as OpenLineage's facet has them."""
    match kind:
        case StructType():
            return [_field(field) for field in kind.fields]
        case ListType():
            return [_renamed(kind.element_field, "_element")]
        case MapType():
            return [_renamed(kind.key_field, "key"), _renamed(kind.value_field, "value")]
    return []


def _renamed(field: NestedField, name: str) -> schemas.SchemaDatasetFacetFields:
    shown = _field(field)
    shown.name = name
    return shown
