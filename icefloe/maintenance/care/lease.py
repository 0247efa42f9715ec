"""One run of `maintain` at a time, as far as a file can promise that: two runs do no harm, only double work.

A lease is never a reason to skip a check. One that nobody refreshed expires, and the next run takes it over.
"""

import json
import uuid
from dataclasses import dataclass

from icefloe.commit import metadata_folder, now_ms
from icefloe.errors import IcefloeError, LocationExistsError, LocationNotFoundError, StateError
from icefloe.metadata import TableMetadata
from icefloe.storage import Storage

NAME = "icefloe-maintenance.lease"
LASTS_MS = 600_000
"""How long a lease holds after it was taken or refreshed."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to maintain a table, for a while."""

    storage: Storage
    location: str
    run: str

    @staticmethod
    def take(storage: Storage, metadata: TableMetadata) -> "Lease":
        """The lease of a table; an error if another run has it."""
        lease = Lease(storage, f"{metadata_folder(metadata)}/{NAME}", str(uuid.uuid4()))
        try:
            storage.create_exclusive(lease.location, lease._text())
        except LocationExistsError:
            lease._take_over()
        return lease

    def refresh(self) -> None:
        """Hold it for longer; that it cannot be written is no reason to stop."""
        try:
            if _owner(self.storage.read(self.location))[0] == self.run:
                self.storage.write(self.location, self._text())
        except IcefloeError:
            return

    def release(self) -> None:
        """Give it back, if it is still ours."""
        try:
            if _owner(self.storage.read(self.location))[0] == self.run:
                list(self.storage.delete([self.location]))
        except IcefloeError:
            return

    def _take_over(self) -> None:
        try:
            run, until = _owner(self.storage.read(self.location))
        except LocationNotFoundError:
            run, until = "", 0
        if until > now_ms():
            raise StateError(
                f"run {run} maintains the table until {until} at least ({self.location}); wait for it, or delete that file "
                "if it is certain to be dead"
            )
        list(self.storage.delete([self.location]))
        try:
            self.storage.create_exclusive(self.location, self._text())
        except LocationExistsError:
            raise StateError(f"another run has just begun to maintain the table ({self.location})") from None

    def _text(self) -> bytes:
        return json.dumps({"run": self.run, "expires-at-ms": now_ms() + LASTS_MS}).encode()


def _owner(data: bytes) -> tuple[str, int]:
    """Who holds a lease, and until when; one that cannot be read has expired."""
    try:
        read = json.loads(data)
        return str(read["run"]), int(read["expires-at-ms"])
    except (ValueError, KeyError, TypeError):
        return "", 0
