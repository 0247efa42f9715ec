"""`migrate`: stopped at any point it can be called again, and where it fails the source has its name back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe import load_catalog
from icefloe.catalog import Catalog, Identifier
from icefloe.data import ForeignTable
from icefloe.errors import InvalidInputError, NoSuchTableError, TableAlreadyExistsError, ValidationError
from icefloe.schema import parse_ddl
from icefloe.sql.procedures import call
from icefloe.verification import silent

SOURCE, BACKUP = ("db", "t"), ("db", "t_BACKUP_")


class Killed(BaseException):
    """The process is gone."""


@dataclass
class OtherCatalog:
    """A catalog of others that can fail before or after each of its changes."""

    tables: dict[Identifier, ForeignTable]
    fails_at: int = -1
    error: type[BaseException] = Killed
    changes: list[str] = field(default_factory=list)

    def find(self, name: Identifier) -> ForeignTable:
        if name[-2:] not in self.tables:
            raise NoSuchTableError(f"no table {name}")
        return self.tables[name[-2:]]

    def rename(self, name: Identifier, new: Identifier) -> None:
        self._step("rename")
        self.tables[new] = replace(self.tables.pop(name), name=new)

    def drop(self, name: Identifier) -> None:
        self._step("drop")
        del self.tables[name]

    def set_properties(self, name: Identifier, properties: Mapping[str, str]) -> None:
        self._step("set")
        found = self.tables[name]
        self.tables[name] = replace(found, properties={**found.properties, **properties})

    def remove_properties(self, name: Identifier, keys: Sequence[str]) -> None:
        self._step("remove")
        found = self.tables[name]
        left = {key: text for key, text in found.properties.items() if key not in keys}
        self.tables[name] = replace(found, properties=left)

    def _step(self, name: str) -> None:
        self.changes.append(name)
        if len(self.changes) - 1 == self.fails_at:
            raise self.error(name)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "files"))
    made.create_namespace("db")
    return made


@pytest.fixture
def source(tmp_path: Path) -> ForeignTable:
    folder = tmp_path / "source"
    folder.mkdir()
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), folder / "f.parquet")
    return ForeignTable(str(folder), "parquet", schema=parse_ddl("id bigint"), name=SOURCE, properties={"owner": "me"})


def migrate(catalog: Catalog, others: OtherCatalog, **more: object) -> int:
    (row,) = call(catalog, "migrate", (), {"table": "spark_catalog.db.t", **more}, foreign=others).to_pylist()
    return int(row["migrated_files_count"])


def check_migrated(catalog: Catalog) -> None:
    table = catalog.load_table("db.t")
    assert table.scan().to_arrow()["id"].to_pylist() == [1, 2]
    assert table.properties["migrated"] == "true"
    assert table.properties["owner"] == "me"
    assert "icefloe.migrating" not in table.properties
    assert table.verify(level="data", progress=silent).ok


@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("fails_at", [0, 1, 2])
def test_killed_at_any_step(catalog: Catalog, source: ForeignTable, fails_at: int, drops: bool) -> None:
    """Before the mark, before the new name, and after the commit."""
    others = OtherCatalog({SOURCE: source}, fails_at)
    with pytest.raises(Killed):
        migrate(catalog, others, drop_backup=drops)
    assert migrate(catalog, others, drop_backup=drops) == 1
    check_migrated(catalog)
    assert list(others.tables) == ([] if drops else [BACKUP])
    assert not drops or not others.tables
    assert all(not table.properties.get("icefloe.migrating") for table in others.tables.values())


def test_killed_while_files_are_looked_at(
    catalog: Catalog, source: ForeignTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = OtherCatalog({SOURCE: source})

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(ForeignTable, "check_folders", killed)
        with pytest.raises(Killed):
            migrate(catalog, others)
    assert list(others.tables) == [BACKUP]
    assert not catalog.table_exists("db.t")
    assert migrate(catalog, others, drop_backup=True) == 1
    check_migrated(catalog)


def test_what_fails_gives_the_name_back(catalog: Catalog, source: ForeignTable, tmp_path: Path) -> None:
    (tmp_path / "source" / "g.parquet").write_bytes(b"no Parquet")
    others = OtherCatalog({SOURCE: source})
    with pytest.raises(Exception, match=r"g\.parquet"):
        migrate(catalog, others)
    assert others.tables == {SOURCE: source}
    assert not catalog.table_exists("db.t")
    assert {path.name for path in (tmp_path / "source").rglob("*")} == {"f.parquet", "g.parquet"}


def test_what_is_refused(catalog: Catalog, source: ForeignTable) -> None:
    with pytest.raises(ValidationError, match="managed by Spark"):
        migrate(catalog, OtherCatalog({SOURCE: replace(source, is_managed=True)}))
    with pytest.raises(InvalidInputError, match="bucketed"):
        migrate(catalog, OtherCatalog({SOURCE: replace(source, is_bucketed=True)}))
    with pytest.raises(InvalidInputError, match="another backup_table_name"):
        migrate(catalog, OtherCatalog({SOURCE: source, BACKUP: source}))
    with pytest.raises(NoSuchTableError, match="to migrate"):
        migrate(catalog, OtherCatalog({BACKUP: source}))
    catalog.create_table("db.t", "id bigint")
    others = OtherCatalog({SOURCE: source})
    with pytest.raises(TableAlreadyExistsError):
        migrate(catalog, others)
    assert not others.changes
    with pytest.raises(NoSuchTableError, match="needs Spark"):
        call(catalog, "snapshot", ("db.x", "db.y"))
