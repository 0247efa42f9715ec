"""Files whose format encrypts its own parts, as Parquet does: a file together with the key that its reader or writer needs."""

from typing import Any, Self

from icefloe.encryption.file_keys import FileKey
from icefloe.errors import EncryptionError


class KeyedInput:
    """An open file and its key. Only a reader that takes the key can read it: its bytes mean nothing by themselves."""

    def __init__(self, source: Any, key: FileKey) -> None:
        """`source` is what the reader of the format takes."""
        self.source = source
        self.key = key

    def read(self, length: int = -1, /) -> bytes:
        """Refused."""
        raise EncryptionError(f"{length} bytes were to be read of an encrypted file whose reader takes no key")

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Refused."""
        raise EncryptionError(
            f"byte {offset} from {whence} was looked for in an encrypted file whose reader takes no key"
        )

    def tell(self) -> int:
        """Nothing is read through this."""
        return 0

    def size(self) -> int:
        """How long the encrypted file is."""
        return int(self.source.size())

    def close(self) -> None:
        """Close the file."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class KeyedSink:
    """A file that is being written, and its key. Only a writer that takes the key can write to it."""

    def __init__(self, sink: Any, key: FileKey) -> None:
        """`sink` takes what the writer has encrypted."""
        self.sink = sink
        self.key = key

    def write(self, data: bytes, /) -> int:
        """Refused: it would be in clear."""
        raise EncryptionError(f"{len(data)} plain bytes were to be written to a file that must be encrypted")
