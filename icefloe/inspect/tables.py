"""What can be read of a table about itself: the metadata tables by name, narrowed to rows, columns and a snapshot."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypedDict, Unpack

import pyarrow as pa

from icefloe import errors, expressions as ex, manifests as mf, metadata as md, planning
from icefloe.inspect.partition_statistics import partition_statistics_table
from icefloe.inspect.parts import MetadataPart, batches_of, parts_of
from icefloe.inspect.request import MetadataRequest
from icefloe.inspect.schemas import TABLE_NAMES, metadata_table_schema
from icefloe.inspect.statistics import statistics_table
from icefloe.schema import Schema, select
from icefloe.storage import Storage

OF_ONE_SNAPSHOT = frozenset(
    ("entries", "files", "data_files", "delete_files", "manifests", "partitions", "position_deletes")
)
"""The tables that are read of one snapshot, the current one unless another is named; the others know no time travel."""

READ_AHEAD_BYTES = 256 << 20
"""How much of a stream is in memory ahead of the one who reads it, about."""


class Narrowing(TypedDict, total=False):
    """Which rows and columns of a metadata table are wanted."""

    row_filter: str | ex.Expression | None
    selected_fields: Sequence[str]
    case_sensitive: bool
    options: Mapping[str, str]


class Travel(Narrowing, total=False):
    """The same, of a snapshot by branch, tag or time."""

    ref: str | None
    as_of: int | dt.datetime | None
    skipped_manifests: frozenset[str]


@dataclass(frozen=True)
class MetadataScan:
    """A metadata table by name: rows that match a filter on its own columns, columns by name, at one snapshot."""

    name: str
    metadata: md.TableMetadata
    storage: Storage
    metadata_location: str | None = None
    snapshot_id: int | None = None
    row_filter: str | ex.Expression | None = None
    selected_fields: Sequence[str] = planning.ALL_COLUMNS
    case_sensitive: bool = True
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    ref: str | None = None
    as_of: int | dt.datetime | None = None
    skipped_manifests: frozenset[str] = frozenset()
    """Manifests whose files and entries are left out, by path: for those who know them already."""
    cache: mf.ManifestCache | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.name not in TABLE_NAMES:
            raise errors.InvalidInputError(
                f"there is no metadata table {self.name!r}; there are: {', '.join(TABLE_NAMES)}"
            )
        planning.check_names(self.selected_fields, self.name)
        travels = (self.snapshot_id, self.ref, self.as_of) != (None, None, None)
        if travels and self.name not in OF_ONE_SNAPSHOT:
            known = ", ".join(name for name in TABLE_NAMES if name in OF_ONE_SNAPSHOT)
            raise errors.InvalidInputError(
                f"{self.name} is not of one snapshot, so none can be chosen; tables of one are {known}"
            )

    @cached_property
    def schema(self) -> Schema:
        """All columns of the metadata table."""
        return metadata_table_schema(self.name, self.metadata)

    def projection(self) -> Schema:
        """The columns that are wanted, in the order of the table."""
        return select(self.schema, self.selected_fields, self.case_sensitive)

    def to_arrow(self) -> pa.Table:
        """All rows as a `pyarrow.Table`."""
        request = self._request()
        return pa.Table.from_batches(list(batches_of(request)), request.arrow_schema)

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow batches: nothing is read before it is asked for, and little ahead of that."""
        request = self.request()
        return pa.RecordBatchReader.from_batches(request.arrow_schema, batches_of(request))

    def parts(self) -> list[MetadataPart]:
        """The parts in which `request` can be read, apart from each other; none if all rows are to be read at once."""
        return parts_of(self._request())

    def request(self) -> MetadataRequest:
        """What is asked of the table, for who reads it in parts."""
        return self._request(READ_AHEAD_BYTES)

    def _request(self, read_ahead_bytes: int | None = None) -> MetadataRequest:
        return MetadataRequest(
            self.name,
            self.metadata,
            self.metadata_location,
            self.storage,
            self._snapshots(),
            self.schema,
            self.projection(),
            ex.bind(planning.parsed_filter(self.row_filter), self.schema, self.case_sensitive),
            planning.scan_options(self.options, self.metadata.properties).workers,
            read_ahead_bytes,
            self.skipped_manifests,
            cache=self.cache,
        )

    def _snapshots(self) -> tuple[md.Snapshot, ...]:
        if self.name not in OF_ONE_SNAPSHOT:
            return self.metadata.snapshots
        snapshot = planning.choose_snapshot(self.metadata, self.snapshot_id, self.ref, self.as_of)
        return () if snapshot is None else (snapshot,)


class Inspect:
    """The metadata tables of a table, each as a `pyarrow.Table`; `scan` streams them.

    All take `row_filter` and `selected_fields`, which speak of the columns of the metadata table. Those of one snapshot
    take its id, a `ref`, or `as_of`; without one they are of the current snapshot, and empty if there is none.
    """

    def __init__(
        self,
        metadata: md.TableMetadata,
        storage: Storage,
        metadata_location: str | None = None,
        cache: mf.ManifestCache | None = None,
    ) -> None:
        self._metadata = metadata
        self._storage = storage
        self._location = metadata_location
        self._cache = cache

    def scan(self, name: str, snapshot_id: int | None = None, **what: Unpack[Travel]) -> MetadataScan:
        """A metadata table by name, to be had as a table or as a stream."""
        scan = MetadataScan(name, self._metadata, self._storage, self._location, snapshot_id, **what)
        return replace(scan, cache=self._cache)

    def entries(self, snapshot_id: int | None = None, **what: Unpack[Travel]) -> pa.Table:
        """The entries of a snapshot's manifests, those of removed files too."""
        return self.scan("entries", snapshot_id, **what).to_arrow()

    def files(self, snapshot_id: int | None = None, **what: Unpack[Travel]) -> pa.Table:
        """The data and delete files of a snapshot."""
        return self.scan("files", snapshot_id, **what).to_arrow()

    def data_files(self, snapshot_id: int | None = None, **what: Unpack[Travel]) -> pa.Table:
        """The data files of a snapshot."""
        return self.scan("data_files", snapshot_id, **what).to_arrow()

    def delete_files(self, snapshot_id: int | None = None, **what: Unpack[Travel]) -> pa.Table:
        """The delete files and deletion vectors of a snapshot."""
        return self.scan("delete_files", snapshot_id, **what).to_arrow()

    def manifests(self, snapshot_id: int | None = None, **what: Unpack[Travel]) -> pa.Table:
        """The manifests of a snapshot."""
        return self.scan("manifests", snapshot_id, **what).to_arrow()

    def partitions(
        self,
        snapshot_id: int | None = None,
        row_filter: str | ex.Expression | None = None,
        case_sensitive: bool = True,
        *,
        selected_fields: Sequence[str] = planning.ALL_COLUMNS,
        options: Mapping[str, str] | None = None,
        ref: str | None = None,
        as_of: int | dt.datetime | None = None,
    ) -> pa.Table:
        """The partitions of a snapshot, with what their live files sum up to."""
        return self.scan(
            "partitions",
            snapshot_id,
            row_filter=row_filter,
            selected_fields=selected_fields,
            case_sensitive=case_sensitive,
            options=options or {},
            ref=ref,
            as_of=as_of,
        ).to_arrow()

    def statistics(self) -> pa.Table:
        """What the statistics files of all snapshots say of columns: a row for each blob, with the count of distinct values."""
        return statistics_table(self._metadata)

    def partition_statistics(
        self, snapshot_id: int | None = None, *, ref: str | None = None, as_of: int | dt.datetime | None = None
    ) -> pa.Table:
        """The rows of the partition statistics file of a snapshot; none if it has no such file."""
        snapshot = planning.choose_snapshot(self._metadata, snapshot_id, ref, as_of)
        return partition_statistics_table(self._metadata, snapshot, self._storage)

    def position_deletes(self, snapshot_id: int | None = None, **what: Unpack[Travel]) -> pa.Table:
        """Every row that a delete file or deletion vector of a snapshot deletes by position."""
        return self.scan("position_deletes", snapshot_id, **what).to_arrow()

    def history(self, **what: Unpack[Narrowing]) -> pa.Table:
        """Which snapshot was current from when on."""
        return self.scan("history", **what).to_arrow()

    def metadata_log_entries(self, **what: Unpack[Narrowing]) -> pa.Table:
        """The metadata files that the table had, and the one that it has."""
        return self.scan("metadata_log_entries", **what).to_arrow()

    def snapshots(self, **what: Unpack[Narrowing]) -> pa.Table:
        """All snapshots."""
        return self.scan("snapshots", **what).to_arrow()

    def refs(self, **what: Unpack[Narrowing]) -> pa.Table:
        """Branches and tags."""
        return self.scan("refs", **what).to_arrow()

    def all_data_files(self, **what: Unpack[Narrowing]) -> pa.Table:
        """The data files of all snapshots; those in several manifests come several times."""
        return self.scan("all_data_files", **what).to_arrow()

    def all_delete_files(self, **what: Unpack[Narrowing]) -> pa.Table:
        """The delete files of all snapshots, likewise."""
        return self.scan("all_delete_files", **what).to_arrow()

    def all_files(self, **what: Unpack[Narrowing]) -> pa.Table:
        """The data and delete files of all snapshots, likewise."""
        return self.scan("all_files", **what).to_arrow()

    def all_manifests(self, **what: Unpack[Narrowing]) -> pa.Table:
        """The manifests of all snapshots, again for each snapshot that has them."""
        return self.scan("all_manifests", **what).to_arrow()

    def all_entries(self, **what: Unpack[Narrowing]) -> pa.Table:
        """The entries of the manifests of all snapshots, each manifest once."""
        return self.scan("all_entries", **what).to_arrow()
