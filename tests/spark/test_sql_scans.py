"""Which tables a statement scans, and as of when: targets, temporary views and cached rows."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from icefloe import load_catalog
from icefloe.spark.session import Session
from icefloe.spark.sql_names import Source


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("scans")
    catalog = load_catalog("scanned", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    yield Session(spark, {"scanned": catalog})
    spark.sql("USE spark_catalog.default")


def rows(session: Any, text: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, session.sql(text).collect()))


def test_the_target_of_a_change_is_not_scanned_as_a_query_would(ice: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    ice.sql("CREATE TABLE db.target AS SELECT id, id AS v FROM range(4)").collect()
    ice.sql("CREATE TABLE db.other AS SELECT id FROM range(2)").collect()
    read: list[str] = []

    def frame(source: Source, metadata_columns: Sequence[str] = ()) -> Any:
        read.append(source.identifier[-1])
        return ice._source_frame(source, metadata_columns)

    monkeypatch.setattr(ice._door, "_read", frame)
    ice.sql("UPDATE db.target SET v = 10 WHERE id IN (SELECT id FROM db.other)").collect()
    ice.sql("DELETE FROM db.target t WHERE t.id = (SELECT max(id) FROM db.target)").collect()
    assert read == ["other", "target"]
    ice.sql(
        "MERGE INTO db.target t USING db.other s ON t.id = s.id + 1 WHEN MATCHED THEN UPDATE SET v = t.v + 1"
    ).collect()
    assert read == ["other", "target", "other"]
    assert rows(ice, "SELECT * FROM db.target") == [(0, 10), (1, 11), (2, 3)]
