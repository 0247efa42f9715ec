"""Parquet's modular encryption as tables have it: one key for footer and columns, and a prefix that is not in the file."""

from typing import Any

import pyarrow.parquet.encryption as pe

from icefloe.encryption import FileKey, KeyedInput, KeyedSink
from icefloe.encryption.gcm import OVERHEAD, seal, unseal
from icefloe.formats.parquet.thrift_codec import ThriftReader

MAGIC = b"PARE"
_FOOTER_MODULE = b"\x00"
_ALGORITHM, _AES_GCM, _AAD_FILE_UNIQUE = 1, 1, 2
"""Fields of FileCryptoMetaData, of the union that it holds, and of the algorithm."""


def decryption(key: FileKey) -> Any:
    """pyarrow's properties for a file with this key; a file in clear is refused."""
    return pe.create_decryption_properties(key.key, aad_prefix=key.aad_prefix or None, allow_plaintext_files=False)


def encryption(key: FileKey) -> Any:
    """pyarrow's properties for a new file: AES GCM for all of it, the footer among it; the prefix is left out of the file."""
    return pe.create_encryption_properties(
        key.key, aad_prefix=key.aad_prefix, store_aad_prefix=False, encryption_algorithm="AES_GCM_V1"
    )


def keyed_source(source: Any) -> tuple[Any, dict[str, Any]]:
    """What pyarrow reads of, and its options: the key of a source that has one."""
    if isinstance(source, KeyedInput):
        return source.source, {"decryption_properties": decryption(source.key)}
    return source, {}


def keyed_sink(sink: Any) -> tuple[Any, FileKey | None]:
    """What pyarrow writes to, and the key of a sink that has one."""
    return (sink.sink, sink.key) if isinstance(sink, KeyedSink) else (sink, None)


def open_footer(tail: bytes, key: FileKey) -> tuple[bytes, bytes]:
    """The Thrift bytes of the footer of an encrypted file, from its end, and what is in front of it: how it is encrypted."""
    length = int.from_bytes(tail[-8:-4], "little")
    if tail[-4:] != MAGIC or not 0 < length <= len(tail) - 8:
        raise AssertionError("the writer ended the encrypted file without a footer")
    inner = tail[-8 - length : -8]
    crypto, sealed = _crypto_metadata(inner)
    plain = unseal(key.key, sealed[4:], _aad(crypto, key))
    return plain, crypto


def with_footer(tail: bytes, footer: bytes, crypto: bytes, key: FileKey) -> bytes:
    """The end of the file with another footer, sealed as the one before it was."""
    before = int.from_bytes(tail[-8:-4], "little")
    module = seal(key.key, footer, _aad(crypto, key))
    inner = crypto + len(module).to_bytes(4, "little") + module
    return tail[: -8 - before] + inner + len(inner).to_bytes(4, "little") + MAGIC


def _crypto_metadata(inner: bytes) -> tuple[bytes, bytes]:
    """FileCryptoMetaData, and the footer module behind it."""
    reader = ThriftReader(inner)
    reader.struct()
    crypto, sealed = inner[: reader.at], inner[reader.at :]
    if len(sealed) < 4 + OVERHEAD or int.from_bytes(sealed[:4], "little") != len(sealed) - 4:
        raise AssertionError("the writer ended the encrypted file with a footer of another form")
    return crypto, sealed


def _aad(crypto: bytes, key: FileKey) -> bytes:
    """Additional data of the footer: the prefix, what is unique to the file, and the kind of the module."""
    stored: bytes = ThriftReader(crypto).struct().get(_ALGORITHM).get(_AES_GCM).get(_AAD_FILE_UNIQUE)
    # Bytes come with their length in front.
    length = ThriftReader(stored).varint()
    return key.aad_prefix + stored[len(stored) - length :] + _FOOTER_MODULE
