"""What a key management service must be able to do: wrap a key with one that never leaves it, and unwrap it again."""

from typing import Protocol


class Kms(Protocol):
    """A service that keeps the keys of tables; made with the catalog's properties. Threads may share it.

    Only the process that plans and commits asks it: those that read and write files get the keys of these files.
    """

    def wrap_key(self, key: bytes, key_id: str) -> bytes:
        """The key, encrypted by the key of that id, in whatever form the service has."""

    def unwrap_key(self, wrapped: bytes, key_id: str) -> bytes:
        """The key that was wrapped with the key of that id."""
