"""Merges at the same time: into different partitions all of them succeed, into the same rows it is as if one came after another."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe import load_catalog
from icefloe.catalog import Catalog
from icefloe.errors import ValidationError
from icefloe.manifests import DataFile
from icefloe.spark.row_level import FrameChange
from icefloe.spark.session import Session
from tests.spark.processes import bare_environment
from tests.spark.use_merges import ROWS, disjoint, overlapping, run_merges

PROGRAM = Path(__file__).parent / "use_merges.py"
MODES = ("copy-on-write", "merge-on-read")


def lake(folder: Path, mode: str, partitions: int) -> Catalog:
    """A catalog with a table of a few rows in each partition."""
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/warehouse")
    catalog.create_namespace("db")
    properties = {"format-version": "3", "write.merge.mode": mode}
    table = catalog.create_table("db.t", "id bigint, p int, n bigint", partition_spec=["p"], properties=properties)
    ids = [each for _ in range(partitions) for each in range(ROWS)]
    parts = pa.array([part for part in range(partitions) for _ in range(ROWS)], pa.int32())
    table.append(pa.table({"id": ids, "p": parts, "n": [0] * len(ids)}))
    return catalog


def rows_of(catalog: Catalog) -> dict[tuple[int, int], int]:
    found = catalog.load_table("db.t").scan(None, ("id", "p", "n", "_row_id")).to_arrow().to_pylist()
    assert len({row["_row_id"] for row in found}) == len({(row["p"], row["id"]) for row in found}) == len(found)
    return {(row["p"], row["id"]): row["n"] for row in found}


def after_disjoint(partitions: int, turns: int) -> dict[tuple[int, int], int]:
    """What merges into a partition each leave, in whatever order."""
    rows = {(part, each): 0 for part in range(partitions) for each in range(ROWS)}
    for part in range(partitions):
        for turn in range(turns):
            start = turn * ROWS // 2
            for each in range(start, start + ROWS):
                rows[part, each] = rows[part, each] + 1 if (part, each) in rows else 0
    return rows


def check_overlapping(before: dict[tuple[int, int], int], after: dict[tuple[int, int], int], done: int) -> None:
    """Each merge that was committed counts once, and none that was refused."""
    grown = {key: after[key] - count for key, count in before.items()}
    assert all(count == (done if key[1] < 5 else 0) for key, count in grown.items()), (done, grown)
    assert len(after) == len(before) + done


@pytest.mark.parametrize("mode", [pytest.param("copy-on-write", marks=pytest.mark.slow), "merge-on-read"])
def test_threads_that_merge(spark: Any, tmp_path: Path, mode: str) -> None:
    catalog = lake(tmp_path, mode, 2)
    ice = Session(spark, {"lake": catalog})
    for kind in (disjoint, overlapping):
        before = rows_of(catalog)
        with ThreadPoolExecutor(2) as pool:
            told = list(pool.map(partial(run_merges, ice, kind), range(2), (1, 1)))
        if kind is disjoint:
            assert told == [{"done": 1, "refused": 0}] * 2
            assert rows_of(catalog) == after_disjoint(2, 1)
        else:
            check_overlapping(before, rows_of(catalog), sum(each["done"] for each in told))
    assert catalog.load_table("db.t").verify().ok


@pytest.mark.parametrize("mode", MODES)
def test_a_row_that_a_merge_leaves_alone_must_not_go(
    spark: Any, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source row is not inserted if its match is there, so the match must be there when the rest is committed."""
    catalog = lake(tmp_path, mode, 1)
    write = FrameChange.write

    def write_and_lose_a_row(change: FrameChange, frame: Any) -> list[DataFile]:
        found = write(change, frame)
        catalog.load_table("db.t").delete("id = 1")
        return found

    monkeypatch.setattr(FrameChange, "write", write_and_lose_a_row)
    with pytest.raises(ValidationError):
        Session(spark, {"lake": catalog}).sql(
            "MERGE INTO db.t t USING (SELECT 1L id, 0 p, 5L n UNION ALL SELECT 999L, 0, 5L) s ON t.id = s.id AND t.p = s.p"
            " WHEN NOT MATCHED THEN INSERT *"
        )
    assert set(rows_of(catalog)) == {(0, each) for each in range(ROWS) if each != 1}


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("mode", MODES)
def test_applications_that_merge(tmp_path: Path, mode: str) -> None:
    applications, turns = 4, 3
    catalog = lake(tmp_path, mode, applications)
    started = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(tmp_path), str(number), str(applications), str(turns)],
            env=bare_environment(PYSPARK_PYTHON=sys.executable),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(applications)
    ]
    try:
        outputs = [each.communicate(timeout=1100) for each in started]
    finally:
        for each in started:
            each.kill()
    assert [each.returncode for each in started] == [0] * applications, [error[-3000:] for _, error in outputs]
    told = [json.loads(output.splitlines()[-1]) for output, _ in outputs]
    assert [each[0] for each in told] == [{"done": turns, "refused": 0}] * applications
    done = sum(each[1]["done"] for each in told)
    assert done >= turns, told
    check_overlapping(after_disjoint(applications, turns), rows_of(catalog), done)
    assert catalog.load_table("db.t").verify().ok
