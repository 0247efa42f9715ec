"""Small tables for rewrites of data files, and what must hold of them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from icefloe import Table, load_catalog
from icefloe.maintenance import GroupRewrite, RewrittenGroup, Threads
from icefloe.verification import silent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.shared_rows import row_modes

V3_ON = [version for version in ALL_VERSIONS if allows(version, Feature.ROW_LINEAGE)]
ALL = {"rewrite-all": "true"}


def rows(*keys: int, part: str = "a") -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64()), "part": pa.array([part] * len(keys))})


def new_table(folder: Path, version: int = 3, partition: str | None = "part") -> Table:
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "files"))
    catalog.create_namespace_if_not_exists("db")
    properties = {"format-version": str(version), "commit.retry.num-retries": "2"} | row_modes("merge-on-read")
    table = catalog.create_table("db.t", "k BIGINT, part STRING", properties=properties)
    if partition is not None:
        with table.update_spec() as spec:
            spec.add_field(partition, "identity")
    return table


def filled(folder: Path, version: int = 3, files: int = 3, partition: str | None = "part") -> Table:
    """Some small files in each of two partitions."""
    table = new_table(folder, version, partition)
    for number in range(files):
        table.append(pa.concat_tables([rows(number, part="a"), rows(10 + number, 20 + number, part="b")]))
    return table


def keys(table: Table, ref: str | None = None) -> list[int]:
    return sorted(table.scan(selected_fields=("k",), ref=ref).to_arrow()["k"].to_pylist())


def lineage(table: Table) -> dict[int, tuple[int, int]]:
    columns = ("k", "_row_id", "_last_updated_sequence_number")
    read = table.scan(selected_fields=columns).to_arrow().to_pylist()
    return {row["k"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in read}


def check(table: Table) -> None:
    report = table.refresh().verify(level="data", progress=silent)
    assert report.ok, report


def live_files(table: Table) -> int:
    return sum(1 for _ in table.scan().plan_files())


def stored_data(table: Table) -> set[str]:
    return {info.location for info in table.storage.list_prefix(f"{table.location()}/data")}


@dataclass(frozen=True)
class Between(Threads):
    """Rewrites as threads do, and lets something happen after each group is written."""

    happen: Callable[[GroupRewrite], object] = lambda _: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def rewrite(self, work: GroupRewrite) -> RewrittenGroup:
        new = Threads.rewrite(self, work)
        with self.lock:
            self.happen(work)
        return new
