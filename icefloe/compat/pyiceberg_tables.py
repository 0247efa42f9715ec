"""Tables, scans and catalogs with PyIceberg's words where they differ from ours: what calls return, and how parameters are called."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from icefloe.catalog import (
    Catalog,
    HadoopCatalog,
    MemoryCatalog,
    RestCatalog,
    SqlCatalog,
    load_catalog as load_own_catalog,
    load_static_table,
    parse_identifier,
    parse_namespace,
)
from icefloe.errors import UnsupportedOperationError
from icefloe.maintenance import Maintenance
from icefloe.table import DataScan, Table
from icefloe.table.manage_snapshots import ManageSnapshots

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class UpsertResult:
    """How many rows an upsert changed, and how many it added."""

    rows_updated: int = 0
    rows_inserted: int = 0


class CompatScan(DataScan):
    """A scan with PyIceberg's names of parameters."""

    def to_duckdb(
        self, table_name: str, connection: "duckdb.DuckDBPyConnection | None" = None
    ) -> "duckdb.DuckDBPyConnection":
        """The rows as a view in a DuckDB connection."""
        return super().to_duckdb(table_name, connection)

    def to_ray(self) -> Any:
        """Not here."""
        raise UnsupportedOperationError("icefloe has no to_ray; ray.data.from_arrow(scan.to_arrow()) does the same")


def _renamed(named: dict[str, Any]) -> dict[str, Any]:
    """PyIceberg calls the rows `df`."""
    return {"data" if key == "df" else key: value for key, value in named.items()}


class CompatManageSnapshots(ManageSnapshots):
    """Branches and tags, with the snapshot before the name, as in PyIceberg."""

    def create_tag(self, snapshot_id: Any, tag_name: Any, max_ref_age_ms: int | None = None) -> Self:  # type: ignore[override]  # their order
        """A new tag."""
        return super().create_tag(tag_name, snapshot_id, max_ref_age_ms)

    def create_branch(self, snapshot_id: Any, branch_name: Any, *given: Any, **named: Any) -> Self:  # type: ignore[override]  # their order
        """A new branch."""
        return super().create_branch(branch_name, snapshot_id, *given, **named)


class CompatMaintenance:
    """Maintenance in which a time without a zone is in UTC, as in PyIceberg."""

    def __init__(self, own: Maintenance) -> None:
        self._own = own

    def expire_snapshots(self) -> "CompatExpiry":
        """Collect what is to expire."""
        return CompatExpiry(self._own.expire_snapshots())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


class CompatExpiry:
    """What is to expire, until `commit`."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def older_than(self, dt: datetime) -> "CompatExpiry":
        """Snapshots that are older."""
        self._own.older_than(dt if dt.tzinfo is not None else dt.replace(tzinfo=UTC))
        return self

    def by_id(self, snapshot_id: int) -> "CompatExpiry":
        """One snapshot."""
        self._own.by_id(snapshot_id)
        return self

    def by_ids(self, snapshot_ids: list[int]) -> "CompatExpiry":
        """Several snapshots."""
        for each in snapshot_ids:
            self._own.by_id(each)
        return self

    def commit(self) -> None:
        """Let them expire, and delete the files that only they needed."""
        self._own.commit()


class CompatTable(Table):
    """A table as PyIceberg's scripts know it."""

    def scan(self, *given: Any, **named: Any) -> CompatScan:
        """The rows of the table."""
        scan = super().scan(*given, **named)
        object.__setattr__(scan, "__class__", CompatScan)
        assert isinstance(scan, CompatScan)
        return scan

    def append(self, *given: Any, **named: Any) -> None:
        """Add rows."""
        super().append(*given, **_renamed(named))

    def overwrite(self, *given: Any, **named: Any) -> None:
        """Delete matching rows, or all, and add others."""
        super().overwrite(*given, **_renamed(named))

    def dynamic_partition_overwrite(self, *given: Any, **named: Any) -> None:
        """Replace the partitions that the rows fall in."""
        super().dynamic_partition_overwrite(*given, **_renamed(named))

    def delete(self, *given: Any, **named: Any) -> None:
        """Delete matching rows."""
        super().delete(*given, **named)

    def add_files(self, *given: Any, **named: Any) -> None:
        """Add existing files."""
        super().add_files(*given, **named)

    def upsert(self, df: Any, join_cols: Any = None, *given: Any, **named: Any) -> UpsertResult:  # type: ignore[override]  # theirs returns counts
        """Replace rows that have a key of the data, and insert the others."""
        keys = list(join_cols or self.schema().identifier_field_names)
        counts = _counts(self, df, keys)
        super().upsert(df, join_cols, *given, **named)
        updates = named.get("when_matched_update_all", given[0] if given else True)
        inserts = named.get("when_not_matched_insert_all", given[1] if len(given) > 1 else True)
        return UpsertResult(counts.rows_updated if updates else 0, counts.rows_inserted if inserts else 0)

    @property
    def maintenance(self) -> Any:
        """Keeping the table healthy."""
        return CompatMaintenance(super().maintenance)

    def manage_snapshots(self) -> ManageSnapshots:
        """Change branches, tags and the current snapshot."""
        return CompatManageSnapshots(self._begin)

    @property
    def identifier(self) -> tuple[str, ...]:
        """The name."""
        return self.name()

    @property
    def io(self) -> "FileIO":
        """Where files are."""
        return FileIO(self)

    def last_partition_id(self) -> int:
        """The highest partition field id."""
        return self.metadata.last_partition_id

    def name_mapping(self) -> Any:
        """Names of columns in files without ids."""
        return self.properties.get("schema.name-mapping.default")


class FileIO:
    """What scripts ask of `table.io`: its properties, and bytes."""

    def __init__(self, table: Table) -> None:
        self._storage = table.storage
        self.properties: Mapping[str, str] = table.storage.properties

    def read(self, location: str) -> bytes:
        """The bytes of a file."""
        return self._storage.read(location)

    def delete(self, location: str) -> None:
        """Delete a file."""
        self._storage.delete([location])


def _counts(table: Table, rows: Any, keys: list[str]) -> UpsertResult:
    """Which rows of an upsert change something, and which are new."""
    import pyarrow as pa

    given = {tuple(row[key] for key in keys): row for row in pa.table(rows).to_pylist()}
    known = 0
    changed = 0
    for batch in Table.scan(table).to_arrow_batch_reader():
        for row in batch.to_pylist():
            new = given.get(tuple(row[key] for key in keys))
            if new is not None:
                known += 1
                changed += any(row[name] != value for name, value in new.items())
    return UpsertResult(changed, len(given) - known)


class StaticTable:
    """A table that is read from its metadata file."""

    @staticmethod
    def from_metadata(metadata_location: str, properties: Mapping[str, str] | None = None) -> Table:
        """The table of a metadata file; it cannot be changed."""
        return as_compat(load_static_table(metadata_location, dict(properties or {})))


def as_compat(table: Table) -> CompatTable:
    """The same handle, with PyIceberg's words."""
    object.__setattr__(table, "__class__", CompatTable)
    assert isinstance(table, CompatTable)
    return table


class _Compat:
    """The calls of a catalog that give tables."""

    def load_table(self, *given: Any, **named: Any) -> CompatTable:
        """The table of that name."""
        return as_compat(super().load_table(*given, **named))  # type: ignore[misc]  # the class beside this one has it

    def create_table(self, *given: Any, **named: Any) -> CompatTable:
        """Create a table."""
        return as_compat(super().create_table(*given, **named))  # type: ignore[misc]  # likewise

    def create_table_if_not_exists(self, *given: Any, **named: Any) -> CompatTable:
        """Create a table, or load it."""
        return as_compat(super().create_table_if_not_exists(*given, **named))  # type: ignore[misc]  # likewise

    def register_table(self, *given: Any, **named: Any) -> CompatTable:
        """Give a name to a metadata file."""
        return as_compat(super().register_table(*given, **named))  # type: ignore[misc]  # likewise

    def rename_table(self, from_identifier: Any, to_identifier: Any) -> CompatTable:
        """Rename a table."""
        return as_compat(super().rename_table(from_identifier, to_identifier))  # type: ignore[misc]  # likewise

    @staticmethod
    def identifier_to_tuple(identifier: Any) -> tuple[str, ...]:
        """The levels of a name."""
        return parse_identifier(identifier) if "." in identifier else parse_namespace(identifier)


def _of(kind: type[Catalog]) -> type[Catalog]:
    def start(self: Any, name: str, **properties: Any) -> None:
        kind.__init__(self, name, {key: str(value) for key, value in properties.items()})

    return type(kind.__name__, (_Compat, kind), {"__init__": start, "__doc__": kind.__doc__})


CATALOGS: dict[type[Catalog], type[Catalog]] = {
    kind: _of(kind) for kind in (SqlCatalog, RestCatalog, HadoopCatalog, MemoryCatalog)
}
"""Our catalogs, and the same with PyIceberg's words."""


def load_catalog(name: str | None = None, **properties: Any) -> Catalog:
    """The catalog of that name, by PyIceberg's configuration or ours."""
    kind = properties.get("type")
    if kind == "in-memory":
        properties = {**properties, "type": "memory", "warehouse": properties.get("warehouse", "memory://warehouse")}
    with load_own_catalog(name or "default", **properties) as own:
        return CATALOGS[type(own)](own.name, **own.properties)  # type: ignore[arg-type]  # they take properties by name
