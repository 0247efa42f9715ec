"""Files of a table written again for another location: manifests, lists, delete files and metadata, each with other paths in it.

A file in which nothing changes, as in tables with relative paths, is not written; it is copied as it is. An encrypted file that
is written again keeps its key, with new nonces: data files keep theirs too, and a later copy finds the same keys.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import encryption, errors, manifests as mf, metadata as md, properties as props
from icefloe.formats.deletion_vector_codec import REFERENCED_DATA_FILE
from icefloe.formats.position_deletes import relocate_position_deletes
from icefloe.formats.puffin.files import with_blob_properties
from icefloe.maintenance.copies.prefixes import Prefixes
from icefloe.schema import JSON, Schema, reserved
from icefloe.storage import Storage, identity

_PATH_PROPERTIES = tuple(
    known.key for known in (props.DATA_PATH, props.METADATA_PATH, props.OBJECT_STORAGE_PATH, props.FOLDER_STORAGE_PATH)
)

_CHANGING = ("file_path", "referenced_data_file", "file_size_in_bytes", "key_metadata")
"""The columns of a manifest that may be others at the target."""


@dataclass(frozen=True, slots=True)
class MovedFile:
    """A file that the copy has: how long it is there, and whether it was written again."""

    path: str
    size: int
    is_staged: bool


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """What is to be known of a delete file to write it again."""

    path: str
    file_format: str
    is_by_position: bool
    size: int
    added_by: int
    """The snapshot that added it."""
    key_metadata: bytes | None = field(repr=False)

    def key(self) -> encryption.FileKey | None:
        """Its key; None if it is in clear."""
        return None if self.key_metadata is None else encryption.decode_key_metadata(self.key_metadata, self.path)


@dataclass(frozen=True, slots=True)
class ListOfManifests:
    """A manifest list, and how long its manifests are at the target."""

    path: str
    lengths: Mapping[str, int]
    key: encryption.FileKey | None


@dataclass(frozen=True, slots=True)
class FilesOfManifest:
    """The live files of a manifest, and what became of it; delete manifests wait for the sizes of their files."""

    manifest: mf.ManifestFile
    paths: pa.Array
    added_by: pa.Array
    """The snapshots that added the files."""
    deletes: tuple[DeleteFile, ...] = ()
    moved: MovedFile | None = None


@dataclass(frozen=True, slots=True)
class Relocation:
    """How files of a table are written for another location; executors get it."""

    storage: Storage
    prefixes: Prefixes
    staging: str
    schema: Schema
    properties: Mapping[str, str]
    table_location: str | None
    """What relative paths stand on."""

    def staged(self, path: str) -> str:
        """Where a file is kept until it is copied."""
        return self.staging + self.prefixes.rest(path)

    # Manifests

    def files_of(self, manifest: mf.ManifestFile) -> FilesOfManifest:
        """The files of a manifest; a data manifest is written again at once."""
        data = self.storage.read(manifest.manifest_path)
        names = mf.wanted("file_path", "file_format", "file_size_in_bytes", "key_metadata", partition=False)
        plain, key = mf.opened_manifest(manifest, data)
        columns = mf.decode_manifest(plain, manifest.manifest_path, names, limits=self.storage.limits, key=key)
        live = columns.filter(columns.is_live).resolved(self.table_location)
        paths, added_by = live.column("file_path"), pc.fill_null(live.column("snapshot_id"), manifest.added_snapshot_id)
        if manifest.content is mf.ManifestContent.DATA:
            moved = self._moved_manifest(manifest, data, {}, keep=True)
            return FilesOfManifest(manifest, paths, added_by, moved=moved)
        return FilesOfManifest(manifest, paths, added_by, tuple(_delete_files(live, added_by)))

    def _deletes_of(self, manifest: mf.ManifestFile) -> tuple[DeleteFile, ...]:
        return () if manifest.content is mf.ManifestContent.DATA else self.files_of(manifest).deletes

    def moved_manifest(self, task: tuple[mf.ManifestFile, Mapping[str, int]]) -> MovedFile:
        """A manifest written again, with the sizes that its delete files have at the target."""
        manifest, sizes = task
        return self._moved_manifest(manifest, self.storage.read(manifest.manifest_path), sizes, keep=True)

    def manifest_at_target(self, manifest: mf.ManifestFile) -> MovedFile:
        """How long a manifest is that was copied earlier: as it is at the target, or as it would be written."""
        size = self._size_at_target(manifest.manifest_path)
        if size is not None:
            return MovedFile(manifest.manifest_path, size, False)
        moved = map(self.deletes_at_target, self._deletes_of(manifest))
        sizes = {identity(file.path): file.size for file in moved}
        return self._moved_manifest(manifest, self.storage.read(manifest.manifest_path), sizes, keep=False)

    def _moved_manifest(
        self, manifest: mf.ManifestFile, data: bytes, sizes: Mapping[str, int], *, keep: bool
    ) -> MovedFile:
        path = manifest.manifest_path
        plain, key = mf.opened_manifest(manifest, data)
        names = mf.wanted(*_CHANGING, partition=False)
        own = mf.decode_manifest(plain, path, names, limits=self.storage.limits, key=key)
        moved = self._entries(own, sizes)
        if all(moved.column(name).equals(own.column(name)) for name in _CHANGING):
            return MovedFile(path, len(data), False)
        new = mf.relocated_manifest(
            plain, path, self.schema, lambda columns: self._entries(columns, sizes), self.storage.limits
        )
        if (file_key := mf.key_of_manifest(manifest)) is not None:
            new = encryption.seal_stream(new, file_key)
        if keep:
            self.storage.write(self.staged(path), new)
        return MovedFile(path, len(new), keep)

    def _entries(self, columns: mf.ManifestColumns, sizes: Mapping[str, int]) -> mf.ManifestColumns:
        paths = columns.resolved(self.table_location).column("file_path").to_pylist() if sizes else []
        moved = mf.with_paths(columns, self.prefixes.moved_column)
        if not sizes:
            return moved
        known = columns.column("file_size_in_bytes").to_pylist()
        new = [sizes.get(identity(path), size) for path, size in zip(paths, known, strict=True)]
        keys = moved.column("key_metadata").to_pylist()
        lengthened = [
            key if size == before else _of_length(key, size, path)
            for key, size, before, path in zip(keys, new, known, paths, strict=True)
        ]
        moved = moved.with_columns(
            file_size_in_bytes=pa.array(new, pa.int64()), key_metadata=pa.array(lengthened, pa.binary())
        )
        return mf.with_text_bounds(moved, reserved.DELETE_FILE_PATH.field_id, self._moved_bounds)

    def _moved_bounds(self, bounds: pa.Array) -> pa.Array:
        """Bounds of paths; those that were cut before the prefix ends say nothing any more."""
        texts = [
            self.prefixes.moved(text) if text is not None and self.prefixes.has(text) else None
            for text in bounds.to_pylist()
        ]
        return pa.array(texts, pa.string())

    # Lists

    def moved_list(self, task: ListOfManifests) -> MovedFile:
        """A manifest list written again, with the lengths that its manifests have at the target."""
        return self._moved_list(task, keep=True)

    def list_at_target(self, task: ListOfManifests) -> MovedFile:
        """How long a manifest list is that was copied earlier."""
        size = self._size_at_target(task.path)
        return self._moved_list(task, keep=False) if size is None else MovedFile(task.path, size, False)

    def _moved_list(self, task: ListOfManifests, *, keep: bool) -> MovedFile:
        path, limits = task.path, self.storage.limits
        data = self.storage.read(path)
        plain = mf.unsealed(data, task.key, path)

        def change(manifest: mf.ManifestFile) -> mf.ManifestFile:
            location = manifest.manifest_path
            whole = location if self.table_location is None else md.resolve_location(self.table_location, location)
            length = task.lengths[identity(whole)]
            key = manifest.key_metadata
            if length != manifest.manifest_length:
                key = _of_length(key, length, location)
            return replace(
                manifest, manifest_path=self.prefixes.moved(location), manifest_length=length, key_metadata=key
            )

        if all(change(manifest) == manifest for manifest in mf.decode_manifest_list(plain, path, limits=limits)):
            return MovedFile(path, len(data), False)
        new = mf.relocated_list(plain, path, change, limits)
        if task.key is not None:
            new = encryption.seal_stream(new, task.key)
        if keep:
            self.storage.write(self.staged(path), new)
        return MovedFile(path, len(new), keep)

    # Delete files

    def moved_deletes(self, file: DeleteFile) -> MovedFile:
        """A delete file written again; equality deletes name no file, and are copied as they are."""
        return self._moved_deletes(file, keep=True)

    def deletes_at_target(self, file: DeleteFile) -> MovedFile:
        """How long a delete file is that was copied earlier."""
        size = self._size_at_target(file.path)
        return self._moved_deletes(file, keep=False) if size is None else MovedFile(file.path, size, False)

    def _moved_deletes(self, file: DeleteFile, *, keep: bool) -> MovedFile:
        if not file.is_by_position:
            return MovedFile(file.path, file.size, False)
        new = self._vectors(file) if file.file_format.lower() == "puffin" else self._positions(file)
        if new is None:
            return MovedFile(file.path, file.size, False)
        if keep:
            self.storage.write(self.staged(file.path), new)
        return MovedFile(file.path, len(new), keep)

    def _vectors(self, file: DeleteFile) -> bytes | None:
        data, key = self.storage.read(file.path), file.key()
        plain = mf.unsealed(data, key, file.path)
        new = with_blob_properties(plain, file.path, self._moved_properties)
        if new == plain:
            return None
        return new if key is None else encryption.seal_stream(new, key)

    def _moved_properties(self, properties: Mapping[str, str]) -> dict[str, str]:
        path = properties.get(REFERENCED_DATA_FILE)
        return dict(properties) if path is None else {**properties, REFERENCED_DATA_FILE: self.prefixes.moved(path)}

    def _positions(self, file: DeleteFile) -> bytes | None:
        if file.key_metadata is not None:
            raise errors.StateError(
                f"{file.path} is an encrypted file of position deletes, which cannot be written again; first turn such files"
                " into deletion vectors by rewrite_position_delete_files"
            )
        sink = pa.BufferOutputStream()
        with self.storage.open_input(file.path) as source:
            relocate_position_deletes(
                source, file.path, file.file_format, sink, self.prefixes.moved_column, self.properties
            )
        return bytes(sink.getvalue())

    # Metadata

    def moved_metadata(self, task: tuple[str, Mapping[str, bytes]]) -> MovedFile:
        """A metadata file written again, with what is in other entries of keys."""
        path, keys = task
        data = self.storage.read(path)
        text = md.unpack_metadata_file(data, self.storage.limits)
        document = moved_document(json.loads(text), self.prefixes, keys)
        compression = md.MetadataCompression.NONE if data == text else md.MetadataCompression.GZIP
        new = md.pack_metadata_file(json.dumps(document, separators=(",", ":")).encode(), compression)
        self.storage.write(self.staged(path), new)
        return MovedFile(path, len(new), True)

    def _size_at_target(self, path: str) -> int | None:
        try:
            return self.storage.stat(self.prefixes.moved(path)).size
        except (errors.StorageError, errors.InvalidLocationError):
            return None


def _delete_files(live: mf.ManifestColumns, added_by: pa.Array) -> list[DeleteFile]:
    names = ("file_path", "file_format", "content", "file_size_in_bytes", "key_metadata")
    columns = [live.column(name) for name in names]
    rows = zip(*(column.to_pylist() for column in (*columns, added_by)), strict=True)
    by_position = int(mf.FileContent.POSITION_DELETES)
    return [
        DeleteFile(path, file_format, content == by_position, size, snapshot_id, key_metadata)
        for path, file_format, content, size, key_metadata, snapshot_id in rows
    ]


def _of_length(key_metadata: bytes | None, length: int, location: str) -> bytes | None:
    """The key of a file that is so long now."""
    if key_metadata is None:
        return None
    return encryption.encode_key_metadata(encryption.decode_key_metadata(key_metadata, location).of_length(length))


def moved_document(document: JSON, prefixes: Prefixes, keys: Mapping[str, bytes] | None = None) -> JSON:
    """The JSON of a metadata file with other paths, and other sealed keys by id; what we do not know of it stays."""
    new = dict(document)
    if new.get("location") is not None:
        new["location"] = prefixes.moved(new["location"])
    if new.get("properties"):
        new["properties"] = {
            key: prefixes.moved(text) if key in _PATH_PROPERTIES and prefixes.has(text) else text
            for key, text in new["properties"].items()
        }
    for name, key in (
        ("snapshots", "manifest-list"),
        ("metadata-log", "metadata-file"),
        ("statistics", "statistics-path"),
        ("partition-statistics", "statistics-path"),
    ):
        if new.get(name):
            new[name] = [_moved_item(item, key, prefixes) for item in new[name]]
    if keys:
        new["encryption-keys"] = [_moved_key(item, keys) for item in new.get("encryption-keys") or ()]
    return new


def _moved_key(item: JSON, keys: Mapping[str, bytes]) -> JSON:
    sealed = keys.get(item["key-id"])
    return item if sealed is None else {**item, "encrypted-key-metadata": b64encode(sealed).decode()}


def _moved_item(item: JSON, key: str, prefixes: Prefixes) -> JSON:
    new = dict(item)
    if new.get(key):
        new[key] = prefixes.moved(new[key])
    if key == "manifest-list" and isinstance(new.get("manifests"), list):
        new["manifests"] = [prefixes.moved(path) for path in new["manifests"]]
    return new
