"""AES in Galois/Counter Mode: how bytes are sealed with a key, and opened only if nothing about them was changed."""

import os
from functools import lru_cache
from typing import Any

from icefloe.errors import EncryptionError, NotInstalledError

NONCE_LENGTH = 12
TAG_LENGTH = 16
OVERHEAD = NONCE_LENGTH + TAG_LENGTH
"""How much longer sealed bytes are than plain ones."""
KEY_LENGTHS = (16, 24, 32)
"""The lengths of AES keys, in bytes."""


class NotAuthenticError(Exception):
    """Sealed bytes that the key does not open: they were changed or moved, or the key is another one."""


def check_key(key: bytes) -> bytes:
    """The key, if it is as long as AES keys are."""
    if len(key) not in KEY_LENGTHS:
        raise EncryptionError(f"a key has {len(key)} bytes; AES keys have {', '.join(map(str, KEY_LENGTHS))}")
    return key


def new_key(length: int) -> bytes:
    """A random key."""
    return check_key(os.urandom(length))


def seal(key: bytes, plain: bytes | memoryview, aad: bytes | None = None) -> bytes:
    """A random nonce, the encrypted bytes and their tag."""
    nonce = os.urandom(NONCE_LENGTH)
    sealed: bytes = _cipher(key).encrypt(nonce, plain, aad)
    return nonce + sealed


def unseal(key: bytes, sealed: bytes | memoryview, aad: bytes | None = None) -> bytes:
    """What was sealed with this key and these additional data; NotAuthenticError if it was not."""
    from cryptography.exceptions import InvalidTag

    if len(sealed) < OVERHEAD:
        raise NotAuthenticError(f"{len(sealed)} bytes are too few to be sealed ones")
    try:
        plain: bytes = _cipher(key).decrypt(bytes(sealed[:NONCE_LENGTH]), sealed[NONCE_LENGTH:], aad)
    except InvalidTag:
        raise NotAuthenticError("the key does not open it, or its bytes were changed") from None
    return plain


@lru_cache(maxsize=64)
def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise NotInstalledError(
            "encrypted tables need the package cryptography: pip install 'icefloe[encryption]'"
        ) from None
    return AESGCM(check_key(key))
