"""`icefloe undrop`: a dropped table comes back from a server that keeps such; other catalogs say what would be right."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe.errors import NoSuchTableError, TableAlreadyExistsError, UnsupportedOperationError
from icefloe.server.settings import ServerSettings
from tests.cli.conftest import Run
from tests.server.running import serving


@pytest.fixture
def uri(tmp_path: Path) -> Iterator[str]:
    """A server that holds dropped tables for a day."""
    house = str(tmp_path / "house")
    with icefloe.load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=house) as catalog:
        catalog.create_namespace("ns")
        with serving({"lake": catalog}, ServerSettings(undrop_hold=timedelta(days=1))) as client:
            yield client.url


def test_a_dropped_table_comes_back(uri: str, run: Run) -> None:
    line = ("--uri", uri, "-p", "type=rest")
    with icefloe.load_catalog("lake", type="rest", uri=uri) as lake:
        for rows in (2, 3):
            lake.create_table("ns.t", "id long").append(pa.table({"id": list(range(rows))}))
            lake.purge_table("ns.t")
        newest, oldest = lake.dropped_tables()
        assert newest.identifier == oldest.identifier == ("ns", "t")
        assert newest.until - newest.dropped_at == timedelta(days=1)
        listed = run(*line, "undrop", "-o", "json").result()
        assert [each["id"] for each in listed] == [newest.id, oldest.id]
        assert run(*line, "undrop", "ns.t").out == "Undropped table: ns.t\n"
        assert lake.load_table("ns.t").scan().count() == 3
        with pytest.raises(TableAlreadyExistsError):
            lake.undrop_table(oldest)
        run(*line, "undrop", "ns.t", code=4)
        assert run(*line, "undrop", "--id", oldest.id, "--as", "ns.old", "-o", "json").result()["table"] == "ns.old"
        assert lake.load_table("ns.old").scan().count() == 2
        with pytest.raises(NoSuchTableError, match="has no dropped table"):
            lake.undrop_table("ns.t")
        assert "no dropped table ns.t to restore" in run(*line, "undrop", "ns.t", code=3).err


def test_other_catalogs_say_what_would_be_right(lake: Path, run: Run) -> None:
    assert "comes back by `register_table`" in run("undrop", code=2).err
    with icefloe.load_catalog("icefloe") as catalog, pytest.raises(UnsupportedOperationError):
        catalog.undrop_table("shop.orders")
