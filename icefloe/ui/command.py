"""`icefloe ui`: serve catalogs on a local address, protected by a token."""

import argparse
import os
import socket
import sys
import webbrowser
from collections.abc import Mapping

import uvicorn

from icefloe.catalog import (
    EMBEDDED_CATALOG,
    EMBEDDED_WAREHOUSE,
    Catalog,
    Configuration,
    configured_catalog,
    embedded_catalog,
    find_configuration,
    redacted_value,
)
from icefloe.errors import InvalidPropertyError
from icefloe.ui.app import create_app
from icefloe.ui.gate import LOOPBACK_NAMES, TokenGate
from icefloe.ui.site import Site

PORT = 4777


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--catalog", "-c", action="append", metavar="NAME", help="catalog to show; all by default")
    parser.add_argument("--config", metavar="FILE", help="configuration file")
    parser.add_argument(
        "--warehouse", metavar="FOLDER", help="directory of an embedded catalog, instead of configured ones"
    )
    parser.add_argument("--port", type=int, default=PORT, help=f"port to listen on ({PORT}); 0 for any free port")
    parser.add_argument("--write", action="store_true", help="allow maintenance, tags and rollbacks from the page")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def run(arguments: argparse.Namespace) -> int:
    """Serve until the process is stopped."""
    site = open_site(arguments.config, arguments.catalog, arguments.warehouse, is_writable=arguments.write)
    gate = TokenGate()
    config = uvicorn.Config(
        create_app(site, gate, hosts=LOOPBACK_NAMES),
        host="127.0.0.1",
        port=arguments.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
    )
    listener = _listen(arguments.port)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/?token={gate.token}"
    words = "writable" if site.is_writable else "read-only"
    sys.stderr.write(f"{', '.join(site.catalogs)} ({words}) at\n\n    {address}\n\nPress Ctrl+C to stop.\n")
    sys.stderr.flush()
    if arguments.open:
        webbrowser.open(address)
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        site.close()
    return 0


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise InvalidPropertyError(
            f"cannot listen on port {port} ({error.strerror}); --port 0 selects a free port"
        ) from None
    return listener


def open_site(config: str | None, names: list[str] | None, warehouse: str | None, *, is_writable: bool = False) -> Site:
    """Open the selected catalogs: those named, all configured ones, or the embedded one."""
    if warehouse is not None:
        if not os.path.isfile(os.path.join(warehouse, "catalog.db")):
            raise InvalidPropertyError(f"{warehouse!r} has no embedded catalog: catalog.db is missing")
        return Site({EMBEDDED_CATALOG: embedded_catalog(warehouse)}, is_writable=is_writable)
    configuration = find_configuration(config)
    chosen = names or configuration.names()
    if not chosen:
        if os.path.isfile(os.path.join(EMBEDDED_WAREHOUSE, "catalog.db")):
            return Site({EMBEDDED_CATALOG: embedded_catalog()}, is_writable=is_writable)
        raise InvalidPropertyError(
            "no catalog is configured: run `icefloe init` to create one here or `icefloe catalog add` to add an existing one"
        )
    catalogs = {name: _open(configuration, name) for name in chosen}
    return Site(catalogs, {name: _sources(configuration, name) for name in chosen}, is_writable)


def _open(configuration: Configuration, name: str) -> Catalog:
    return configured_catalog(configuration, name, {})


def _sources(configuration: Configuration, name: str) -> Mapping[str, tuple[str, str]]:
    settings = configuration.settings(name)
    return {key: (redacted_value(key, each.value), each.source) for key, each in sorted(settings.items())}
