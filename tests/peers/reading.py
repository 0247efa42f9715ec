"""Reading a whole table with nothing but the rooms of the files floor: no deletes, for tables of peers."""

from typing import Any

from icefloe import properties as props
from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.manifests import EVERYTHING, DataFile, read_manifest, read_manifest_list
from icefloe.metadata import TableMetadata, decode_metadata_file
from icefloe.partitioning import partition_type, transforms as tr
from icefloe.schema import parse_name_mapping
from icefloe.storage import Storage

STORAGE = Storage()


def load(location: str) -> TableMetadata:
    """The metadata of a table."""
    return decode_metadata_file(STORAGE.read(location))


def live_files(metadata: TableMetadata) -> list[DataFile]:
    """All files of the current snapshot."""
    snapshot = metadata.current_snapshot()
    if snapshot is None or snapshot.manifest_list is None:
        return []
    found: list[DataFile] = []
    for manifest in read_manifest_list(snapshot.manifest_list, STORAGE.read):
        spec = metadata.specs_by_id[manifest.partition_spec_id]
        kind = partition_type(spec, metadata.schema(), *metadata.schemas)
        columns = read_manifest(manifest, STORAGE.read, EVERYTHING, partition_type=kind)
        found += [entry.data_file for entry in columns.entries() if entry.is_live]
    return found


def rows(metadata: TableMetadata) -> list[dict[str, Any]]:
    """All rows of the current snapshot, in the current schema."""
    schema = metadata.schema()
    text = props.NAME_MAPPING.of(metadata.properties)
    mapping = None if text is None else parse_name_mapping(text)
    found: list[dict[str, Any]] = []
    for file in live_files(metadata):
        spec = metadata.specs_by_id[file.spec_id]
        constants = {
            field.source_id: value
            for field, value in zip(spec.fields, file.partition, strict=True)
            if isinstance(field.transform, tr.IdentityTransform)
        }
        with STORAGE.open_input(file.file_path) as source:
            reader = ParquetFileReader(source, file.file_path, schema, mapping=mapping, constants=constants)
            found += [row for batch in reader.batches() for row in batch.to_pylist()]
    return found
