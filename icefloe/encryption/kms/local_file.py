"""Keys in a file of this machine: for tests, for small installations, and where files of others are to be opened.

The file is JSON, key ids to keys in Base64, and only its owner may read it. What is wrapped has the form of the Java library's
and the Rust library's services for tests: nonce, encrypted key, tag.
"""

import json
import os
import stat
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping

from icefloe.encryption import gcm
from icefloe.errors import EncryptionError, InvalidPropertyError

PATH = "encryption.kms-file"


class FileKms:
    """Wraps keys with those in the file at `encryption.kms-file`, which is read at each use."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        path = properties.get(PATH)
        if not path:
            raise InvalidPropertyError(f"the KMS 'file' needs {PATH!r}: the path of a JSON file of key ids and keys")
        self._path = path

    def wrap_key(self, key: bytes, key_id: str) -> bytes:
        """The key, sealed."""
        return gcm.seal(self._master(key_id), key)

    def unwrap_key(self, wrapped: bytes, key_id: str) -> bytes:
        """The key that was sealed."""
        try:
            return gcm.unseal(self._master(key_id), wrapped)
        except gcm.NotAuthenticError as error:
            raise EncryptionError(f"key {key_id!r} of {self._path} does not unwrap this key: {error}") from None

    def _master(self, key_id: str) -> bytes:
        try:
            with open(self._path, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
                    raise EncryptionError(f"{self._path} can be read by others; give it mode 0600")
                keys = json.load(file)
        except OSError as error:
            raise EncryptionError(f"the keys in {self._path} cannot be read: {error.strerror}") from None
        except ValueError:
            raise EncryptionError(f"{self._path} is not JSON of key ids and keys") from None
        text = keys.get(key_id) if isinstance(keys, dict) else None
        if not isinstance(text, str):
            raise EncryptionError(f"{self._path} has no key {key_id!r}")
        try:
            return gcm.check_key(b64decode(text, validate=True))
        except NotBase64:
            raise EncryptionError(f"key {key_id!r} in {self._path} is not Base64") from None
