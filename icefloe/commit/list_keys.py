"""The keys of manifest lists and statistics files of encrypted tables, which the table's metadata gets.

Each attempt has a list of its own, and a key of its own for that. A new key-encryption key is made once in a commit, since the
KMS is asked for it, and is added by every attempt on a table that has none.
"""

from collections.abc import Iterable
from functools import partial

import pyarrow.compute as pc

from icefloe import manifests as mf, metadata as md
from icefloe.commit.change import Workbench
from icefloe.encryption import FileKey, key_length_of, sealed_key
from icefloe.errors import EncryptionError

KeyEntries = tuple[str, tuple[md.EncryptedKey, ...]]
NO_KEY: tuple[None, tuple[md.EncryptedKey, ...]] = (None, ())
"""What a file has that is not encrypted."""


def key_entries(metadata: md.TableMetadata, bench: Workbench, key: FileKey) -> KeyEntries:
    """The id of a new entry for the key of a file, and the entries that are new to the table."""
    keyring, now = bench.storage.keyring, bench.clock_ms()
    if keyring is None:
        raise EncryptionError(
            "the table is encrypted, but the catalog has no KMS, which is required to write to it; set"
            " encryption.kms-type, or encryption.kms-impl, where the catalog is loaded"
        )
    wrapping = keyring.wrapping_key(metadata, now)
    made = wrapping or bench.remember("key-encryption key", partial(keyring.new_wrapping_key, metadata, now))
    entry = sealed_key(key, made)
    return entry.key_id, (entry,) if wrapping is not None else (made.entry, entry)


def check_sealed(metadata: md.TableMetadata, added: Iterable[mf.ManifestColumns]) -> None:
    """Fail if a new file is in clear and the table is encrypted, or the other way round: its key would be in clear then."""
    is_encrypted = key_length_of(metadata) is not None
    for columns in added:
        keys = columns.column("key_metadata")
        wrong = keys.is_null() if is_encrypted else keys.is_valid()
        if pc.any(wrong).as_py():
            path = columns.column("file_path").filter(wrong)[0].as_py()
            raise EncryptionError(
                f"{path} is not encrypted, but the table is: its rows would be stored in plain text; write them to the table instead"
                if is_encrypted
                else f"{path} is encrypted, but the table is not: its key would be stored in plain text"
            )
