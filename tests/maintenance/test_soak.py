"""Writers, maintenance, expiry and readers in processes of their own, all at once: no row is lost or revived."""

import multiprocessing
import random
import time
from collections.abc import Iterator
from multiprocessing.queues import Queue
from pathlib import Path

import pytest

from icefloe import Table, load_catalog
from icefloe.catalog import Catalog
from icefloe.errors import CommitFailed, LocationNotFoundError, ValidationError
from icefloe.verification import silent
from tests.maintenance.worn import FUTURE, new_rows
from tests.shared_rows import row_modes

SECONDS = 60
KEYS = 1000
"""How many keys each writer has for itself."""
NAME = "shop.orders"
PROPERTIES = {
    "commit.retry.num-retries": "1000",
    "commit.retry.min-wait-ms": "5",
    "commit.retry.max-wait-ms": "200",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "maintenance.rewrite.quiet-ms": "0",
    "maintenance.rewrite.cooldown-ms": "0",
    "maintenance.expire.enabled": "false",
} | row_modes("merge-on-read")
Expected = dict[int, str]


def catalog_in(folder: Path) -> Catalog:
    return load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "files"))


def write(folder: Path, number: int, end: float, answers: "Queue[Expected]") -> None:
    """Append, delete and upsert rows of keys that no other writer has; then say what must be there."""
    rng = random.Random(number)
    mine: Expected = {}
    table = catalog_in(folder).load_table(NAME)
    fresh = iter(range(number * KEYS, (number + 1) * KEYS))
    while time.time() < end:
        try:
            _change(table.refresh(), rng, fresh, mine)
        except (CommitFailed, ValidationError, LocationNotFoundError):
            # Somebody was faster, or the files were compacted and expired; nothing was changed.
            continue
    answers.put(mine)


def _change(table: Table, rng: random.Random, fresh: Iterator[int], mine: Expected) -> None:
    choice = rng.choice(("append", "delete", "upsert")) if mine else "append"
    match choice:
        case "append":
            keys = [next(fresh) for _ in range(3)]
            table.append(new_rows(*keys))
            mine.update(dict.fromkeys(keys, "new"))
        case "delete":
            key = rng.choice(sorted(mine))
            table.delete(f"k = {key}")
            del mine[key]
        case _:
            key = rng.choice(sorted(mine))
            name = f"upserted {rng.randrange(100)}"
            table.upsert(new_rows(key, name=name), ["k"])
            mine[key] = name


def maintain(folder: Path, end: float) -> None:
    """Compact all files, and rewrite manifests, over and over."""
    table = catalog_in(folder).load_table(NAME)
    while time.time() < end:
        try:
            table.refresh().maintenance.rewrite_data_files(
                options={"min-input-files": "3", "delete-file-threshold": "1", "partial-progress.enabled": "true"}
            )
            table.maintenance.remove_dangling_deletes()
            table.maintenance.rewrite_manifests()
        except (CommitFailed, ValidationError, LocationNotFoundError):
            continue


def expire(folder: Path, end: float) -> None:
    """Keep nothing but the newest snapshots."""
    table = catalog_in(folder).load_table(NAME)
    while time.time() < end:
        table.refresh().maintenance.expire_snapshots(older_than=FUTURE, retain_last=3)


def read(folder: Path, end: float, problems: "Queue[str]") -> None:
    """Every snapshot has each key at most once."""
    table = catalog_in(folder).load_table(NAME)
    while time.time() < end:
        try:
            keys = table.refresh().scan(selected_fields=("k",)).to_arrow()["k"].to_pylist()
        except LocationNotFoundError:
            # The snapshot expired while it was read.
            continue
        if len(keys) != len(set(keys)):
            problems.put(f"snapshot {table.metadata.current_snapshot_id} has keys twice")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("version", [2, 3])
def test_nothing_is_lost_among_eight_processes(version: int, tmp_path: Path) -> None:
    catalog = catalog_in(tmp_path)
    catalog.create_namespace("shop")
    properties = {"format-version": str(version)} | PROPERTIES
    table = catalog.create_table(NAME, "k BIGINT, name STRING", properties=properties)
    context = multiprocessing.get_context("fork")
    answers: Queue[Expected] = context.Queue()
    problems: Queue[str] = context.Queue()
    end = time.time() + SECONDS
    processes = [context.Process(target=write, args=(tmp_path, number, end, answers)) for number in range(4)]
    processes += [context.Process(target=maintain, args=(tmp_path, end)) for _ in range(2)]
    processes += [context.Process(target=expire, args=(tmp_path, end))]
    processes += [context.Process(target=read, args=(tmp_path, end, problems))]
    for process in processes:
        process.start()
    expected: Expected = {}
    for _ in range(4):
        expected |= answers.get(timeout=SECONDS + 200)
    for process in processes:
        process.join(200)
        assert process.exitcode == 0, process
    rows = table.refresh().scan().to_arrow().to_pylist()
    assert problems.empty(), problems.get()
    assert len(rows) == len(expected) > 0
    assert {row["k"]: row["name"] for row in rows} == expected
    report = table.verify(level="data", progress=silent)
    assert report.ok, report
