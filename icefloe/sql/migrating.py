"""`snapshot` and `migrate`: a table of files in Spark's own catalog becomes one of Iceberg, beside it or in its place.

A migration renames its source first, so that nobody writes to it any more, with a mark that says what is under way. Killed at
any point, the next call goes on from there; where it fails, the source gets its name back.
"""

import uuid

from icefloe.catalog import (
    MIGRATING,
    Identifier,
    Import,
    fill,
    imported_files,
    in_place_of,
    parse_identifier,
    parse_namespace,
    show,
    stage,
)
from icefloe.data import ForeignTable
from icefloe.errors import CommitStateUnknown, InvalidInputError, NoSuchTableError, StateError, ValidationError
from icefloe.sql.calling import (
    Call,
    ForeignCatalog,
    Parameter,
    ParameterType as Type,
    Rows,
    folder_named,
    longs,
    procedure,
)
from icefloe.table import Table, Transaction

_BACKUP = "_BACKUP_"


@procedure(
    longs("imported_files_count"),
    Parameter("source_table", Type.STRING, required=True),
    Parameter("table", Type.STRING, required=True),
    Parameter("location", Type.STRING),
    Parameter("properties", Type.MAP),
    Parameter("parallelism", Type.INTEGER),
    Parameter("ignore_missing_files", Type.BOOLEAN),
    about_table=False,
)
def _snapshot(call: Call) -> Rows:
    name = parse_namespace(call.get("source_table"))
    source = folder_named(name) or call.foreign.find(name)
    _check_source(source, name)
    table = call.catalog.snapshot(
        source,
        call.identifier(),
        call.get("location"),
        call.get("properties"),
        parallelism=call.get("parallelism"),
        ignore_missing_files=bool(call.get("ignore_missing_files")),
    )
    return [(imported_files(table),)]


@procedure(
    longs("migrated_files_count"),
    Parameter("properties", Type.MAP),
    Parameter("drop_backup", Type.BOOLEAN),
    Parameter("backup_table_name", Type.STRING),
    Parameter("parallelism", Type.INTEGER),
    Parameter("ignore_missing_files", Type.BOOLEAN),
)
def _migrate(call: Call) -> Rows:
    return [(_Migration(call).run(),)]


class _Migration:
    """One call: the source under its own name, or under that of the backup if an earlier call got so far."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._foreign: ForeignCatalog = call.foreign
        self._source = self._found(parse_namespace(call.get("table")))
        name = self._source.name if self._source is not None else self._name()
        backup = call.get("backup_table_name") or f"{name[-1]}{_BACKUP}"
        self._name_there, self._backup = name, (*name[:-1], backup)
        self._kept = self._found(self._backup)
        self._is_under_way = self._kept is not None and MIGRATING in self._kept.properties

    def run(self) -> int:
        """Do what is left to do, and count the files."""
        if self._source is None and not self._is_under_way:
            raise NoSuchTableError(f"no table {show(self._name_there)} in Spark's own catalog to migrate")
        if self._source is None and self._call.catalog.table_exists(self._name_there):
            return self._finish(self._call.catalog.load_table(self._name_there))
        return self._finish(self._replace())

    def _replace(self) -> Table:
        """The table of Iceberg in the place of the source."""
        source = self._source or self._kept
        assert source is not None
        _check_migratable(source, self._name_there)
        request = self._request(source)
        transaction = stage(self._call.catalog, request)
        if self._source is not None:
            self._put_aside()
        return self._filled(transaction, request)

    def _request(self, source: ForeignTable) -> Import:
        call = self._call
        asked = Import(
            source,
            self._name_there,
            properties=call.get("properties") or {},
            workers=call.get("parallelism"),
            ignores_missing=bool(call.get("ignore_missing_files")),
        )
        return in_place_of(asked)

    def _put_aside(self) -> None:
        if self._kept is not None:
            raise InvalidInputError(
                f"{show(self._backup)} exists already, so {show(self._name_there)} cannot be kept under that name;"
                " give another backup_table_name"
            )
        self._foreign.set_properties(self._name_there, {MIGRATING: str(uuid.uuid4())})
        self._foreign.rename(self._name_there, self._backup)

    def _filled(self, transaction: Transaction, request: Import) -> Table:
        try:
            return fill(transaction, request)
        except CommitStateUnknown as error:
            error.add_note(f"the source is kept as {show(self._backup)}; call migrate again to go on")
            raise
        except Exception as error:
            self._restore(error)
            raise

    def _restore(self, error: Exception) -> None:
        """The source under its own name again."""
        try:
            self._foreign.rename(self._backup, self._name_there)
            self._foreign.remove_properties(self._name_there, [MIGRATING])
        except Exception as problem:  # noqa: BLE001 - what went wrong first is what is raised
            error.add_note(f"the source is still named {show(self._backup)}: {problem}")

    def _finish(self, table: Table) -> int:
        """After the commit: the backup goes if that is asked for, and is a table like any other if not."""
        if self._call.get("drop_backup"):
            if self._foreign.find(self._backup).is_managed:
                raise StateError(f"{show(self._backup)} is managed by Spark, which would delete the files; it is kept")
            self._foreign.drop(self._backup)
            _check_there(table)
        else:
            self._foreign.remove_properties(self._backup, [MIGRATING])
        return imported_files(table)

    def _found(self, name: Identifier) -> ForeignTable | None:
        try:
            return self._foreign.find(name)
        except NoSuchTableError:
            return None

    def _name(self) -> Identifier:
        parts = parse_identifier(self._call.get("table"))
        return parts[1:] if len(parts) == 3 else parts


def _check_source(source: ForeignTable, name: Identifier) -> None:
    if source.is_bucketed:
        raise InvalidInputError(
            f"{show(name)} is bucketed by Spark, in a way that Iceberg does not have; insert its rows instead"
        )


def _check_migratable(source: ForeignTable, name: Identifier) -> None:
    _check_source(source, name)
    if source.is_managed:
        raise ValidationError(
            f"{show(name)} is managed by Spark: renaming it moves its files, and dropping it deletes them; make it external"
            " first (Hive: ALTER TABLE ... SET TBLPROPERTIES('EXTERNAL'='TRUE')), or use snapshot, or insert its rows"
        )


def _check_there(table: Table) -> None:
    """The files outlived the backup."""
    for task in table.scan().plan_files():
        if not table.storage.exists(task.file.file_path):
            raise StateError(f"{task.file.file_path} went with the backup; restore the files of {show(table.name())}")
        return
