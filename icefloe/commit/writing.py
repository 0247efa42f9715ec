"""How new manifests are written: in the form that the table's version and properties ask for, once for all attempts."""

from collections.abc import Hashable, Sequence
from functools import partial

from icefloe import properties as props
from icefloe.commit.added import FileGroup
from icefloe.commit.parent import Parent
from icefloe.errors import InvalidPropertyError
from icefloe.manifests import ManifestColumns, ManifestContent, ManifestFile, ManifestFormat, write_manifests
from icefloe.metadata import TableMetadata
from icefloe.partitioning import PartitionSpec, partition_type
from icefloe.planning import differing_types
from icefloe.schema import Schema


def write_entries(parent: Parent, columns: ManifestColumns, content: ManifestContent) -> tuple[ManifestFile, ...]:
    """The entries as new manifests of the target size."""
    metadata = parent.metadata
    version = metadata.format_version
    spec = metadata.spec(columns.spec_id)
    form = ManifestFormat(
        version=version,
        schema=_schema_of(columns, spec, (metadata.schema(), *metadata.schemas_newest_first)),
        spec=spec,
        snapshot_id=parent.snapshot_id,
        content=content,
        codec=props.MANIFEST_COMPRESSION.of(metadata.properties),
        level=_level(metadata.properties.get(props.MANIFEST_COMPRESSION_LEVEL.key)),
        table_location=metadata.relative_to,
        older_schemas=metadata.schemas_newest_first,
    )
    return tuple(
        write_manifests(
            columns,
            form,
            parent.bench.manifest_names(metadata),
            parent.bench.write,
            target_size=props.MANIFEST_TARGET_SIZE_BYTES.of(metadata.properties),
        )
    )


def _schema_of(columns: ManifestColumns, spec: PartitionSpec, schemas: Sequence[Schema]) -> Schema:
    """The first of the schemas that has the types of the partition values: a replaced column had another before."""
    return next(
        (each for each in schemas if not differing_types(columns.partition_type, partition_type(spec, each))),
        schemas[0],
    )


def form_of(metadata: TableMetadata) -> Hashable:
    """What manifests of one attempt must have in common with those of another to be used again.

    The version; and the location, where paths are relative to that: files stay where they are when the table moves.
    """
    return metadata.format_version, metadata.relative_to


def write_added(parent: Parent, key: Hashable, groups: Sequence[FileGroup]) -> tuple[ManifestFile, ...]:
    """Manifests of new files, written in the first attempt and used again in later ones.

    `key` tells the groups of one operation from those of others. Another id of their spec makes new manifests.
    """
    return tuple(
        manifest
        for place, group in enumerate(groups)
        if len(group.columns)
        for manifest in parent.bench.remember(
            ("added", key, form_of(parent.metadata), place, group.spec_id),
            partial(write_entries, parent, group.columns, group.content),
        )
    )


def _level(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.strip().lstrip("-").isdigit():
        raise InvalidPropertyError(
            f"property {props.MANIFEST_COMPRESSION_LEVEL.key!r} is {text!r}; it must be a number"
        )
    return int(text)
