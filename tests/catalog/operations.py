"""Every operation on a table, each on the same small table, and what a table is, in values that can be compared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from icefloe.catalog import Catalog
from icefloe.commit import Caches, Expire, Planned, StatisticsChange
from icefloe.commit.parent import Parent
from icefloe.data import WriteRequest, write_data_files
from icefloe.manifests import WITHOUT_METRICS, DataFile
from icefloe.metadata import StatisticsFile, resolve_location
from icefloe.schema.types import LongType
from icefloe.table import Table, Transaction
from icefloe.versions import Feature, allows
from tests.commit.tables import bench_of, manifests
from tests.shared_rows import rows_of

ORDERS, NEW = "shop.orders", "shop.new"
DDL = "id long, region string"
PROPERTIES = {
    "commit.retry.num-retries": "3",
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "1",
    "commit.status-check.num-retries": "1",
    "commit.status-check.min-wait-ms": "1",
    "commit.manifest.min-count-to-merge": "2",
    "write.delete.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.metadata.previous-versions-max": "2",
    "write.metadata.delete-after-commit.enabled": "true",
}
"""Nobody waits long, manifests are merged, rows are deleted by delete files, and old metadata goes."""


def rows(*ids: int, region: str = "eu") -> Any:
    """Rows of the table."""
    return rows_of(*ids, region=region)


def files_of(table: Table, data: Any) -> list[DataFile]:
    """Data files with these rows, which no snapshot holds yet."""
    return write_data_files(data, WriteRequest(table.metadata, table.storage))


def new_orders(catalog: Catalog, version: int, name: str = ORDERS) -> Table:
    """The table that operations are done on: four files in three partitions, a branch, a tag, and a staged snapshot."""
    properties = {"format-version": version, **PROPERTIES}
    table = catalog.create_table(name, DDL, partition_spec=["region"], properties=properties)
    table.update_snapshot().fast_append(files_of(table, rows(1, 2, 3)))
    table.update_snapshot().fast_append(files_of(table, rows(4, 5, region="us")))
    with table.manage_snapshots() as manage:
        manage.create_branch("dev").create_tag("begin", table.snapshots()[0].snapshot_id)
    table.update_snapshot(stage_only=True).fast_append(files_of(table, rows(6, region="jp")))
    table.update_snapshot().fast_append(files_of(table, rows(7, 8)))
    table.set_properties({"made": "yes"})
    return table


# The operations


def _rewrite(table: Table) -> None:
    planned = Planned.on(table.metadata)
    scan = table.scan("region = 'eu'")
    old = [task.file for task in scan.plan_files()]
    table.update_snapshot().rewrite_files(planned, remove=old, add=files_of(table, scan.to_arrow()))


def _several(table: Table) -> None:
    with table.transaction() as tx:
        tx.delete("id = 1")
        tx.append(rows(21, 22))
        with tx.update_schema() as update:
            update.add_column("note", LongType())
        tx.set_properties({"several": "yes"})
        tx.manage_snapshots().create_tag("several", table.snapshots()[0].snapshot_id).commit()


def _schema(table: Table) -> None:
    with table.update_schema() as update:
        update.add_column("note", LongType())


def _spec(table: Table) -> None:
    with table.update_spec() as update:
        update.add_field("bucket(4, id)")


def _order(table: Table) -> None:
    with table.update_sort_order() as update:
        update.asc("id")


def _refs(table: Table) -> None:
    first = table.snapshots()[0].snapshot_id
    manage = table.manage_snapshots().create_branch("new", first).create_tag("mark", first)
    manage.remove_tag("begin").rename_branch("dev", "prod").commit()


def _create_branch(table: Table) -> None:
    table.manage_snapshots().create_branch("new", table.snapshots()[0].snapshot_id).commit()


def _remove_tag(table: Table) -> None:
    table.manage_snapshots().remove_tag("begin").commit()


def _fast_forward(table: Table) -> None:
    table.manage_snapshots().fast_forward("dev", "main").commit()


def _rollback(table: Table) -> None:
    table.manage_snapshots().rollback_to_snapshot(table.snapshots()[0].snapshot_id).commit()


def _cherry_pick(table: Table) -> None:
    staged = next(each for each in table.snapshots() if _is_staged(table, each.snapshot_id))
    table.manage_snapshots().cherrypick(staged.snapshot_id).commit()


def _is_staged(table: Table, snapshot_id: int) -> bool:
    heads = [ref.snapshot_id for ref in table.refs().values()]
    return not any(table.metadata.is_ancestor(snapshot_id, of=head) for head in heads)


def _statistics(table: Table) -> None:
    snapshot_id = table.snapshots()[0].snapshot_id
    path = f"{table.location()}/metadata/none.stats"
    table.storage.write(path, b"stats")
    change = StatisticsChange(set_files=(StatisticsFile(snapshot_id, path, 5, 1, ()),))
    table.transaction().update_statistics(change).commit_transaction()


def _expire(table: Table) -> None:
    # What a staged snapshot holds is in no branch.
    staged = next(each.snapshot_id for each in table.snapshots() if _is_staged(table, each.snapshot_id))
    table.transaction().expire_snapshots(Expire(snapshot_ids_to_expire=(staged,))).commit_transaction()


def _upgrade(table: Table) -> None:
    table.upgrade_format_version(table.format_version + 1)


ON_TABLE: dict[str, Callable[[Table], object]] = {
    "fast append": lambda table: table.update_snapshot().fast_append(files_of(table, rows(9, 10))),
    "merge append": lambda table: table.append(rows(9, 10)),
    "append to a branch": lambda table: table.append(rows(9), branch="dev"),
    "staged append": lambda table: table.update_snapshot(stage_only=True).fast_append(files_of(table, rows(9))),
    "overwrite by filter": lambda table: table.overwrite(rows(11, 12), "region = 'eu'"),
    "overwrite rows": lambda table: table.overwrite(rows(13), "id = 3"),
    "replace partitions": lambda table: table.dynamic_partition_overwrite(rows(14, region="us")),
    "delete by filter": lambda table: table.delete("region = 'us'"),
    "row delta, deletes": lambda table: table.delete("id = 2"),
    "row delta, upsert": lambda table: table.upsert(rows(2, 15), ["id"]),
    "rewrite files": _rewrite,
    "rewrite manifests": lambda table: table.update_snapshot().rewrite_manifests(),
    "schema": _schema,
    "spec": _spec,
    "sort order": _order,
    "properties": lambda table: table.set_properties({"owner": "me"}),
    "format version": _upgrade,
    "several refs": _refs,
    "create branch": _create_branch,
    "remove tag": _remove_tag,
    "fast forward": _fast_forward,
    "rollback": _rollback,
    "cherry-pick": _cherry_pick,
    "statistics": _statistics,
    "expire": _expire,
    "transaction": _several,
}


def _fill(tx: Transaction) -> None:
    tx.append(rows(30, 31))
    tx.set_properties({"staged": "yes"})
    tx.commit_transaction()


def _staged_create(catalog: Catalog, version: int) -> None:
    properties = {"format-version": version, **PROPERTIES}
    _fill(catalog.create_table_transaction(NEW, DDL, partition_spec=["region"], properties=properties))


def _staged_empty(catalog: Catalog, version: int) -> None:
    properties = {"format-version": version, **PROPERTIES}
    catalog.create_table_transaction(NEW, DDL, properties=properties).commit_transaction()


def _create(catalog: Catalog, version: int) -> None:
    catalog.create_table(NEW, DDL, properties={"format-version": version, **PROPERTIES})


def _staged_replace(catalog: Catalog, version: int) -> None:
    _fill(catalog.replace_table_transaction(ORDERS, "id long, region string, more int"))


def _replace(catalog: Catalog, version: int) -> None:
    catalog.replace_table(ORDERS, "id long, region string, more int")


ON_CATALOG: dict[str, Callable[[Catalog, int], object]] = {
    "create": _create,
    "staged create": _staged_create,
    "staged create, empty": _staged_empty,
    "replace": _replace,
    "staged replace": _staged_replace,
}

OPERATIONS = (*ON_TABLE, *ON_CATALOG)

MINDING_OTHERS = ("fast forward", "rollback", "create", "staged create", "staged create, empty")
"""Operations that are refused, and rightly so, when another writer appends to `main` first or that have no table yet."""


_CACHES = Caches()
"""Files never change, and no name is used twice: what is read once need not be read again."""


def known(table: Table) -> Table:
    """The same handle, with all manifests that any other of them has read."""
    table._caches = _CACHES
    return table


@dataclass(frozen=True)
class Operation:
    """An operation by its name, ready to be done."""

    name: str

    @property
    def table(self) -> str:
        """The name of the table that it changes."""
        return NEW if self.name in ("create", "staged create", "staged create, empty") else ORDERS

    def begin(self, catalog: Catalog, version: int, *, reads: bool) -> Callable[[], object]:
        """The operation by a writer that has loaded the table already, and, unless it `reads`, knows its manifests."""
        if self.name in ON_CATALOG:
            return lambda: ON_CATALOG[self.name](catalog, version)
        table = catalog.load_table(ORDERS)
        if not reads:
            known(table)
        return lambda: ON_TABLE[self.name](table)


# What a table is


def describe(catalog: Catalog, name: str) -> Mapping[str, Any] | None:
    """All of a table that must be the same however it came about; None if it does not exist."""
    if not catalog.table_exists(name):
        return None
    table = known(catalog.load_table(name))
    contents = {ref: _rows(table, head.snapshot_id) for ref, head in table.refs().items()}
    return {
        "rows": contents,
        "in no branch": sorted(
            str(_rows(table, each.snapshot_id)) for each in table.snapshots() if _is_staged(table, each.snapshot_id)
        ),
        "snapshots": len(table.snapshots()),
        "schema": str(table.schema()),
        "spec": str(table.spec()),
        "order": str(table.sort_order()),
        "properties": dict(table.properties),
        "version": table.format_version,
        "statistics": len(table.statistics()),
    }


_READ: dict[tuple[str, int], list[tuple[Any, ...]]] = {}


def _rows(table: Table, snapshot_id: int) -> list[tuple[Any, ...]]:
    key = (str(table.metadata.snapshot(snapshot_id).manifest_list), table.metadata.current_schema_id)
    if key not in _READ:
        found = table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()
        _READ[key] = sorted(tuple(row.values()) for row in found)
    return _READ[key]


def check_whole(catalog: Catalog, name: str) -> None:
    """Fail unless every file that any snapshot needs is there, and numbers and row ids are in order."""
    table = catalog.load_table(name)
    metadata = table.metadata
    needed = {str(table.metadata_location), *(metadata.resolve(each.metadata_file) for each in metadata.metadata_log)}
    lists = [str(each.manifest_list) for each in table.snapshots()]
    lists += [each.statistics_path for each in table.statistics()]
    relative = allows(metadata.format_version, Feature.RELATIVE_PATHS)
    needed.update(resolve_location(str(metadata.location), each) if relative else each for each in lists)
    for snapshot in table.snapshots():
        for manifest in manifests(table, snapshot.snapshot_id, _CACHES):
            needed.add(manifest.manifest_path)
            columns = Parent(metadata, bench_of(table, _CACHES)).read(manifest, WITHOUT_METRICS)
            needed.update(columns.filter(columns.is_live).column("file_path").to_pylist())
    missing = sorted(each for each in needed if not catalog.storage.exists(each))
    assert not missing, f"live files are gone: {missing}"
    _check_numbers(table)


def _check_numbers(table: Table) -> None:
    snapshots = table.snapshots()
    assert len({each.snapshot_id for each in snapshots}) == len(snapshots)
    if allows(table.format_version, Feature.SEQUENCE_NUMBERS):
        numbers = [each.sequence_number for each in snapshots if each.sequence_number]
        assert numbers == sorted(set(numbers))
        assert not numbers or numbers[-1] <= table.metadata.last_sequence_number
    if allows(table.format_version, Feature.ROW_LINEAGE):
        end = 0
        for each in snapshots:
            if each.first_row_id is not None:
                assert each.first_row_id >= end
                end = each.first_row_id + (each.added_rows or 0)
        assert end <= table.metadata.next_row_id
