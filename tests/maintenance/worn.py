"""A small table that needs maintenance of every kind, the procedures that keep it, and others who change it meanwhile."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from icefloe import Table
from icefloe.catalog import Catalog
from icefloe.data import WriteRequest, write_data_files
from icefloe.maintenance import reachable_files
from icefloe.maintenance.care.lease import NAME as LEASE
from icefloe.schema import types
from icefloe.verification import silent
from icefloe.versions import Feature, allows
from tests.shared_rows import row_modes
from tests.spark.reading import delete_equal

NAME = "shop.orders"
FUTURE = 32_503_680_000_000
PROPERTIES = {
    "commit.retry.num-retries": "10",
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "1",
    "commit.status-check.num-retries": "1",
    "commit.status-check.min-wait-ms": "1",
    "write.metadata.previous-versions-max": "2",
    "write.metadata.delete-after-commit.enabled": "true",
} | row_modes("merge-on-read")
SETTLED = {
    "maintenance.rewrite.quiet-ms": 0,
    "maintenance.rewrite.cooldown-ms": 0,
    "maintenance.manifests.min-count": 1,
}
"""A policy by which a table that was just written to is maintained at once."""
Rows = dict[int, tuple[str | None, int | None]]
"""The names and the row ids of rows by their keys."""


def new_rows(*keys: int, name: str = "new") -> pa.Table:
    """Rows with these keys."""
    return pa.table({"k": pa.array(keys, pa.int64()), "name": pa.array([name] * len(keys), pa.string())})


def worn_table(catalog: Catalog, version: int) -> Table:
    """Small files in two specs, deletes of all kinds that the version has, a branch, a tag, and a staged snapshot."""
    catalog.create_namespace_if_not_exists("shop")
    properties = {"format-version": str(version)} | PROPERTIES
    table = catalog.create_table(NAME, "k BIGINT, name STRING", properties=properties)
    for first in (0, 10, 20):
        table.append(new_rows(*range(first, first + 5), name="old"))
    table.manage_snapshots().create_branch("dev").create_tag("begin", table.snapshots()[0].snapshot_id).commit()
    if allows(version, Feature.DELETE_FILES):
        delete_equal(table, {"k": [11, 24]})
    table.delete("k = 1 or k = 21")
    with table.update_spec() as spec:
        spec.add_field("k", "truncate[20]")
    for first in (30, 40, 50):
        table.append(new_rows(*range(first, first + 5), name="old"))
    table.delete("k = 31 or k = 51")
    table.append(new_rows(99), branch="dev")
    files = write_data_files(new_rows(98), WriteRequest(table.metadata, table.storage))
    table.update_snapshot(stage_only=True).fast_append(files)
    return table


def rows_in(table: Table, ref: str = "main") -> Rows:
    """The rows of a branch or tag."""
    has_ids = allows(table.format_version, Feature.ROW_LINEAGE)
    columns = ("k", "name", *(("_row_id",) if has_ids else ()))
    read = table.scan(selected_fields=columns, ref=ref).to_arrow().to_pylist()
    rows = {row["k"]: (row["name"], row.get("_row_id")) for row in read}
    assert len(rows) == len(read), "a row is there twice"
    return rows


def check_whole(table: Table) -> None:
    """Every part of the table is there and fits."""
    report = table.refresh().verify(level="data", progress=silent)
    assert report.ok, report


def unneeded_files(table: Table) -> set[str]:
    """Files that the table does not need, except for old metadata files."""
    table.refresh()
    needed = set(reachable_files(table.metadata, table.metadata_location, table.storage).all())
    stored = {info.location for info in table.storage.list_prefix(str(table.location()))}
    return {location for location in stored - needed if not location.endswith((".metadata.json", "version-hint.text"))}


@dataclass(frozen=True)
class Procedure:
    """A procedure, and from which feature on it has something to do."""

    run: Callable[[Table], object]
    needs: Feature | None = None

    def applies(self, version: int) -> bool:
        """Whether it has something to do in a table of that version."""
        return self.needs is None or allows(version, self.needs)


ALL_FILES = {"rewrite-all": "true", "partial-progress.enabled": "true"}


def _maintain(table: Table) -> None:
    """All that is due, at once; a run that was killed within this process is dead, though its process is not."""
    list(table.storage.delete([f"{table.location()}/metadata/{LEASE}"]))
    table.maintenance.maintain(SETTLED)


PROCEDURES: dict[str, Procedure] = {
    "maintain": Procedure(lambda table: _maintain(table)),
    "compact": Procedure(lambda table: table.maintenance.rewrite_data_files(options=ALL_FILES)),
    "compact into one spec": Procedure(
        lambda table: table.maintenance.rewrite_data_files(options=ALL_FILES | {"rewrite-old-specs": "true"})
    ),
    "remove dangling deletes": Procedure(
        lambda table: table.maintenance.remove_dangling_deletes(), Feature.DELETE_FILES
    ),
    "convert equality deletes": Procedure(
        lambda table: table.maintenance.convert_equality_deletes(
            partial_progress_enabled=True, max_file_group_input_files=1
        ),
        Feature.DELETE_FILES,
    ),
    "rewrite position deletes": Procedure(
        lambda table: table.maintenance.rewrite_position_delete_files(ALL_FILES), Feature.DELETE_FILES
    ),
    "rewrite manifests": Procedure(lambda table: table.maintenance.rewrite_manifests()),
    "compute table stats": Procedure(lambda table: table.maintenance.compute_table_stats()),
    "compute partition stats": Procedure(lambda table: table.maintenance.compute_partition_stats()),
    "expire snapshots": Procedure(lambda table: table.maintenance.expire_snapshots(older_than=FUTURE, retain_last=1)),
    # As it is meant: by force, with an age of zero, it would delete what others are writing.
    "remove orphan files": Procedure(lambda table: table.maintenance.remove_orphan_files()),
}


class Others:
    """Another writer, with a handle of its own, and what the table's rows must be after what it did."""

    def __init__(self, catalog: Catalog, seed: int) -> None:
        self._catalog = catalog
        self._fresh = itertools.count(1000 + 100 * seed)
        self._seed = seed
        self.rows = rows_in(catalog.load_table(NAME))

    def act(self, name: str) -> None:
        """Change the table."""
        table = self._catalog.load_table(NAME)
        keys = sorted(self.rows)
        key = keys[self._seed % len(keys)]
        match name:
            case "append":
                new = next(self._fresh)
                table.append(new_rows(new))
                self.rows[new] = ("new", None)
            case "delete":
                table.delete(f"k = {key}")
                del self.rows[key]
            case "delete a file":
                table.delete("k >= 0 and k < 20")
                self.rows = {key: row for key, row in self.rows.items() if not 0 <= key < 20}
            case "delete equal":
                files = [task.file for task in table.scan().plan_files() if table.specs()[task.file.spec_id].fields]
                if allows(table.format_version, Feature.DELETE_FILES) and files:
                    chosen = files[self._seed % len(files)]
                    key = min(rows_of_file(table, chosen.file_path))
                    delete_equal(table, {"k": [key]}, of=chosen)
                    del self.rows[key]
            case "upsert":
                new = next(self._fresh)
                table.upsert(new_rows(key, new, name="upserted"), ["k"])
                self.rows |= {key: ("upserted", self.rows[key][1]), new: ("upserted", None)}
            case "copy-on-write upsert":
                table.set_properties(row_modes("copy-on-write"))
                table.upsert(new_rows(key, name="copied"), ["k"])
                self.rows[key] = ("copied", self.rows[key][1])
            case "add column":
                with table.update_schema() as schema:
                    schema.add_column(f"c{next(self._fresh)}", types.IntegerType())
            case "new spec":
                with table.update_spec() as spec:
                    spec.add_field("k", "bucket[2]")
            case "tag":
                table.manage_snapshots().create_tag(f"t{next(self._fresh)}").commit()
            case _:
                PROCEDURES[name].run(table)

    def check(self, table: Table) -> None:
        """The rows are what this writer left, with the ids that they had."""
        now = rows_in(table.refresh())
        assert now.keys() == self.rows.keys(), sorted(now.keys() ^ self.rows.keys())
        for key, (name, row_id) in self.rows.items():
            assert now[key][0] == name, key
            assert row_id is None or now[key][1] == row_id, key


def rows_of_file(table: Table, path: str) -> set[int]:
    """The keys of the live rows in a file."""
    rows = table.scan(selected_fields=("k", "_file")).to_arrow().to_pylist()
    return {row["k"] for row in rows if row["_file"] == path}


CHANGES = (
    "append",
    "delete",
    "delete a file",
    "delete equal",
    "upsert",
    "copy-on-write upsert",
    "add column",
    "new spec",
    "tag",
)
"""What others do to the table's rows and structure."""
