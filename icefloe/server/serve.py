"""`icefloe serve`: decides which catalogs are served, where, and to whom; without any configuration one in SQLite, to this machine."""

import argparse
import logging
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette

from icefloe.catalog import (
    EMBEDDED_CATALOG,
    Catalog,
    Database,
    ServedCatalog,
    catalogs_of_file,
    embedded_catalog,
)
from icefloe.errors import InvalidPropertyError
from icefloe.server import auth, workers
from icefloe.server.app import create_app
from icefloe.server.file_access import files_of
from icefloe.server.logs import log_as_json
from icefloe.server.loopback import is_loopback
from icefloe.server.migrations import migrate
from icefloe.server.settings import ServerSettings, read_configuration, read_settings

LOG = logging.getLogger("icefloe.server")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--config", metavar="FILE", help="a TOML file with [server], [catalog.NAME] and [auth]")
    parser.add_argument("--host", help="the address to listen at (127.0.0.1)")
    parser.add_argument("--port", type=int, help="the port to listen at (8181); 0 for any")
    parser.add_argument("--warehouse", metavar="FOLDER", help="without --config: the folder of catalog and tables")
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="how many processes serve (with PostgreSQL one a core, up to 4; else 1)",
    )
    parser.add_argument("--ui", action="store_true", help="serve the web page, at /ui")
    parser.add_argument("--read-only", action="store_true", help="refuse every change")
    parser.add_argument("--insecure", action="store_true", help="let everybody in who reaches the address")
    parser.add_argument("--log-level", default="info", choices=("debug", "info", "warning", "error"))


def run(arguments: argparse.Namespace) -> int:
    """Serve until the process is told to stop."""
    settings = _with_options(read_settings(read_configuration(arguments.config)), arguments)
    catalogs = served_catalogs(arguments.config, arguments.warehouse)
    number = settings.workers or (1 if settings.ui else workers.default_number(catalogs))
    settings = replace(settings, workers=number)
    start = Start(arguments.config, arguments.warehouse, settings, arguments.insecure, arguments.log_level)
    if settings.workers > 1:
        workers.require_shareable(catalogs)
    # Also with several processes: what is wrong is told here, once, and tables of the server are there when they begin.
    app = _application(start, catalogs)
    log_as_json(start.log_level)
    if settings.workers == 1:
        config = _uvicorn(app, settings)
        listener = config.bind_socket()
        LOG.info("serving %s at %s:%s", ", ".join(catalogs), *listener.getsockname()[:2])
        uvicorn.Server(config).run(sockets=[listener])
        return 0
    for catalog in catalogs.values():
        catalog.close()
    config = _uvicorn(partial(_worker, start), settings, factory=True, workers=settings.workers)
    listener = config.bind_socket()
    LOG.info("serving %s at %s:%s", ", ".join(catalogs), *listener.getsockname()[:2])
    return workers.serve(config, listener)


@dataclass(frozen=True, slots=True)
class Start:
    """All that a process needs to serve."""

    config: str | None
    warehouse: str | None
    settings: ServerSettings
    insecure: bool
    log_level: str
    parent: int = field(default_factory=os.getpid)
    """The process that was told to serve."""


def _worker(start: Start) -> Starlette:
    """The application of one of several processes."""
    log_as_json(start.log_level)
    workers.end_with_parent(start.parent)
    return _application(start, served_catalogs(start.config, start.warehouse))


def _application(start: Start, catalogs: Mapping[str, Catalog]) -> Starlette:
    content = read_configuration(start.config)
    access = _access(content, catalogs, start.settings, start.insecure)
    return create_app(catalogs, start.settings, access, files_of(content, catalogs))


def _uvicorn(app: object, settings: ServerSettings, **more: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type]  # an application, or what makes one
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        ssl_version=ssl.PROTOCOL_TLS_SERVER,
        timeout_graceful_shutdown=int(settings.stop_timeout.total_seconds()),
        # A process that decodes something large is late, and not dead.
        timeout_worker_healthcheck=60,
        **more,
    )


def _with_options(settings: ServerSettings, arguments: argparse.Namespace) -> ServerSettings:
    host = settings.host if arguments.host is None else arguments.host
    port = settings.port if arguments.port is None else arguments.port
    number = settings.workers if arguments.workers is None else arguments.workers
    if number < 0:
        raise InvalidPropertyError(f"workers is {number}; it must be 1 or more, or 0 for one per core")
    has_ui = settings.ui or arguments.ui
    if has_ui and number > 1:
        raise InvalidPropertyError(
            f"the web page is served by one process, not by {number}: its checks under way, their results and the words of"
            " its forms are in the memory of one; leave --workers or --ui out, or serve the page by a second"
            " `icefloe serve --ui --read-only` over the same catalogs"
        )
    read_only = settings.read_only or arguments.read_only
    return replace(settings, host=host, port=port, workers=number, read_only=read_only, ui=has_ui)


def served_catalogs(config: str | None, folder: str | None) -> Mapping[str, Catalog]:
    """The catalogs of a configuration file, or the one in a folder."""
    if config is None:
        return {EMBEDDED_CATALOG: embedded_catalog(folder)}
    if folder is not None:
        raise InvalidPropertyError(
            f"the folder {folder!r} is for a server without --config; the file says where catalogs are"
        )
    return catalogs_of_file(config) or {EMBEDDED_CATALOG: embedded_catalog()}


def _access(
    content: Mapping[str, object], catalogs: Mapping[str, Catalog], settings: ServerSettings, insecure: bool
) -> auth.Access:
    section = content.get("auth")
    if section is None:
        if not insecure and not is_loopback(settings.host):
            raise InvalidPropertyError(
                f"the address {settings.host} can be reached from other machines, and nothing says who may come in: set up"
                " [auth], or listen at 127.0.0.1, or say --insecure to let everybody in"
            )
        return auth.open_access(is_local=not insecure)
    if not isinstance(section, Mapping):
        raise InvalidPropertyError("`auth` of the configuration is not a table like [auth]")
    database = access_database(catalogs, settings)
    if database is not None:
        migrate(database)
    given = auth.auth_settings(section)
    if given.allows_anonymous and not insecure and not is_loopback(settings.host):
        raise InvalidPropertyError(
            f"[auth] lets requests without a credential in, and {settings.host} can be reached from other machines: take"
            " `anonymous` away, or listen at 127.0.0.1, or say --insecure"
        )
    return auth.guarded_access(given, database)


def access_database(catalogs: Mapping[str, Catalog], settings: ServerSettings) -> Database | None:
    """Where principals, roles and grants are: the database of the default warehouse, or else the first that there is."""
    ordered = sorted(catalogs, key=lambda name: name != settings.default_warehouse)
    databases = (ServedCatalog(catalogs[name]).database for name in ordered)
    return next((database for database in databases if database is not None), None)
