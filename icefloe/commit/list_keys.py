"""How the manifest list of a new snapshot is stored: encrypted if the table is, with a key that the table's metadata gets.

Each attempt has a list of its own, and a key of its own for that. A new key-encryption key is made once in a commit, since the
KMS is asked for it, and is added by every attempt on a table that has none.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import pyarrow.compute as pc

from icefloe import manifests as mf, metadata as md
from icefloe.commit.parent import Parent
from icefloe.encryption import key_length_of, sealed_list_key
from icefloe.errors import EncryptionError


@dataclass(frozen=True, slots=True)
class StoredList:
    """The bytes of a list as they are stored, the id of its key, and the keys that are new to the table."""

    data: bytes
    key_id: str | None = None
    keys: tuple[md.EncryptedKey, ...] = ()


def stored_list(parent: Parent, data: bytes) -> StoredList:
    """The list, encrypted if the table is."""
    metadata, bench = parent.metadata, parent.bench
    stored, key = mf.sealed(data, key_length_of(metadata))
    if key is None:
        return StoredList(stored)
    keyring, now = bench.storage.keyring, bench.clock_ms()
    if keyring is None:
        raise EncryptionError(
            "the table is encrypted, and the catalog has no KMS, without which nothing can be written to it; set"
            " encryption.kms-type, or encryption.kms-impl, where the catalog is loaded"
        )
    wrapping = keyring.wrapping_key(metadata, now)
    made = wrapping or bench.remember("key-encryption key", partial(keyring.new_wrapping_key, metadata, now))
    entry = sealed_list_key(key, made)
    return StoredList(stored, entry.key_id, (entry,) if wrapping is not None else (made.entry, entry))


def check_sealed(metadata: md.TableMetadata, added: Iterable[mf.ManifestColumns]) -> None:
    """Fail if a new file is in clear and the table is encrypted, or the other way round: its key would be in clear then."""
    is_encrypted = key_length_of(metadata) is not None
    for columns in added:
        keys = columns.column("key_metadata")
        wrong = keys.is_null() if is_encrypted else keys.is_valid()
        if pc.any(wrong).as_py():
            path = columns.column("file_path").filter(wrong)[0].as_py()
            raise EncryptionError(
                f"{path} is not encrypted, and the table is: its rows would be in clear; write them to the table instead"
                if is_encrypted
                else f"{path} is encrypted, and the table is not: its key would be in clear"
            )
