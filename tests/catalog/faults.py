"""Faults on demand, at every step that a writer takes outside of itself: files that are read, written and deleted, and
pointers of the catalog that are looked at and swapped.

A wire counts the steps. A fault strikes at one of them: before or after it is done, by an error or by the end of the process.
After a simulated end no step has any effect: whatever handlers still run in the writer, it is dead to the world.
"""

import datetime as dt
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from icefloe.catalog import Catalog, HadoopCatalog, Identifier, RestCatalog
from icefloe.catalog.pointers import PointerCatalog, Pointers, PointerSwap
from icefloe.catalog.rest.auth import AuthSession, OutgoingRequest
from icefloe.catalog.rest.http import NoAnswerError, NotSentError, Response, Transport
from icefloe.catalog.seals import Seal
from icefloe.catalog.sql import SqlPointers
from icefloe.errors import CommitStateUnknown, StorageError
from icefloe.storage import FileInfo, OutputStream, Storage, parse_location
from icefloe.storage.protocol import DeleteFailure, Tail

Result = TypeVar("Result")

WRITING = ("write", "create", "delete", "swap", "insert")
"""Steps that change something in the world."""
SWAPPING = ("create", "swap", "insert")
"""Steps that are the commit itself."""


class Killed(BaseException):
    """The writer is no more; nothing may catch this."""


@dataclass(frozen=True)
class Step:
    """One step of a writer: what it did, to what, and whether it made the commit."""

    action: str
    what: str
    commits: bool = False

    def __str__(self) -> str:
        return f"{self.action} {self.what.rpartition('/')[2]}"


@dataclass(frozen=True)
class Fault:
    """What happens at a step.

    `kill`: the end of the writer; `error`: a store that fails, once or, with `lasting`, from then on for every such step on
    the same thing (for writes: on anything, as on a full disk); `lost`: an answer that nobody got; `twice`: a request that
    was sent two times, with the second answer. `after` says that the step was done before.
    """

    name: str
    actions: tuple[str, ...]
    after: bool = False
    lasting: bool = False

    def places(self, steps: Sequence[Step]) -> list[Step]:
        """The steps that it can strike at, in order."""
        return [step for step in steps if step.action in self.actions]

    @property
    def reads(self) -> bool:
        """Whether it is about reading, so that nothing may be known from before."""
        return "read" in self.actions


KILL_BEFORE = Fault("kill", WRITING)
KILL_AFTER = Fault("kill", WRITING, after=True)
FULL_DISK = Fault("error", ("write", "create"))
FULL_DISK_FOR_GOOD = Fault("error", ("write", "create"), lasting=True)
FAILED_AFTER_WRITING = Fault("error", ("write", "create"), after=True)
UNREADABLE_ONCE = Fault("error", ("read", "look"))
UNREADABLE = Fault("error", ("read", "look"), lasting=True)
UNDELETABLE = Fault("error", ("delete",), lasting=True)
LOST_REPLY = Fault("lost", SWAPPING, after=True)
LOST_REPLY_AND_CATALOG = Fault("lost", SWAPPING, after=True, lasting=True)
LOST_REQUEST = Fault("lost", SWAPPING)
SENT_TWICE = Fault("twice", SWAPPING)


class Wire:
    """Counts the steps of one writer, and lets a fault strike at one of them: that of the number `at` of its kind."""

    def __init__(self, fault: Fault | None = None, at: int = -1, rival: Callable[[], object] | None = None) -> None:
        self.steps: list[Step] = []
        self.struck: Step | None = None
        self.really = False
        self._fault = fault
        self._at = at
        self._rival = rival
        self._dead = False
        self._lock = threading.Lock()
        self._begun = False

    @property
    def has_committed(self) -> bool:
        """Whether the commit was made, whatever the writer knows of it."""
        return any(step.commits for step in self.steps)

    def begin(self) -> None:
        """Count from here on."""
        self._begun = True

    def end(self) -> None:
        """Let everything work again, unless the writer is dead; a rival that did not come yet comes now."""
        self._fault = None
        self._let_rival()

    def _let_rival(self) -> None:
        rival, self._rival = self._rival, None
        if rival is not None:
            rival()

    def around(self, action: str, what: str, do: Callable[[], Result]) -> Result:
        """Take one step."""
        if not self._begun:
            return do()
        if action in SWAPPING:
            self._let_rival()
        with self._lock:
            if self._dead:
                raise Killed
            number = len(self.steps)
            self.steps.append(Step(action, what))
        fault = self._fault
        if fault is None or not self._hits(fault, number, action, what):
            return self._done(number, do)
        self.struck = self.struck or self.steps[number]
        return self._strike(fault, number, do)

    def _hits(self, fault: Fault, number: int, action: str, what: str) -> bool:
        if self.struck is None:
            return action in fault.actions and len(fault.places(self.steps[: number + 1])) == self._at + 1
        if not fault.lasting:
            return False
        if fault.name == "lost":
            return True
        return action in fault.actions and (action in WRITING or what == self.struck.what)

    def _done(self, number: int, do: Callable[[], Result]) -> Result:
        step = self.steps[number]
        result = do()
        if step.action in SWAPPING and result is not False:
            self.steps[number] = Step(step.action, step.what, True)
        return result

    def _strike(self, fault: Fault, number: int, do: Callable[[], Result]) -> Result:
        step = self.steps[number]
        if fault.after and (self.struck is step or fault.name != "lost"):
            self._done(number, do)
        match fault.name:
            case "kill":
                if self.really:
                    os.kill(os.getpid(), signal.SIGKILL)
                self._dead = True
                raise Killed
            case "twice":
                self._done(number, do)
                return do()
            case "lost" if step.action in ("swap", "insert"):
                raise CommitStateUnknown("the reply was lost")
            case _:
                raise StorageError(step.what, "no space left on device" if step.action == "write" else "I/O error")


class WiredStorage(Storage):
    """The real storage, each step of which goes over a wire."""

    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire

    def read(self, location: str) -> bytes:
        return self._wire.around("read", location, lambda: Storage.read(self, location))

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        return self._wire.around("read", location, lambda: Storage.read_range(self, location, offset, length))

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return self._wire.around("read", location, lambda: Storage.read_ranges(self, location, ranges))

    def read_tail(self, location: str, length: int) -> Tail:
        return self._wire.around("read", location, lambda: Storage.read_tail(self, location, length))

    def open_input(self, location: str, *, size: int | None = None) -> Any:
        return self._wire.around("read", location, lambda: Storage.open_input(self, location, size=size))

    def stat(self, location: str) -> FileInfo:
        return self._wire.around("read", location, lambda: Storage.stat(self, location))

    def list_prefix(self, location: str) -> Iterator[FileInfo]:
        return self._wire.around("read", location, lambda: Storage.list_prefix(self, location))

    def write(self, location: str, data: bytes) -> None:
        self._wire.around("write", location, lambda: Storage.write(self, location, data))

    def open_output(self, location: str) -> OutputStream:
        return _WiredOutput(self._wire, location, super().open_output(location))

    def create_exclusive(self, location: str, data: bytes) -> None:
        self._wire.around("create", location, lambda: Storage.create_exclusive(self, location, data))

    def delete(self, locations: Iterable[str]) -> list[DeleteFailure]:
        given = list(locations)
        if not given:
            return []
        return self._wire.around("delete", given[0], lambda: Storage.delete(self, given))


class _WiredOutput(OutputStream):
    """A file that is being written; its step is its appearance."""

    def __init__(self, wire: Wire, location: str, inner: OutputStream) -> None:
        self._wire = wire
        self._inner = inner
        super().__init__(parse_location(location))

    def _append(self, data: memoryview) -> None:
        self._inner.write(data)

    def _publish(self) -> None:
        try:
            self._wire.around("write", str(self._location), self._inner.close)
        except BaseException:
            self._inner.abort()
            raise

    def _drop(self) -> None:
        self._inner.abort()


def wired(catalog: Catalog, wire: Wire) -> Catalog:
    """Another object for the same catalog, each step of which goes over the wire."""
    found: Catalog = pickle.loads(pickle.dumps(catalog))
    found._storage = WiredStorage(wire)
    if isinstance(found, RestCatalog):
        storage = found._connected.storage = WiredStorage(wire)
        vars(found)["_storage_of"] = lambda _identifier, _loaded: storage
        client = found._tables.session.client
        client._transport = WiredTransport(client._transport, wire)
    elif isinstance(found, PointerCatalog):
        found._table_pointers = WiredPointers(found._table_pointers, wire)
        found._view_pointers = WiredPointers(found._view_pointers, wire)
    else:
        assert isinstance(found, HadoopCatalog)
    return found


class WiredTransport(Transport):
    """The real connection to a REST server, on which requests that are part of a commit go over a wire."""

    def __init__(self, inner: Transport, wire: Wire) -> None:
        self._inner = inner
        self._wire = wire

    def send(
        self,
        request: OutgoingRequest,
        auth: AuthSession | None,
        idempotent: bool,
        within: dt.timedelta | None = None,
    ) -> Response:
        answers: list[Response] = []

        def send() -> bool:
            answers.append(self._inner.send(request, auth, idempotent, within))
            return answers[-1].status in (200, 204)

        action = _action(request)
        if action is None:
            send()
            return answers[-1]
        try:
            self._wire.around(action, "pointer", send)
        except CommitStateUnknown as error:
            raise NoAnswerError(str(error)) from error
        except StorageError as error:
            raise NotSentError(str(error)) from error
        return answers[-1]


def _action(request: OutgoingRequest) -> str | None:
    """What a request to a REST server is to a writer; None if it is not part of a commit."""
    if request.method in ("GET", "HEAD"):
        return "look"
    if b'"stage-create":false' in request.body or b'"assert-create"' in request.body:
        return "insert"
    return "swap" if b'"updates"' in request.body else None


class WiredPointers(Pointers):
    """The real pointers, each step of which that is part of a commit goes over a wire."""

    def __init__(self, pointers: Pointers, wire: Wire) -> None:
        super().__init__(pointers._catalog, pointers._noun)
        self._pointers = pointers
        self._wire = wire

    def find(self, identifier: Identifier) -> str | None:
        return self._wire.around("look", "pointer", lambda: self._pointers.find(identifier))

    def insert(self, identifier: Identifier, location: str, seal: Seal | None = None) -> bool:
        return self._wire.around("insert", "pointer", lambda: self._pointers.insert(identifier, location, seal))

    def swap(self, identifier: Identifier, expected: str, location: str, seal: Seal | None = None) -> bool:
        return self._wire.around("swap", "pointer", lambda: self._pointers.swap(identifier, expected, location, seal))

    def swap_all(self, swaps: Sequence[PointerSwap]) -> bool:
        return self._wire.around("swap", "pointer", lambda: self._pointers.swap_all(swaps))

    def remove(self, identifier: Identifier, expected: str | None = None) -> bool:
        return self._pointers.remove(identifier, expected)

    def move(self, source: Identifier, target: Identifier) -> bool:
        return self._pointers.move(source, target)

    def names(self, namespace: Identifier) -> set[Identifier]:
        return self._pointers.names(namespace)

    def all(self) -> list[tuple[Identifier, str]]:
        """What SQL catalogs know in one query."""
        assert isinstance(self._pointers, SqlPointers)
        return self._pointers.all()
