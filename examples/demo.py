"""The main job on the embedded default: a few million events on Spark, in a SQLite catalog under ./icefloe-warehouse.

It makes v3 tables with hidden partitioning, appends, upserts, deletes, evolves schema and partitioning, looks back in time,
branches, and prints what happened, with timings and how many files each query could leave out.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import icefloe

STEPS = 10
DAY = "timestamp'2026-01-01 00:00:00' + make_interval(0, 0, 0, CAST(id % 30 AS INT), 0, 0, CAST(id % 86400 AS INT))"


class Progress:
    """One line for each step: a bar, what is being done, and then what it gave."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.done = 0

    def step(self, title: str, work: Callable[[], str]) -> None:
        """Run one step."""
        bar = "#" * self.done + "." * (self.steps - self.done)
        if sys.stdout.isatty():
            print(f"\r[{bar}] {title} ...", end="", flush=True)
        start = time.perf_counter()
        told = work()
        self.done += 1
        took = f"{time.perf_counter() - start:5.1f} s"
        clear = "\r\033[K" if sys.stdout.isatty() else ""
        print(f"{clear}{took}  {title:<42} {told}", flush=True)


class Demo:
    """The job, step by step."""

    def __init__(self, ice: Any, rows: int) -> None:
        self.ice = ice
        self.rows = rows

    def count(self, text: str) -> int:
        """The one number that a query gives."""
        found = self.ice.sql(text).collect()[0][0]
        return int(found or 0)

    def files(self) -> str:
        """What the newest plan read and left out."""
        counts = self.ice.reports[-1].counts
        return f"{counts.result_data_files} of {counts.data_files} files read"

    def create(self) -> str:
        """A v3 table, partitioned by day."""
        self.ice.catalog.create_namespace_if_not_exists("shop")
        self.ice.sql("DROP TABLE IF EXISTS shop.events PURGE")
        self.ice.sql(
            """CREATE TABLE shop.events (id BIGINT NOT NULL, kind STRING, amount DOUBLE, ts TIMESTAMP) PARTITIONED BY (days(ts))
               TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read',
               'write.merge.mode' = 'merge-on-read', 'write.distribution-mode' = 'hash')"""
        )
        return str(self.ice.load_table("shop.events").location())

    def append(self) -> str:
        """Events of a month."""
        frame = self.ice.spark.range(self.rows).selectExpr(
            "id",
            "element_at(array('view', 'cart', 'buy', 'return'), pmod(hash(id), 4) + 1) AS kind",
            "round(rand(7) * 100, 2) AS amount",
            f"{DAY} AS ts",
        )
        made = self.ice.write(frame).to("shop.events").append()
        return f"{int(made.summary['added-records']):,} rows in {made.summary['added-data-files']} files"

    def query(self) -> str:
        """Two days, one kind: the filter chooses the files."""
        found = self.count(
            """SELECT count(*) FROM shop.events WHERE ts >= '2026-01-10' AND ts < '2026-01-12' AND kind = 'buy'"""
        )
        return f"{found:,} rows, {self.files()}"

    def delete(self) -> str:
        """Returns of one day go, as deletion vectors."""
        made = self.ice.delete("shop.events", "kind = 'return' AND ts >= '2026-01-10' AND ts < '2026-01-11'")
        return (
            f"{int(made.summary.get('added-position-deletes', 0)):,} rows by {made.summary.get('added-dvs', 0)} vectors"
        )

    def merge(self) -> str:
        """Corrections and late events, half and half."""
        changes = self.ice.spark.range(self.rows - 20_000, self.rows + 20_000).selectExpr(
            "id", "'late' AS kind", "1.0D AS amount", f"{DAY} AS ts"
        )
        changes.createOrReplaceTempView("changes")
        self.ice.sql(
            """MERGE INTO shop.events t USING changes s ON t.id = s.id
               WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
        )
        return (
            f"{self.count('SELECT count(*) FROM shop.events WHERE kind = ' + chr(39) + 'late' + chr(39)):,} late events"
        )

    def evolve(self) -> str:
        """A column with a default, a rename, and another partitioning, without a rewrite."""
        self.ice.sql("ALTER TABLE shop.events ADD COLUMN country STRING DEFAULT 'unknown' AFTER kind")
        self.ice.sql("ALTER TABLE shop.events RENAME COLUMN amount TO total")
        self.ice.sql("ALTER TABLE shop.events ADD PARTITION FIELD bucket(4, id) AS shard")
        self.ice.sql(
            "INSERT INTO shop.events (id, kind, country, total, ts)"
            f" SELECT id + {2 * self.rows}, 'view', 'ch', 1.0D, {DAY} FROM range(1000)"
        )
        found = self.ice.sql(
            "SELECT country, count(*) AS n FROM shop.events GROUP BY country ORDER BY n DESC"
        ).collect()
        return ", ".join(f"{row['country']}: {row['n']:,}" for row in found)

    def travel(self) -> str:
        """The table as it was after the first append."""
        first = self.ice.load_table("shop.events").snapshots()[0]
        rows = self.count(f"SELECT count(*) FROM shop.events VERSION AS OF {first.snapshot_id}")
        return f"{rows:,} rows then, {self.count('SELECT count(*) FROM shop.events'):,} now"

    def branch(self) -> str:
        """A change that is looked at on a branch before it counts."""
        self.ice.sql("ALTER TABLE shop.events CREATE BRANCH audit")
        self.ice.sql("UPDATE shop.events.branch_audit SET total = 0 WHERE kind = 'late'")
        side = self.count("SELECT count(*) FROM shop.events VERSION AS OF 'audit' WHERE kind = 'late' AND total = 0")
        main = self.count("SELECT count(*) FROM shop.events WHERE kind = 'late' AND total = 0")
        self.ice.sql("CALL system.fast_forward('shop.events', 'main', 'audit')")
        return f"{side:,} rows differ on the branch, {main:,} on main; then published"

    def inspect(self) -> str:
        """What the table is made of, from its metadata."""
        rows = self.ice.sql("SELECT operation, count(*) AS n FROM shop.events.snapshots GROUP BY operation").collect()
        files = self.count("SELECT count(*) FROM shop.events.files")
        return f"{files} files; " + ", ".join(f"{row['n']} x {row['operation']}" for row in rows)

    def verify(self) -> str:
        """The check of the whole table."""
        report = self.ice.load_table("shop.events").verify()
        report.raise_if_broken()
        return "clean"


def main() -> None:
    """Run all steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000, help="how many events to begin with")
    parser.add_argument("--warehouse", default=None, help="where the catalog and the tables go")
    arguments = parser.parse_args()
    start = time.perf_counter()
    with icefloe.connect(warehouse=arguments.warehouse) as ice:
        print(f"{time.perf_counter() - start:5.1f} s  Spark {ice.spark.version} is up")
        demo = Demo(ice, arguments.rows)
        progress = Progress(STEPS)
        progress.step("a v3 table, partitioned by day", demo.create)
        progress.step("append", demo.append)
        progress.step("a query of two days", demo.query)
        progress.step("delete (merge-on-read)", demo.delete)
        progress.step("MERGE, half updates, half inserts", demo.merge)
        progress.step("schema and partition evolution", demo.evolve)
        progress.step("time travel", demo.travel)
        progress.step("a branch, audited and published", demo.branch)
        progress.step("metadata tables", demo.inspect)
        progress.step("verify", demo.verify)
    print(f"{time.perf_counter() - start:5.1f} s  in all")


if __name__ == "__main__":
    main()
