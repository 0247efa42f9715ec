"""Decides which catalog and which table a command works on, by its options, the configuration and the names that it is given."""

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
    """A table, and the snapshot of it that is meant."""

    table: Table
    name: TableName
    at: At

    def __str__(self) -> str:
        return str(self.name)

    def snapshot(self) -> Snapshot | None:
        """The snapshot that is meant; None of an empty table."""
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
        """The configuration that counts."""
        return find_configuration(self.options.config)

    @cached_property
    def catalog_name(self) -> str:
        """The catalog in use: by option, by default, or as the only one that there is."""
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
        """A catalog by name; it is closed at the end."""
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
                    "no catalog is configured: `icefloe init` makes one here, `icefloe catalog add` names one that you have,"
                    " and --uri with --warehouse do for one command"
                )
        return configured_catalog(self.configuration, name, given)

    def parse(self, text: str) -> TableName:
        """A name of a table; its first part may be a catalog, unless one is chosen by option."""
        is_chosen = self.options.catalog is not None or self.options.properties
        return parse_table_name(text, () if is_chosen else self.configuration.names())

    def table(self, text: str) -> NamedTable:
        """The table that a text names, at the snapshot that it names."""
        name = self.parse(text)
        if name.location is not None:
            table = load_static_table(os.path.expanduser(name.location), self._storage_properties())
        else:
            table = self.open_catalog(name.catalog or self.catalog_name).load_table(name.identifier)
        return NamedTable(table, name, choose_version(table.metadata, name.version))

    def _storage_properties(self) -> dict[str, str]:
        return self.configuration.properties(self.catalog_name, self.options.properties)

    def changed_table(self, text: str) -> Table:
        """A table that is to be changed: one of a catalog, and no snapshot of it."""
        named = self.table(text)
        if named.name.version is not None:
            raise errors.InvalidInputError(f"{text!r} is a snapshot of a table, which never changes; leave out the @")
        return named.table

    def say(self, text: str) -> None:
        """Tell the user something that is not a result."""
        say(text, self.options)

    def close(self) -> None:
        """Give back connections."""
        for catalog in self._open.values():
            catalog.close()


@contextmanager
def invocation(ctx: typer.Context) -> Iterator[Invocation]:
    """What a command works with, until it ends."""
    path = ctx.command_path.partition(" ")[2]
    run = Invocation(ctx.obj, path or "icefloe")
    try:
        yield run
    finally:
        run.close()


def listener(run: Invocation) -> Listener | None:
    """Who is told how far the work is: by default a bar, where a person looks."""
    return silent if run.options.quiet else None
