"""What is encrypted of a table, and by which key: manifests by their list, rows and deletes by their manifest.

Avro and Puffin files are AES GCM streams, Parquet files encrypt their own parts. Nothing is read as plain bytes that has a key,
and nothing is written in clear to a table that is encrypted.
"""

from collections.abc import Callable
from functools import partial

from icefloe import encryption, metadata as md, properties as props
from icefloe.errors import CorruptFileError, EncryptionError
from icefloe.manifests.values import UNKNOWN_SIZE, DataFile, ManifestFile
from icefloe.storage import Input, Storage

SEALED_MAGICS = (b"AGS1", b"PARE")
"""How encrypted files begin."""
_PARQUET, _ORC = "parquet", "orc"


def list_key(
    metadata: md.TableMetadata, snapshot: md.Snapshot, keyring: encryption.Keyring | None
) -> encryption.FileKey | None:
    """The key of the manifest list of a snapshot; None if the table is not encrypted."""
    if snapshot.key_id is None:
        if is_encrypted(metadata):
            raise EncryptionError(
                f"snapshot {snapshot.snapshot_id} has no key, but the table is encrypted: its manifest list is in plain text and"
                " may come from anyone"
            )
        return None
    if keyring is None:
        raise EncryptionError(
            f"the manifest list {snapshot.manifest_list} of snapshot {snapshot.snapshot_id} is encrypted, but the catalog has"
            " no KMS to open it; set encryption.kms-type, or encryption.kms-impl, where the catalog is loaded"
        )
    return keyring.list_key(metadata, snapshot)


def is_encrypted(metadata: md.TableMetadata) -> bool:
    """Whether the files of the table are encrypted."""
    return props.ENCRYPTION_KEY_ID.of(metadata.properties) is not None


def key_of_manifest(manifest: ManifestFile, *, is_needed: bool = False) -> encryption.FileKey | None:
    """The key of a manifest; None if it has none, which is an error if it needs one."""
    if manifest.key_metadata is not None:
        return _with_length(manifest.key_metadata, manifest.manifest_path, manifest.manifest_length)
    if is_needed:
        raise CorruptFileError(manifest.manifest_path, "its list has no key for it, and the table is encrypted")
    return None


def _with_length(key_metadata: bytes, location: str, length: int) -> encryption.FileKey:
    """A key with the length of its file: its own, or what the sealed file says that names it."""
    key = encryption.decode_key_metadata(key_metadata, location)
    return key if key.file_length is not None else key.of_length(length)


def unsealed(data: bytes, key: encryption.FileKey | None, location: str) -> bytes:
    """The plain bytes of a list or an Avro manifest; CorruptFileError, which says so, if it is encrypted and no key is known."""
    if key is not None:
        return encryption.open_stream(data, key, location)
    if data[:4] in SEALED_MAGICS:
        raise CorruptFileError(location, "it is encrypted, and what names it has no key for it")
    return data


def sealed(data: bytes, key_length: int | None) -> tuple[bytes, encryption.FileKey | None]:
    """The bytes as a new file of a table has them, and its key; as they are for a table that is not encrypted."""
    if key_length is None:
        return data, None
    key = encryption.FileKey.new(key_length)
    stream = encryption.seal_stream(data, key)
    return stream, key.of_length(len(stream))


def sealed_file(data: bytes, metadata: md.TableMetadata) -> tuple[bytes, bytes | None]:
    """The same with the key as key metadata, as entries of manifests have it."""
    stream, key = sealed(data, encryption.key_length_of(metadata))
    return stream, None if key is None else encryption.encode_key_metadata(key)


def key_of_file(file: DataFile) -> encryption.FileKey:
    """The key of an encrypted data or delete file, with the length of the file."""
    if file.key_metadata is None:
        raise CorruptFileError(file.file_path, "its manifest has no key for it, and the table is encrypted")
    return _with_length(file.key_metadata, file.file_path, file.file_size_in_bytes)


def open_file(file: DataFile, storage: Storage) -> Input:
    """A seekable reader of a data or delete file, to be closed by the caller; the reader of its format gets plain bytes or a key."""
    if file.key_metadata is None:
        return storage.open_input(file.file_path, size=file.file_size_in_bytes)
    key = key_of_file(file)
    kind = file.file_format.lower()
    if kind == _ORC:
        raise EncryptionError(f"{file.file_path} is an encrypted ORC file; ORC files of tables are never encrypted")
    source = storage.open_input(file.file_path, size=key.file_length)
    try:
        if kind != _PARQUET:
            return encryption.UnsealedInput(source, key, file.file_path)
        if source.size() != key.file_length:
            raise CorruptFileError(
                file.file_path,
                f"it is encrypted and has {source.size()} bytes, where its key says {key.file_length}: it was changed",
            )
        return encryption.KeyedInput(source, key)
    except BaseException:
        source.close()
        raise


def range_reader(file: DataFile, storage: Storage) -> Callable[[int, int], bytes]:
    """How (offset, length) of a Puffin file is read, in plain bytes."""
    if file.key_metadata is None:
        return partial(storage.read_range, file.file_path)

    def read(offset: int, length: int) -> bytes:
        with open_file(file, storage) as source:
            source.seek(offset)
            return source.read(length)

    return read


def plain_size(file: DataFile, storage: Storage) -> int:
    """How many plain bytes a Puffin file has."""
    if file.file_size_in_bytes == UNKNOWN_SIZE:
        return storage.stat(file.file_path).size
    if file.key_metadata is None:
        return file.file_size_in_bytes
    with open_file(file, storage) as source:
        return source.size()


def statistics_reader(
    metadata: md.TableMetadata, file: md.StatisticsFile, storage: Storage
) -> tuple[Callable[[int, int], bytes] | None, int]:
    """How (offset, length) of a statistics file is read in plain bytes, and how many it has; None if others know its key."""
    location = metadata.resolve(file.statistics_path)
    if file.key_metadata is None:
        return partial(storage.read_range, location), file.file_size_in_bytes
    if encryption.statistics_key_id(metadata, file) is None:
        return None, file.file_size_in_bytes
    if storage.keyring is None:
        raise EncryptionError(f"{location} is encrypted, but the catalog has no KMS to open it")
    key = storage.keyring.statistics_key(metadata, file)
    plain = encryption.open_stream(storage.read(location), key, location)
    return lambda offset, length: plain[offset : offset + length], len(plain)
