"""One run of `maintain` at a time, as far as a file can promise that: two runs do no harm, only double work.

A lease is never a reason to skip a check. One that nobody refreshed expires, and the next run takes it over; at once if its
holder ran on the same machine and is certain to have ended.
"""

import json
import os
import socket
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

from icefloe import commit as cm, errors, metadata as md
from icefloe.storage import Storage

_PROCESSES = Path("/proc")


@dataclass(frozen=True, slots=True)
class Holder:
    """A process, by the machine that it runs on, its number there, and when it began as far as that is known."""

    machine: str
    process: int
    began: str = ""

    @staticmethod
    def this() -> "Holder":
        """The process that asks."""
        return Holder(_machine(), os.getpid(), _began(os.getpid()))

    @property
    def has_ended(self) -> bool:
        """Whether it is certain to run no more; False if this machine cannot tell."""
        if self.machine != _machine() or os.name != "posix":
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        # Numbers are given again: the process of this one may be another.
        return self.began != _began(self.process)


def _machine() -> str:
    """Names this machine, since its start, and where processes are numbered apart, such as in containers, which numbers."""
    try:
        boot = (_PROCESSES / "sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {(_PROCESSES / 'self/ns/pid').readlink()}"
    except OSError:
        return f"{socket.gethostname()} {uuid.getnode():x}"


def _began(process: int) -> str:
    """When a process began, in ticks since the start of the machine; empty if the system does not say."""
    try:
        after_name = (_PROCESSES / str(process) / "stat").read_text().rpartition(")")[2].split()
        return after_name[19]
    except (OSError, IndexError):
        return ""


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
    def take(storage: Storage, metadata: md.TableMetadata) -> "Lease":
        """The lease of a table; an error if another run has it."""
        lease = Lease(storage, f"{md.metadata_folder(metadata)}/{NAME}", str(uuid.uuid4()))
        try:
            storage.create_exclusive(lease.location, lease._text())
        except errors.LocationExistsError:
            lease._take_over()
        return lease

    def refresh(self) -> None:
        """Hold it for longer; that it cannot be written is no reason to stop."""
        try:
            if _Held.of(self.storage.read(self.location)).run == self.run:
                self.storage.write(self.location, self._text())
        except errors.IcefloeError:
            return

    def release(self) -> None:
        """Give it back, if it is still ours."""
        try:
            if _Held.of(self.storage.read(self.location)).run == self.run:
                list(self.storage.delete([self.location]))
        except errors.IcefloeError:
            return

    def _take_over(self) -> None:
        try:
            held = _Held.of(self.storage.read(self.location))
        except errors.LocationNotFoundError:
            held = _Held()
        if held.until > cm.now_ms() and not (held.holder is not None and held.holder.has_ended):
            raise errors.StateError(
                f"run {held.run} maintains the table until {held.until} at least ({self.location}); wait for it, or delete"
                " that file if it is certain to be dead"
            )
        list(self.storage.delete([self.location]))
        try:
            self.storage.create_exclusive(self.location, self._text())
        except errors.LocationExistsError:
            raise errors.StateError(f"another run has just begun to maintain the table ({self.location})") from None

    def _text(self) -> bytes:
        document = {"run": self.run, "expires-at-ms": cm.now_ms() + LASTS_MS, "holder": asdict(Holder.this())}
        return json.dumps(document).encode()


@dataclass(frozen=True, slots=True)
class _Held:
    """Who holds a lease, and until when; one that cannot be read has expired."""

    run: str = ""
    until: int = 0
    holder: Holder | None = None

    @staticmethod
    def of(data: bytes) -> "_Held":
        try:
            read = json.loads(data)
            holder = Holder(**read["holder"]) if "holder" in read else None
            return _Held(str(read["run"]), int(read["expires-at-ms"]), holder)
        except (ValueError, KeyError, TypeError):
            return _Held()
