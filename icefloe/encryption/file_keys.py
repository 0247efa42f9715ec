"""What opens one file: its key, the additional data of all its parts, and how long it is."""

import os
from dataclasses import dataclass, field, replace

from icefloe.encryption import gcm

AAD_PREFIX_LENGTH = 16
"""How many random bytes tell the parts of one file from those of all others."""


@dataclass(frozen=True, slots=True)
class FileKey:
    """The key of one file. Texts of it never show the key."""

    key: bytes = field(repr=False)
    aad_prefix: bytes = field(default=b"", repr=False)
    file_length: int | None = None
    """How long the encrypted file is, where that is known from a trusted place; a file of another length was cut or extended."""

    def __post_init__(self) -> None:
        gcm.check_key(self.key)

    @classmethod
    def new(cls, length: int) -> "FileKey":
        """A random key for one new file."""
        return cls(gcm.new_key(length), os.urandom(AAD_PREFIX_LENGTH))

    def of_length(self, file_length: int) -> "FileKey":
        """The same for a file that is known to be so long."""
        return replace(self, file_length=file_length)
