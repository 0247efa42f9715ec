"""Keys for tests: services that count what they are asked, and the file of keys that most tests use."""

import json
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

from icefloe import metadata as md
from icefloe.encryption.gcm import seal, unseal
from icefloe.schema import Schema, types

MASTER_KEYS = {"k1": b"0123456789abcdef", "k2": b"fedcba9876543210" * 2}


class CountingKms:
    """A service in memory that counts its calls."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.wrapped = self.unwrapped = 0

    def wrap_key(self, key: bytes, key_id: str) -> bytes:
        self.wrapped += 1
        return seal(MASTER_KEYS[key_id], key)

    def unwrap_key(self, wrapped: bytes, key_id: str) -> bytes:
        self.unwrapped += 1
        return unseal(MASTER_KEYS[key_id], wrapped)


def key_file(folder: Path, keys: Mapping[str, bytes] = MASTER_KEYS) -> Path:
    """A file of keys for the KMS `file`."""
    path = folder / "keys.json"
    path.write_text(json.dumps({key_id: b64encode(key).decode() for key_id, key in keys.items()}))
    path.chmod(0o600)
    return path


def encrypted_metadata(properties: Mapping[str, str] | None = None, version: int = 3) -> md.TableMetadata:
    """A new table that is encrypted with `k1`."""
    return md.new_table_metadata(
        Schema(types.NestedField(1, "id", types.LongType())),
        location="s3://b/t",
        properties={"encryption.key-id": "k1", **(properties or {})},
        format_version=version,
        uuid="00000000-0000-0000-0000-000000000001",
        timestamp_ms=0,
    )
