"""Decides how the server's own tables come to be and change: one step after another, under a lock, each once."""

from pathlib import Path

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection

from icefloe.catalog import Database
from icefloe.errors import StateError

VERSION_TABLE = "icefloe_version"
"""Where a database says which step it is at."""
_LOCK = 0x1CEF10F


def _script() -> ScriptDirectory:
    return ScriptDirectory(str(Path(__file__).parent))


def is_current(database: Database) -> bool:
    """Whether a database has all steps that this version knows; one of a newer version has more."""
    script = _script()
    at = database.write(lambda connection: _context(connection).get_current_revision())
    older = {step.revision for step in script.walk_revisions()} - {script.get_current_head()}
    return at is not None and at not in older


def migrate(database: Database) -> None:
    """Bring the server's tables in a database up to date; others may do the same at the same time."""

    def upgrade(connection: Connection) -> None:
        if not database.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        context, script = _context(connection), _script()
        at = context.get_current_revision()
        if at is not None and at not in {step.revision for step in script.walk_revisions()}:
            raise StateError(
                f"{database} is at step {at}, which only a newer version of icefloe knows; upgrade this one"
            )
        context._ensure_version_table()
        for step in reversed(list(script.iterate_revisions("head", at or "base"))):
            with Operations.context(context):
                step.module.upgrade()
            connection.execute(sa.delete(_VERSION))
            connection.execute(sa.insert(_VERSION).values(version_num=step.revision))

    database.transaction(upgrade)


_VERSION = sa.Table(VERSION_TABLE, sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True))


def _context(connection: Connection) -> MigrationContext:
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
