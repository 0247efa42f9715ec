"""The keys of encrypted tables: from a key of the KMS to key-encryption keys, and from these to the keys of manifest lists.

A key-encryption key is wrapped by the KMS and kept in the table's metadata; it seals the key metadata of manifest lists, one for
each snapshot, which are kept there, too. After 730 days a new one is used (NIST SP 800-57). The snapshot names the entry of its
list's key, as the Java library has it. So does a statistics file in its key metadata, which is for each implementation to say.
"""

import os
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from icefloe import metadata as md, properties as props
from icefloe.encryption import gcm
from icefloe.encryption.file_keys import FileKey
from icefloe.encryption.key_metadata_codec import decode_key_metadata, encode_key_metadata
from icefloe.encryption.kms import Kms
from icefloe.errors import EncryptionError, IcefloeError

KEY_TIMESTAMP = "KEY_TIMESTAMP"
"""The property of a key-encryption key that says when it was made, in milliseconds; it is authenticated by what the key seals."""
KEY_LIFETIME_MS = 730 * 24 * 3600 * 1000
CACHE_SECONDS = 3600.0
_ID_LENGTH = 16


@dataclass(frozen=True, slots=True)
class WrappingKey:
    """A key-encryption key: its entry in table metadata, and what it is."""

    entry: md.EncryptedKey
    key: bytes = field(repr=False)


def key_length_of(metadata: md.TableMetadata) -> int | None:
    """How long the keys of new files are; None for a table that is not encrypted.

    A table that has lost the id of its key, but has encrypted snapshots, is an error: rows would go into it in clear.
    """
    if props.ENCRYPTION_KEY_ID.of(metadata.properties) is not None:
        return props.ENCRYPTION_DATA_KEY_LENGTH.of(metadata.properties)
    if metadata.encryption_keys or any(snapshot.key_id is not None for snapshot in metadata.snapshots):
        raise EncryptionError(
            f"the table has encrypted snapshots and no property {props.ENCRYPTION_KEY_ID.key!r}; nothing is written to it in"
            " clear"
        )
    return None


class Keyring:
    """Opens and makes keys with one KMS. Threads may share it; it is not pickled, as other processes get keys of files."""

    def __init__(self, kms: Kms, clock: Callable[[], float] = time.monotonic) -> None:
        self._kms = kms
        self._clock = clock
        self._unwrapped: dict[tuple[str, bytes], tuple[float, bytes]] = {}
        self._lock = threading.Lock()

    def list_key(self, metadata: md.TableMetadata, snapshot: md.Snapshot) -> FileKey:
        """The key of the manifest list of a snapshot."""
        what = f"the manifest list of snapshot {snapshot.snapshot_id}"
        return self._file_key(metadata, snapshot.key_id, what, str(snapshot.manifest_list))

    def statistics_key(self, metadata: md.TableMetadata, file: md.StatisticsFile) -> FileKey:
        """The key of an encrypted statistics file whose key the table's metadata has."""
        what = f"the statistics file of snapshot {file.snapshot_id}"
        return self._file_key(metadata, statistics_key_id(metadata, file), what, file.statistics_path)

    def _file_key(self, metadata: md.TableMetadata, key_id: str | None, what: str, location: str) -> FileKey:
        entry = _entry(metadata, key_id, what)
        wrapping = _entry(metadata, entry.encrypted_by_id, f"the key of {what}")
        made = wrapping.properties.get(KEY_TIMESTAMP)
        if made is None:
            raise EncryptionError(f"encryption key {wrapping.key_id!r} has no {KEY_TIMESTAMP}; it opens nothing")
        try:
            sealed = gcm.unseal(self._unwrap(metadata, wrapping), entry.encrypted_key_metadata, made.encode())
        except gcm.NotAuthenticError:
            raise EncryptionError(
                f"encryption key {entry.key_id!r}, of {what}, cannot be opened by {wrapping.key_id!r}: one of them was"
                " changed, or the KMS gave another key"
            ) from None
        return decode_key_metadata(sealed, location)

    def resealed(self, metadata: md.TableMetadata, key_id: str, key: FileKey) -> bytes:
        """What the entry of a file's key holds if that is the key, sealed as it was before."""
        what = f"key {key_id!r}"
        wrapping = _entry(metadata, _entry(metadata, key_id, what).encrypted_by_id, what)
        return sealed_key(key, WrappingKey(wrapping, self._unwrap(metadata, wrapping))).encrypted_key_metadata

    def wrapping_key(self, metadata: md.TableMetadata, now_ms: int) -> WrappingKey | None:
        """The key-encryption key of the table that new lists are sealed with; None if it needs a new one."""
        master = _master_id(metadata)
        for entry in metadata.encryption_keys:
            made = entry.properties.get(KEY_TIMESTAMP, "")
            if entry.encrypted_by_id == master and made.isdigit() and now_ms - int(made) < KEY_LIFETIME_MS:
                return WrappingKey(entry, self._unwrap(metadata, entry))
        return None

    def new_wrapping_key(self, metadata: md.TableMetadata, now_ms: int) -> WrappingKey:
        """A new key-encryption key for the table, wrapped by the KMS."""
        master = _master_id(metadata)
        key = gcm.new_key(props.ENCRYPTION_DATA_KEY_LENGTH.of(metadata.properties))
        wrapped = self._asked(lambda: self._kms.wrap_key(key, master), "wrap a key", master)
        return WrappingKey(md.EncryptedKey(_new_id(), wrapped, master, {KEY_TIMESTAMP: str(now_ms)}), key)

    def _unwrap(self, metadata: md.TableMetadata, entry: md.EncryptedKey) -> bytes:
        place, now = (entry.key_id, entry.encrypted_key_metadata), self._clock()
        with self._lock:
            known = self._unwrapped.get(place)
        if known is not None and now - known[0] < CACHE_SECONDS:
            return known[1]
        master = entry.encrypted_by_id or _master_id(metadata)
        wrapped = entry.encrypted_key_metadata
        key = self._asked(lambda: self._kms.unwrap_key(wrapped, master), "unwrap a key", master)
        if len(key) not in gcm.KEY_LENGTHS:
            raise EncryptionError(
                f"the KMS unwrapped encryption key {entry.key_id!r} to {len(key)} bytes, which is no key"
            )
        with self._lock:
            self._unwrapped = {each: kept for each, kept in self._unwrapped.items() if now - kept[0] < CACHE_SECONDS}
            self._unwrapped[place] = now, key
        return key

    def _asked(self, ask: Callable[[], bytes], what: str, master: str) -> bytes:
        try:
            return ask()
        except IcefloeError:
            raise
        except Exception as error:  # noqa: BLE001 - anybody may write a KMS, and it may raise anything
            # Texts of others may hold what they were given.
            raise EncryptionError(f"the KMS did not {what} with key {master!r}: {type(error).__name__}") from None

    def __repr__(self) -> str:
        return f"Keyring({type(self._kms).__name__})"


def sealed_key(key: FileKey, wrapping: WrappingKey) -> md.EncryptedKey:
    """The entry in table metadata of the key of a file that no sealed file names: a manifest list, or statistics."""
    made = wrapping.entry.properties[KEY_TIMESTAMP]
    sealed = gcm.seal(wrapping.key, encode_key_metadata(key), made.encode())
    return md.EncryptedKey(_new_id(), sealed, wrapping.entry.key_id)


def statistics_key_id(metadata: md.TableMetadata, file: md.StatisticsFile) -> str | None:
    """The id of the entry that has the key of a statistics file; None for a file in clear, or one with key metadata of others."""
    packed = file.key_metadata
    return next((entry.key_id for entry in metadata.encryption_keys if entry.key_id.encode() == packed), None)


def unneeded_keys(metadata: md.TableMetadata, going: Sequence[int]) -> tuple[str, ...]:
    """The entries of keys of files that nothing names once these snapshots are gone; key-encryption keys stay."""
    named = _named(metadata, lambda snapshot_id: snapshot_id not in set(going))
    leaving = _named(metadata, lambda snapshot_id: snapshot_id in set(going))
    used = {entry.encrypted_by_id for entry in metadata.encryption_keys}
    return tuple(
        entry.key_id
        for entry in metadata.encryption_keys
        if entry.key_id in leaving and entry.key_id not in named | used and KEY_TIMESTAMP not in entry.properties
    )


def _named(metadata: md.TableMetadata, of: Callable[[int], bool]) -> set[str | None]:
    """The keys that snapshots and their statistics name."""
    files = (statistics_key_id(metadata, file) for file in metadata.statistics if of(file.snapshot_id))
    return {*(each.key_id for each in metadata.snapshots if of(each.snapshot_id)), *files} - {None}


def _entry(metadata: md.TableMetadata, key_id: str | None, what: str) -> md.EncryptedKey:
    entry = next((each for each in metadata.encryption_keys if each.key_id == key_id), None)
    if key_id is None or entry is None:
        raise EncryptionError(f"{what} is encrypted with key {key_id!r}, which the table's metadata does not have")
    return entry


def _master_id(metadata: md.TableMetadata) -> str:
    master = props.ENCRYPTION_KEY_ID.of(metadata.properties)
    if master is None:
        raise EncryptionError(
            f"the table has no property {props.ENCRYPTION_KEY_ID.key!r}, so that nothing can be sealed"
        )
    return master


def _new_id() -> str:
    return b64encode(os.urandom(_ID_LENGTH)).decode()
