"""The server's own tables: made by steps, once, whoever starts first, and exactly those that the code uses."""

import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from icefloe.catalog import Database
from icefloe.errors import StateError
from icefloe.server.migrations import VERSION_TABLE, is_current, migrate
from icefloe.server.tables import OWN_TABLES
from tests.catalog.databases import PostgresServer


@pytest.fixture(params=["sqlite", "postgres"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/own.db"
    postgres: PostgresServer = request.getfixturevalue("postgres")
    return postgres.new_database()


def test_the_steps_make_what_the_code_uses(uri: str) -> None:
    database = Database("server", uri)
    assert not is_current(database)
    migrate(database)
    migrate(database)
    assert is_current(database)

    def differences(connection: sa.Connection) -> list[object]:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "version_table": VERSION_TABLE})
        return list(compare_metadata(context, OWN_TABLES))

    assert database.write(differences) == []
    database.close()


def test_several_servers_start_at_once(uri: str) -> None:
    databases = [Database("server", uri) for _ in range(4)]
    problems: list[BaseException] = []

    def start(database: Database) -> None:
        try:
            migrate(database)
        except BaseException as error:  # noqa: BLE001 - shown below
            problems.append(error)

    threads = [threading.Thread(target=start, args=(database,)) for database in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert problems == []
    assert is_current(databases[0])
    for database in databases:
        database.close()


def test_a_database_of_a_newer_version(uri: str) -> None:
    database = Database("server", uri)
    migrate(database)
    database.write(lambda connection: connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")))
    with pytest.raises(StateError, match="only a newer version"):
        migrate(database)
    # One that runs already goes on.
    assert is_current(database)
    database.close()
