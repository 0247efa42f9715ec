"""Every kind of change, with a model of what it does: for tests of commits through handles that are behind.

Each kind is done in one of two roles, `first` and `second`, which touch rows of different files and make refs, columns and
properties of different names; so two changes conflict only by what they say of themselves: the second one is refused exactly if
the first `touches` something that it `needs` to be as it was. Else the table must be what both make of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from icefloe.catalog import Catalog
from icefloe.commit import Planned, StatisticsChange
from icefloe.data import WriteRequest, write_data_files
from icefloe.metadata import PartitionStatisticsFile, updates as up
from icefloe.partitioning import transforms as tr
from icefloe.schema.types import IntegerType, LongType
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.shared_rows import row_modes

FUTURE = 32_503_680_000_000
NAME = "shop.orders"
STAGED = "staged"
ROLES = ("first", "second")

Rows = Mapping[int, int]
"""The column `v` of each row, by its `id`."""

ARROW = pa.schema([("id", pa.int64()), ("p", pa.int32()), ("v", pa.int32())])


def arrow(p: int, values: Rows) -> pa.Table:
    """Rows of one partition."""
    columns = [list(values), [p] * len(values), list(values.values())]
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, ARROW.types, strict=True)], schema=ARROW)


@dataclass(frozen=True)
class World:
    """What a table is for those who use it."""

    rows: Mapping[str, Rows]
    """By branch and tag."""
    version: int
    next_version: int
    """What an upgrade goes to, whatever the version is by now."""
    columns: frozenset[str] = frozenset(("id", "p", "v"))
    spec: tuple[str, ...] = ("identity",)
    order: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    statistics: frozenset[str] = frozenset()
    retention: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    location: str = ""

    def with_rows(self, ref: str, rows: Rows | None) -> "World":
        """The same with other rows under a ref; None: without the ref."""
        others = {name: each for name, each in self.rows.items() if name != ref}
        return replace(self, rows=others if rows is None else {**others, ref: dict(rows)})

    def changed(self, ref: str, remove: set[int], add: Rows) -> "World":
        """The same with rows removed and added."""
        kept = {key: value for key, value in self.rows[ref].items() if key not in remove}
        return self.with_rows(ref, {**kept, **add})


@dataclass(frozen=True)
class Base:
    """A table with some history: ids of its snapshots by name."""

    version: int
    newest: int
    """The highest version that the catalog takes."""
    ids: Mapping[str, int]

    @property
    def world(self) -> World:
        """What the table is."""
        side = {1: 0, 2: 0, 3: 0, 4: 0}
        return World(
            {"main": {**side, 5: 0, 6: 0}, "side": side, "kept": side},
            self.version,
            min(self.version + 1, self.newest),
            properties={"test.old": "x"},
        )


def observed(table: Table, base: Base) -> World:
    """The same, seen through a handle."""
    metadata = table.metadata
    refs = metadata.refs
    rows = {}
    for name in refs:
        found = table.scan(ref=name, selected_fields=("id", "v")).to_arrow()
        rows[name] = dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))
        assert len(rows[name]) == found.num_rows
    partitioned = [
        each.transform for each in metadata.spec().fields if not isinstance(each.transform, tr.VoidTransform)
    ]
    own = {key: value for key, value in metadata.properties.items() if key.startswith("test.")}
    limits = {name: (each.min_snapshots_to_keep, each.max_snapshot_age_ms) for name, each in refs.items()}
    return World(
        rows,
        metadata.format_version,
        base.world.next_version,
        frozenset(each.name for each in metadata.schema().fields),
        tuple("bucket" if isinstance(each, tr.BucketTransform) else str(each) for each in partitioned),
        tuple(each.direction.value for each in metadata.sort_order().fields),
        own,
        frozenset(each.statistics_path.rpartition("/")[2] for each in metadata.partition_statistics),
        {name: each for name, each in limits.items() if each != (None, None)},
        str(metadata.location).rpartition("/")[2].removeprefix("orders"),
    )


def make_base(catalog: Catalog, version: int) -> Base:
    """The table that all changes begin with: three files, a branch, a tag, a staged snapshot, a spec and a schema of old."""
    is_folders = catalog.properties["type"] == "hadoop"
    modes = row_modes("merge-on-read")
    table = catalog.create_table(
        NAME,
        "id long, p int",
        properties={"format-version": version, "test.old": "x", "write.wap.enabled": "true", **modes},
    )
    with table.update_schema() as schema:
        schema.add_column("v", IntegerType())
    with table.update_spec() as spec:
        spec.add_field("p")
    made = [table.append(arrow(p, values)) for p, values in ((0, {1: 0, 2: 0}), (1, {3: 0, 4: 0}))]
    table.manage_snapshots().create_branch("side").create_tag("kept").commit()
    made.append(table.append(arrow(0, {5: 0, 6: 0})))
    made.append(table.append(arrow(1, {50: 5}), {"wap.id": STAGED}))
    names = ("s0", "s1", "s2", STAGED)
    newest = max(each for each in ALL_VERSIONS if not is_folders or allows(each, Feature.FILE_SYSTEM_TABLES))
    return Base(
        version, newest, {name: each.snapshot_id for name, each in zip(names, made, strict=True) if each is not None}
    )


Do = Callable[[Table, Base, int], object]
Effect = Callable[[World, int], World]


@dataclass(frozen=True)
class Kind:
    """A kind of change: how it is done in a role, what it does to the world, what it touches and what it needs."""

    do: Do
    effect: Effect
    touches: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    catalogs: tuple[str, ...] = ("memory", "sql", "hadoop")
    versions: tuple[int, ...] = ALL_VERSIONS


def _of(first: Any, second: Any) -> Callable[[int], Any]:
    return lambda role: (first, second)[role]


# In the first role rows of the partition 1 are touched, in the second one those of 0.
_PARTITION = _of(1, 0)
_DELETED, _OVERWRITTEN, _UPSERTED = _of(3, 5), _of(4, 6), _of(3, 6)


def _rewrite(table: Table, base: Base, role: int) -> None:
    scan = table.scan(_of("p = 1", "p = 0 and id >= 5")(role))
    (file,) = (each.file for each in scan.plan_files())
    new = write_data_files(scan.to_arrow(), WriteRequest(table.metadata, table.storage))
    table.update_snapshot().rewrite_files(Planned.on(table.metadata), remove=[file], add=new)


def _expire(**more: Any) -> Do:
    return lambda table, base, role: table.maintenance.expire_snapshots(older_than=FUTURE, retain_last=1, **more)


def _schema(table: Table, base: Base, role: int) -> None:
    with table.update_schema() as update:
        update.add_column(f"c{role}", LongType())


def _spec(table: Table, base: Base, role: int) -> None:
    with table.update_spec() as update:
        if role:
            update.remove_field("p")
        else:
            update.add_field("bucket(4, id)")


def _order(table: Table, base: Base, role: int) -> None:
    with table.update_sort_order() as update:
        if role:
            update.desc("id")
        else:
            update.asc("id")


def _statistics(table: Table, base: Base, role: int) -> None:
    path = f"{table.location()}/metadata/counts-{role}.parquet"
    table.storage.write(path, b"counts")
    change = StatisticsChange(set_partition_files=(PartitionStatisticsFile(base.ids["s2"], path, 6),))
    table.transaction().update_statistics(change).commit_transaction()


def _same(world: World, role: int) -> World:
    return world


def _commit_tag(table: Table, base: Base, role: int) -> None:
    table.manage_snapshots().create_tag(f"tag{role}", base.ids["s0"]).commit()


def _commit_branch(table: Table, base: Base, role: int) -> None:
    table.manage_snapshots().create_branch(f"branch{role}", base.ids["s0"]).commit()


S0: Rows = {1: 0, 2: 0}
S1: Rows = {**S0, 3: 0, 4: 0}
S2: Rows = {**S1, 5: 0, 6: 0}

_MAIN = frozenset({"main"})
_PLANNED = frozenset({"history"})
_EXPIRES = frozenset({"s0", "staged"})
_NEW_REF = frozenset({"ref to s0"})
_SEVERAL_CATALOGS = ("memory", "sql")

KINDS: dict[str, Kind] = {
    "append": Kind(
        lambda t, b, r: t.append(arrow(_PARTITION(r), {100 + r: 1})),
        lambda w, r: w.changed("main", set(), {100 + r: 1}),
        _MAIN,
    ),
    "append to a branch": Kind(
        lambda t, b, r: t.append(arrow(0, {110 + r: 1}), branch="side"),
        lambda w, r: w.changed("side", set(), {110 + r: 1}),
        frozenset({"side"}),
        frozenset({"side is there"}),
    ),
    "stage": Kind(lambda t, b, r: t.append(arrow(0, {120 + r: 1}), {"wap.id": f"other{r}"}), _same),
    "delete": Kind(
        lambda t, b, r: t.delete(f"id = {_DELETED(r)}"),
        lambda w, r: w.changed("main", {_DELETED(r)}, {}),
        _MAIN,
        _PLANNED,
    ),
    "overwrite": Kind(
        lambda t, b, r: t.overwrite(
            arrow(_PARTITION(r), {130 + r: 1}), f"p = {_PARTITION(r)} and id = {_OVERWRITTEN(r)}"
        ),
        lambda w, r: w.changed("main", {_OVERWRITTEN(r)}, {130 + r: 1}),
        _MAIN,
        _PLANNED,
    ),
    "upsert": Kind(
        lambda t, b, r: t.upsert(arrow(_PARTITION(r), {_UPSERTED(r): 7}), ["id", "p"]),
        lambda w, r: w.changed("main", set(), {_UPSERTED(r): 7}),
        _MAIN,
        _PLANNED,
    ),
    "replace partitions": Kind(
        lambda t, b, r: t.dynamic_partition_overwrite(arrow(_PARTITION(r), {140 + r: 1})),
        lambda w, r: w.changed("main", _of({3, 4}, {1, 2, 5, 6})(r), {140 + r: 1}),
        _MAIN,
        _PLANNED,
    ),
    "rewrite files": Kind(_rewrite, _same, _MAIN, _PLANNED),
    "rewrite manifests": Kind(lambda t, b, r: t.update_snapshot().rewrite_manifests(), _same, _MAIN),
    "expire by age": Kind(_expire(), _same, _EXPIRES),
    "expire and clean": Kind(_expire(clean_expired_metadata=True), _same, _EXPIRES),
    "expire by id": Kind(
        lambda t, b, r: t.maintenance.expire_snapshots(snapshot_ids=[b.ids["s0"]]), _same, frozenset({"s0"}), _NEW_REF
    ),
    "remove snapshots by updates": Kind(
        lambda t, b, r: t.transaction().apply_updates(up.RemoveSnapshotsUpdate((b.ids["s0"],))).commit_transaction(),
        _same,
        frozenset({"s0"}),
        frozenset({"main", "side", "kept"}) | _NEW_REF,
    ),
    "create tag": Kind(_commit_tag, lambda w, r: w.with_rows(f"tag{r}", S0), _NEW_REF, frozenset({"s0"})),
    "create branch": Kind(_commit_branch, lambda w, r: w.with_rows(f"branch{r}", S0), _NEW_REF, frozenset({"s0"})),
    "replace tag": Kind(
        lambda t, b, r: t.manage_snapshots().replace_tag("kept", b.ids["s2"]).commit(),
        lambda w, r: w.with_rows("kept", S2),
        frozenset({"kept"}),
        frozenset({"kept"}),
    ),
    "remove tag": Kind(
        lambda t, b, r: t.manage_snapshots().remove_tag("kept").commit(),
        lambda w, r: w.with_rows("kept", None),
        frozenset({"kept"}),
        frozenset({"kept"}),
    ),
    "rename branch": Kind(
        lambda t, b, r: t.manage_snapshots().rename_branch("side", f"renamed{r}").commit(),
        lambda w, r: replace(
            w.with_rows(f"renamed{r}", w.rows["side"]).with_rows("side", None),
            retention={f"renamed{r}": each for each in w.retention.values()},
        ),
        frozenset({"side", "side is there"}),
        frozenset({"side"}),
    ),
    "set retention": Kind(
        lambda t, b, r: (
            t.manage_snapshots()
            .set_retention("side", **_of({"min_snapshots_to_keep": 9}, {"max_snapshot_age_ms": FUTURE})(r))
            .commit()
        ),
        lambda w, r: replace(w, retention={"side": _merged(w.retention.get("side", (None, None)), r)}),
        frozenset(),
        frozenset({"side is there"}),
    ),
    "fast forward": Kind(
        lambda t, b, r: t.manage_snapshots().fast_forward("side", "main").commit(),
        lambda w, r: w.with_rows("side", w.rows["main"]),
        frozenset({"side"}),
        frozenset({"side", "main"}),
    ),
    "cherry-pick": Kind(
        lambda t, b, r: t.manage_snapshots().cherrypick(b.ids[STAGED]).commit(),
        lambda w, r: w.changed("main", set(), {50: 5}),
        _MAIN | {STAGED},
        frozenset({STAGED}),
    ),
    "roll back": Kind(
        lambda t, b, r: t.manage_snapshots().rollback_to_snapshot(b.ids["s1"]).commit(),
        lambda w, r: w.with_rows("main", S1),
        _MAIN | _PLANNED,
        _MAIN,
    ),
    "schema": Kind(
        _schema,
        lambda w, r: replace(w, columns=w.columns | {f"c{r}"}),
        frozenset({"schema"}),
        frozenset({"schema"}),
    ),
    "spec": Kind(
        _spec,
        lambda w, r: replace(w, spec=_of(("identity", "bucket"), ())(r)),
        frozenset({"spec"}),
        frozenset({"spec"}),
    ),
    "sort order": Kind(
        _order, lambda w, r: replace(w, order=_of(("asc",), ("desc",))(r)), frozenset({"order"}), frozenset({"order"})
    ),
    "properties": Kind(
        lambda t, b, r: t.set_properties({f"test.{r}": "x", "test.both": str(r)}),
        lambda w, r: replace(w, properties={**w.properties, f"test.{r}": "x", "test.both": str(r)}),
    ),
    "remove properties": Kind(
        lambda t, b, r: t.remove_properties("test.old"),
        lambda w, r: replace(w, properties={key: each for key, each in w.properties.items() if key != "test.old"}),
    ),
    "statistics": Kind(_statistics, lambda w, r: replace(w, statistics=frozenset({f"counts-{r}.parquet"}))),
    "upgrade": Kind(
        lambda t, b, r: t.upgrade_format_version(b.world.next_version),
        lambda w, r: replace(w, version=w.next_version),
        frozenset({"version"}),
    ),
    "location": Kind(
        lambda t, b, r: t.transaction().update_location(f"{t.location()}-{r}").commit_transaction(),
        lambda w, r: replace(w, location=f"-{r}"),
        catalogs=_SEVERAL_CATALOGS,
        versions=tuple(each for each in ALL_VERSIONS if not allows(each, Feature.RELATIVE_PATHS)),
    ),
}


def _merged(known: tuple[int | None, int | None], role: int) -> tuple[int | None, int | None]:
    return (9, known[1]) if role == 0 else (known[0], FUTURE)
