"""Changes of random histories as Spark streams: applied in random micro-batches to no rows, they give the table's rows."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from icefloe.catalog import load_catalog
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.streaming.test_change_histories import GONE, Row, Rows, applied_by_id, change, rows_at, rows_by_id

Change: TypeAlias = dict[str, Any]
SAMPLE, MANY = 1, 12
"""Histories of each version."""
RUNS, COMMITS = 2, 4
"""Runs of the query, and commits before each of them."""


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("histories")
    catalog = load_catalog("past", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=f"{folder}/files")
    catalog.create_namespace("db")
    yield connect(catalog, spark=spark.newSession())
    catalog.close()


def some_rows(rng: random.Random) -> list[Row]:
    return [(rng.randint(0, 7), rng.randint(0, 2)) for _ in range(rng.randint(1, 4))]


def operation(rng: random.Random) -> tuple[Any, ...]:
    """One of all the operations; most of them change rows."""
    match rng.randint(0, 9):
        case 0 | 1 | 2:
            return "append", some_rows(rng)
        case 3:
            return "delete", rng.randint(0, 7)
        case 4:
            return "delete part", rng.randint(0, 2)
        case 5:
            return "overwrite", some_rows(rng), rng.randint(0, 7)
        case 6:
            return "overwrite partitions", some_rows(rng)
        case 7 | 8:
            return "upsert", some_rows(rng)
        case _:
            return (rng.choice(("compact", "rewrite manifests")),)


def applied(before: Rows, changes: Iterable[Change]) -> Rows:
    """The rows after the changes of a micro-batch, commit by commit; a row that is deleted must be there."""
    after = Counter(before)
    for each in sorted(changes, key=lambda each: (each["_change_ordinal"], each["_change_type"] not in GONE)):
        row = (each["id"], each["part"])
        if each["_change_type"] in GONE:
            assert after[row] > 0, f"{row} is deleted and was not there"
        after[row] += -1 if each["_change_type"] in GONE else 1
    return +after


def batches(ice: Session, name: str, options: dict[str, Any], checkpoint: Path) -> list[list[Change]]:
    """The changes since the last run, by micro-batches."""
    seen: list[list[Change]] = []
    write = ice.read_stream(name, options, changes=True).writeStream.trigger(availableNow=True)
    write = write.option("checkpointLocation", str(checkpoint))
    write = write.foreachBatch(lambda batch, _: seen.append([row.asDict() for row in batch.collect()]))
    write.start().awaitTermination()
    return seen


def check_history(ice: Session, version: int, seed: int, folder: Path) -> None:
    rng = random.Random(seed)
    modes = ["copy-on-write", "merge-on-read"] if allows(version, Feature.DELETE_FILES) else ["copy-on-write"]
    properties = {"format-version": str(version)}
    properties |= {f"write.{verb}.mode": rng.choice(modes) for verb in ("delete", "update", "merge")}
    name, has_ids = f"db.v{version}_{seed}", allows(version, Feature.ROW_LINEAGE)
    table: Table = ice.catalog.create_table(
        name, "id bigint, part bigint", partition_spec=["part"], properties=properties
    )
    options = {"streaming-updates": rng.choice((True, False)), "streaming-net-changes": rng.choice((True, False))}
    options["streaming-row-ids"] = has_ids
    rows: Rows = Counter()
    rows_with_ids: dict[int, Row] = {}
    for _ in range(RUNS):
        for _ in range(COMMITS):
            change(table, *operation(rng))
            table.refresh()
        limit = {"streaming-max-snapshots-per-micro-batch": rng.randint(1, 3)}
        for batch in batches(ice, name, options | limit, folder / name):
            rows = applied(rows, batch)
            rows_with_ids = applied_by_id(rows_with_ids, batch) if has_ids else {}
        head = table.current_snapshot()
        assert rows == rows_at(table, None if head is None else head.snapshot_id), (version, seed)
        if has_ids:
            assert rows_with_ids == rows_by_id(table, None if head is None else head.snapshot_id), (version, seed)
    if has_ids:
        as_batch = [row.asDict() for row in ice.changes(name, updates=True, row_ids=True).collect()]
        assert applied_by_id({}, as_batch) == rows_with_ids


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_changes_as_a_stream_lead_to_the_rows(ice: Session, tmp_path: Path, version: int) -> None:
    for seed in range(SAMPLE):
        check_history(ice, version, seed, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_many_changes_as_a_stream_lead_to_the_rows(ice: Session, tmp_path: Path, version: int) -> None:
    for seed in range(SAMPLE, SAMPLE + MANY):
        check_history(ice, version, seed, tmp_path)
