"""`icefloe server doctor`: decides what of a server's configuration would keep it from starting or working, without starting it."""

import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from icefloe import errors
from icefloe.catalog import Catalog, ServedCatalog
from icefloe.server.auth import auth_settings
from icefloe.server.file_access import files_of
from icefloe.server.loopback import is_loopback
from icefloe.server.migrations import is_current
from icefloe.server.serve import access_database, served_catalogs
from icefloe.server.settings import ServerSettings, read_configuration, read_settings

FINE, WARNING, WRONG = "OK", "WARN", "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is said of one part of a server."""

    severity: str
    subject: str
    text: str


def examine(config: str | None, folder: str | None) -> Iterator[Finding]:
    """Look at all parts, one after the other; what one of them lacks does not hide the next."""
    try:
        content = read_configuration(config)
        settings = read_settings(content)
    except errors.IcefloeError as error:
        yield Finding(WRONG, "configuration", _said(error))
        return
    yield Finding(FINE, "configuration", config or "none; a catalog in SQLite is served")
    catalogs: Mapping[str, Catalog] = {}
    try:
        catalogs = served_catalogs(config, folder)
    except errors.IcefloeError as error:
        yield Finding(WRONG, "warehouses", _said(error))
    for name, catalog in catalogs.items():
        yield from _warehouse(name, catalog)
        catalog.close()
    yield _files(content, catalogs)
    yield _access(content, catalogs, settings)
    yield _certificate(settings)


def _warehouse(name: str, catalog: Catalog) -> Iterator[Finding]:
    subject = f"warehouse {name}"
    try:
        database = ServedCatalog(catalog).database
        if database is not None and not is_current(database):
            yield Finding(
                WARNING, subject, "the server's tables are not up to date: `icefloe server migrate`, or a start"
            )
        namespaces = catalog.list_namespaces()
        first = next((table for each in namespaces for table in catalog.list_tables(each)), None)
        if first is not None:
            catalog.load_table(first)
    except errors.IcefloeError as error:
        yield Finding(WRONG, subject, _said(error))
        return
    read = "no table to read" if first is None else f"read {'.'.join(first)}"
    yield Finding(FINE, subject, f"{len(namespaces)} namespaces, {read}")


def _files(content: Mapping[str, object], catalogs: Mapping[str, Catalog]) -> Finding:
    try:
        files_of(content, catalogs)
    except errors.IcefloeError as error:
        return Finding(WRONG, "access to files", _said(error))
    return Finding(FINE, "access to files", "as [access] says" if "access" in content else "clients have their own")


def _access(content: Mapping[str, object], catalogs: Mapping[str, Catalog], settings: ServerSettings) -> Finding:
    section = content.get("auth")
    if section is None:
        if is_loopback(settings.host):
            return Finding(FINE, "who may come in", f"everybody on this machine, at {settings.host}")
        return Finding(
            WRONG, "who may come in", f"nothing says who, and {settings.host} is reached from other machines"
        )
    try:
        given = auth_settings(section if isinstance(section, Mapping) else {})
    except errors.IcefloeError as error:
        return Finding(WRONG, "who may come in", _said(error))
    if given.allows_anonymous:
        return Finding(WARNING, "who may come in", "[auth] lets requests without a credential in")
    if access_database(catalogs, settings) is None:
        return Finding(
            WARNING, "who may come in", "as [auth] says; no catalog has a database for more users and grants"
        )
    return Finding(FINE, "who may come in", "as [auth] and the database say")


def _certificate(settings: ServerSettings) -> Finding:
    if settings.tls_certificate is None:
        where = "this machine alone" if is_loopback(settings.host) else "a proxy in front should have it"
        return Finding(FINE, "TLS", f"none; {where}")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_certificate, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        return Finding(WRONG, "TLS", f"{settings.tls_certificate}: {error}")
    return Finding(FINE, "TLS", settings.tls_certificate)


def _said(error: Exception) -> str:
    return " ".join(errors.without_credentials(str(error)).split())
