"""The catalog and table that a command works on, from its options, the configuration and the given names."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import typer

from icefloe import errors
from icefloe.catalog import (
    EMBEDDED_CATALOG,
    EMBEDDED_WAREHOUSE,
    At,
    Catalog,
    Configuration,
    TableName,
    choose_version,
    configured_catalog,
    embedded_catalog,
    find_configuration,
    load_static_table,
    parse_table_name,
)
from icefloe.cli.options import Options, say
from icefloe.cli.output import Output
from icefloe.metadata import Snapshot
from icefloe.planning import choose_snapshot
from icefloe.progress import Listener, silent
from icefloe.table import Table


@dataclass(frozen=True)
class NamedTable:
    """A table and the selected snapshot of it."""

    table: Table
    name: TableName
    at: At

    def __str__(self) -> str:
        return str(self.name)

    def snapshot(self) -> Snapshot | None:
        """Return the selected snapshot; None if the table is empty."""
        return choose_snapshot(
            self.table.metadata, self.at.get("snapshot_id"), self.at.get("ref"), self.at.get("as_of")
        )


class Invocation:
    """One run of a command."""

    def __init__(self, options: Options, command: str) -> None:
        self.options = options
        self.out = Output(options, command)
        self._open: dict[str, Catalog] = {}

    @cached_property
    def configuration(self) -> Configuration:
        """The effective configuration."""
        return find_configuration(self.options.config)

    @cached_property
    def catalog_name(self) -> str:
        """Name of the catalog in use: by option, by default, or the only one configured."""
        if self.options.catalog is not None:
            return self.options.catalog
        if self.configuration.default_catalog is not None:
            return self.configuration.default_catalog
        names = self.configuration.names()
        return names[0] if len(names) == 1 and not self.options.properties else "default"

    @property
    def catalog(self) -> Catalog:
        """The catalog in use."""
        return self.open_catalog(self.catalog_name)

    def open_catalog(self, name: str) -> Catalog:
        """Return a catalog by name; it is closed with this invocation."""
        if name not in self._open:
            self._open[name] = self._load(name)
        return self._open[name]

    def _load(self, name: str) -> Catalog:
        given = self.options.properties if name == self.catalog_name else {}
        if not given and not self.configuration.settings(name):
            if os.path.isfile(os.path.join(EMBEDDED_WAREHOUSE, "catalog.db")) and name in ("default", EMBEDDED_CATALOG):
                return embedded_catalog()
            if self.options.catalog is None and self.configuration.path is None:
                raise errors.InvalidPropertyError(
                    "no catalog is configured: run `icefloe init` to create one here or `icefloe catalog add` to add an existing one,"
                    " or pass --uri and --warehouse"
                )
        return configured_catalog(self.configuration, name, given)

    def parse(self, text: str) -> TableName:
        """Parse a table name; its first part may be a catalog, unless an option selects one."""
        is_chosen = self.options.catalog is not None or self.options.properties
        return parse_table_name(text, () if is_chosen else self.configuration.names())

    def table(self, text: str) -> NamedTable:
        """Load the table and snapshot that a name refers to."""
        name = self.parse(text)
        if name.location is not None:
            table = load_static_table(os.path.expanduser(name.location), self._storage_properties())
        else:
            table = self.open_catalog(name.catalog or self.catalog_name).load_table(name.identifier)
        return NamedTable(table, name, choose_version(table.metadata, name.version))

    def _storage_properties(self) -> dict[str, str]:
        return self.configuration.properties(self.catalog_name, self.options.properties)

    def changed_table(self, text: str) -> Table:
        """Load a table to change; the name must not select a snapshot."""
        named = self.table(text)
        if named.name.version is not None:
            raise errors.InvalidInputError(f"{text!r} names a snapshot, which cannot be changed; leave out the @ part")
        return named.table

    def say(self, text: str) -> None:
        """Print a message that is not a result."""
        say(text, self.options)

    def close(self) -> None:
        """Close all open catalogs."""
        for catalog in self._open.values():
            catalog.close()


@contextmanager
def invocation(ctx: typer.Context) -> Iterator[Invocation]:
    """Provide the invocation of a command and close it at the end."""
    path = ctx.command_path.partition(" ")[2]
    run = Invocation(ctx.obj, path or "icefloe")
    try:
        yield run
    finally:
        run.close()


def listener(run: Invocation) -> Listener | None:
    """Return the progress listener: silent with --quiet, otherwise the default, a bar on terminals."""
    return silent if run.options.quiet else None
