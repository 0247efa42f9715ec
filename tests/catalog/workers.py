"""What other processes do in tests: append to a table, or die while they do."""

import os
import signal
from collections.abc import Callable
from typing import Any

from icefloe.catalog import Catalog, HadoopCatalog, Identifier, SqlCatalog, load_catalog
from tests.catalog.tables import append, write_rows

NAME = "shop.orders"


def append_many(name: str, properties: dict[str, str], worker: int, count: int, start: Any, results: Any) -> None:
    """Append one file after another, and say which."""
    with load_catalog(name, **properties) as catalog:
        table = catalog.load_table(NAME)
        start.wait()
        results.put([append(table, worker * 1000 + number).file_path for number in range(count)])


BOUNDARIES = (
    "data written",
    "manifest written",
    "manifest list written",
    "metadata written",
    "before swap",
    "after swap",
)
"""Where a writer can die; in a file system the metadata is written by the swap itself."""


def append_and_die(name: str, properties: dict[str, str], boundary: str, path: Any) -> None:
    """Append one file, and be killed at the boundary."""
    with load_catalog(name, **properties) as catalog:
        table = catalog.load_table(NAME)
        file = write_rows(table, 666)
        path.put(file.file_path)
        # The queue's thread must have sent it before the end comes.
        path.close()
        path.join_thread()
        if boundary == "data written":
            die()
        die_at(catalog, boundary)
        table.update_snapshot().fast_append([file])
    raise AssertionError(f"the writer outlived {boundary!r}")


def die() -> None:
    """End at once, as when the power goes."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(catalog: Catalog, boundary: str) -> None:
    """Let the process end when the commit comes to the boundary."""
    storage = catalog.storage
    write, create = storage.write, storage.create_exclusive
    signs = {
        "manifest written": ("-m0.avro",),
        "manifest list written": ("/snap-",),
        "metadata written": (".metadata.json",),
    }

    def write_and_die(location: str, data: bytes) -> None:
        write(location, data)
        if any(sign in location for sign in signs.get(boundary, ())):
            die()

    def create_and_die(location: str, data: bytes) -> None:
        if boundary == "before swap":
            die()
        create(location, data)
        die()

    storage.write = write_and_die  # type: ignore[method-assign]  # a fault that no store shows on demand
    if isinstance(catalog, HadoopCatalog):
        storage.create_exclusive = create_and_die  # type: ignore[method-assign]  # the same
    elif isinstance(catalog, SqlCatalog):
        pointers = catalog._table_pointers
        pointers.swap = _dying(pointers.swap, boundary)  # type: ignore[method-assign]  # the same


def _dying(swap: Callable[[Identifier, str, str], bool], boundary: str) -> Callable[..., bool]:
    def swap_and_die(identifier: Identifier, expected: str, location: str) -> bool:
        if boundary == "before swap":
            die()
        swap(identifier, expected, location)
        die()
        return True

    return swap_and_die
