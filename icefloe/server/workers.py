"""Decides how one server is several processes: they share a port, and counts, and whoever dies is replaced."""

import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Mapping

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from icefloe.catalog import Catalog, MemoryCatalog, ServedCatalog
from icefloe.errors import InvalidPropertyError

SHARED_COUNTS = "PROMETHEUS_MULTIPROC_DIR"
"""Where processes count together, if they do: a variable of the library that counts."""

_LOOK_SECONDS = 1.0


_MOST_BY_DEFAULT = 4


def default_number(catalogs: Mapping[str, Catalog]) -> int:
    """How many processes serve if nobody says: one for a core where all names are in a database server, else one.

    SQLite has one writer at a time, and other catalogs list files or ask other servers: more processes are asked for there.
    """
    databases = [ServedCatalog(catalog).database for catalog in catalogs.values()]
    if any(database is None or database.is_sqlite for database in databases):
        return 1
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, _MOST_BY_DEFAULT)


def require_shareable(catalogs: Mapping[str, Catalog]) -> None:
    """Fail if a catalog is in the memory of one process."""
    for name, catalog in catalogs.items():
        if isinstance(catalog, MemoryCatalog):
            raise InvalidPropertyError(
                f"catalog {name!r} is in memory, which several workers do not share; serve it with one"
            )


class PortHolder(socket.socket):
    """A socket that holds a port and does not listen: each process that it is sent to has a socket of its own at the port.

    The kernel deals connections out to those that listen. Processes that share one listening socket leave that to chance,
    and it happens that one of them accepts all clients while the others have nothing to do.
    """

    @classmethod
    def at(cls, family: int, address: tuple[str, int]) -> "PortHolder":
        """One of possibly several at the address."""
        holder = cls(family)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(address)
        return holder

    def __reduce__(self) -> tuple[object, ...]:
        return PortHolder.at, (int(self.family), self.getsockname())


def _held(listener: socket.socket) -> socket.socket:
    """The port of a bound socket, held for several processes; elsewhere than on Linux they share the socket."""
    if sys.platform != "linux":
        return listener
    family, address = listener.family, listener.getsockname()
    # It was bound without the option by which others may have the port, too: so nobody else has it.
    listener.close()
    return PortHolder.at(family, address)


def serve(config: uvicorn.Config, listener: socket.socket) -> int:
    """Run the processes of a configuration until this one is told to stop; its exit code."""
    listener = _held(listener)
    with tempfile.TemporaryDirectory(prefix="icefloe-server-") as folder:
        os.environ.setdefault(SHARED_COUNTS, folder)
        supervisor = Multiprocess(config, [listener])
        supervisor.run()
    return int(any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes))


def end_with_parent(parent: int) -> None:
    """Let this process end gently once the one that started it is gone, as if it had been told to."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=look, name="icefloe-parent", daemon=True).start()
