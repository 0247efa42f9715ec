"""What table metadata says about encryption keys; the keys in it are themselves encrypted (spec: Encryption Keys)."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EncryptedKey:
    """A key-encryption key or the key metadata of a manifest list, encrypted by the key that `encrypted_by_id` names."""

    key_id: str
    encrypted_key_metadata: bytes
    encrypted_by_id: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
