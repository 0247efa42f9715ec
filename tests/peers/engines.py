"""The matrix, second side: each peer as a small adapter that reads a table to rows, and what it declares itself unable to do."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, Protocol

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
import pyarrow as pa
from pyiceberg.table import StaticTable

from icefloe.expressions import AlwaysTrue
from icefloe.schema.types import GeographyType, GeometryType, VariantType
from icefloe.table import Table
from icefloe.variant.values import Variant
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.formats.variant_json import to_json
from tests.peers.clickhouse import ClickHousePeer
from tests.peers.lake import Lake, travel_clause
from tests.peers.scenarios import SCENARIOS, Read

REF_OPTION = "snapshot_from_ref"
"""How peers that name snapshots by options would name refs; those that know no such option say so themselves."""


@dataclass(frozen=True)
class Inability:
    """Scenarios that a peer does not read, why, and what it says then."""

    scenarios: tuple[str, ...]
    reason: str
    match: str | None = None
    """A pattern of the peer's error; None where the peer answers, but with other rows."""
    versions: tuple[int, ...] = ALL_VERSIONS


class Peer(Protocol):
    """Somebody else who reads tables."""

    @property
    def version(self) -> str:
        """The release that is running."""

    def read(self, table: Table, read: Read) -> Any:
        """The rows as an Arrow table; variants as JSON texts, shapes as WKB."""

    def matching(self, table: Table, wheres: Sequence[str]) -> list[list[int]]:
        """The ids of the rows that each of some predicates is true for."""


@dataclass(frozen=True)
class Declaration:
    """What a peer is called, and what it cannot do; all else it must do."""

    name: str
    title: str
    run_as: str
    unread: Inability
    """Whole versions that it does not read; shown by one scenario."""
    inabilities: tuple[Inability, ...]

    def inability(self, scenario: str, version: int) -> Inability | None:
        """Why a cell is not supported; None if it must be green."""
        if version in self.unread.versions:
            return self.unread
        found = (each for each in self.inabilities if scenario in each.scenarios and version in each.versions)
        return next(found, None)


def ours(table: Table, read: Read) -> Any:
    """What we read, in the form of `Peer.read`."""
    where = AlwaysTrue() if read.where is None else read.where
    scan = table.scan(where, selected_fields=read.columns, snapshot_id=read.snapshot_id, ref=read.ref)
    found = scan.to_arrow()
    for name in columns_of(table, VariantType):
        found = found.set_column(found.schema.names.index(name), name, _json_texts(found[name]))
    for name in columns_of(table, GeometryType, GeographyType):
        found = found.set_column(found.schema.names.index(name), name, _bytes(found[name]))
    return found


def columns_of(table: Table, *kinds: type) -> list[str]:
    """The columns of some types."""
    return [each.name for each in table.schema().fields if isinstance(each.field_type, kinds)]


def _json_texts(column: Any) -> Any:
    rows = [None if each is None else to_json(Variant(each["metadata"], each["value"])) for each in column.to_pylist()]
    return canonical_json(pa.array(rows, pa.string()))


def canonical_json(column: Any) -> Any:
    """JSON texts in one form, as the order of names and the form of numbers is free."""
    rows = [None if text is None else json.dumps(json.loads(text), sort_keys=True) for text in column.to_pylist()]
    return pa.array(rows, pa.string())


def _bytes(column: Any) -> Any:
    storage = column.type.storage_type if isinstance(column.type, pa.BaseExtensionType) else column.type
    return column.cast(storage)


def selected(table: Table, read: Read, variant: str, shape: str) -> str:
    """The columns in SQL; variants and shapes by the functions that show them."""
    variants, shapes = columns_of(table, VariantType), columns_of(table, GeometryType, GeographyType)
    if not (variants or shapes) or read.columns != ("*",):
        return ", ".join(read.columns)
    forms = dict.fromkeys(variants, variant) | dict.fromkeys(shapes, shape)
    names = [each.name for each in table.schema().fields]
    return ", ".join(f"{forms[name].format(name)} AS {name}" if name in forms else name for name in names)


def _with_json(table: Table, found: Any) -> Any:
    for name in columns_of(table, VariantType):
        found = found.set_column(found.schema.names.index(name), name, canonical_json(found[name]))
    return found


class SqlPeer(ABC):
    """What peers with SQL share."""

    variant = "to_json({})"
    shape = "st_asbinary({})"

    def read(self, table: Table, read: Read) -> Any:
        """By its SQL."""
        columns = selected(table, read, self.variant, self.shape)
        return _with_json(table, self.run(f"SELECT {columns} FROM {self.source(table, read)}", read))

    def matching(self, table: Table, wheres: Sequence[str]) -> list[list[int]]:
        """In one statement."""
        source = self.source(table, Read(()))
        parts = [f"SELECT {i} AS which, id FROM {source} WHERE {where}" for i, where in enumerate(wheres)]
        found = self.run(" UNION ALL ".join(parts), Read(())).to_pylist()
        return [sorted(each["id"] for each in found if each["which"] == i) for i in range(len(wheres))]

    @abstractmethod
    def source(self, table: Table, read: Read) -> str:
        """What its SQL calls a table at a snapshot."""

    @abstractmethod
    def run(self, text: str, read: Read) -> Any:
        """The rows of a statement."""


class JavaIceberg(SqlPeer):
    """Java Iceberg on Spark, through the catalog that we share."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self.version = f"{lake.java.installation.iceberg_version}, on PySpark {lake.java.version}"

    def source(self, table: Table, read: Read) -> str:
        """By name."""
        return f"{self._lake.their_name(table)}{travel_clause(read.snapshot_id, read.ref)}"

    def run(self, text: str, read: Read) -> Any:
        """In the other process."""
        return self._lake.java.sql(text, **({"spark.sql.geospatial.enabled": "true"} if "st_as" in text else {}))


class PyIceberg:
    """PyIceberg, from the metadata file."""

    version = version_of("pyiceberg")

    def read(self, table: Table, read: Read) -> Any:
        """By its scan."""
        found = StaticTable.from_metadata(table.metadata_location)
        named = None if read.ref is None else found.snapshot_by_name(read.ref)
        snapshot_id = read.snapshot_id if named is None else named.snapshot_id
        return _with_json(table, found.scan(selected_fields=read.columns, snapshot_id=snapshot_id).to_arrow())

    def matching(self, table: Table, wheres: Sequence[str]) -> list[list[int]]:
        """One scan for each; days are texts in its predicates."""
        found = StaticTable.from_metadata(table.metadata_location)
        scans = [found.scan(where.replace("DATE ", ""), selected_fields=("id",)) for where in wheres]
        return [sorted(scan.to_arrow()["id"].to_pylist()) for scan in scans]


class DuckDB(SqlPeer):
    """DuckDB with its extension, from the metadata file."""

    version = version_of("duckdb")
    variant = "CASE WHEN {0} IS NULL THEN NULL ELSE CAST({0} AS JSON) END"
    shape = "ST_AsWKB({})"

    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        for package in (duckdb_extension_avro, duckdb_extension_iceberg):
            [extension] = Path(str(package.__file__)).parent.rglob("*.duckdb_extension")
            self._connection.execute(f"LOAD '{extension}'")
        self._connection.execute("SET TimeZone = 'UTC'")

    def source(self, table: Table, read: Read) -> str:
        """By the place of the metadata file."""
        place = str(table.metadata_location).removeprefix("file://")
        options = "" if read.snapshot_id is None else f", snapshot_from_id => {read.snapshot_id}"
        if read.ref is not None:
            options += f", {REF_OPTION} => '{read.ref}'"
        if ".gz." in place:
            options += ", metadata_compression_codec => 'gzip'"
        return f"iceberg_scan('{place}'{options})"

    def run(self, text: str, read: Read) -> Any:
        """In this process."""
        return self._connection.execute(text).to_arrow_table()


class ClickHouse(SqlPeer):
    """ClickHouse as chdb, from the folder of the table and the name of the metadata file."""

    variant = "toJSONString({})"
    shape = "{}"

    def __init__(self, peer: ClickHousePeer) -> None:
        self._peer = peer
        self.version = peer.version

    def source(self, table: Table, read: Read) -> str:
        """By the folder of the table."""
        folder = str(table.location()).removeprefix("file://")
        place = str(table.metadata_location).removeprefix(f"{table.location()}/")
        ref = "" if read.ref is None else f", iceberg_{REF_OPTION} = '{read.ref}'"
        return f"icebergLocal('{folder}', SETTINGS iceberg_metadata_file_path = '{place}'{ref})"

    def run(self, text: str, read: Read) -> Any:
        """In the other process."""
        return self._peer.sql(
            text, **({} if read.snapshot_id is None else {"iceberg_snapshot_id": str(read.snapshot_id)})
        )


RELATIVE = tuple(each for each in ALL_VERSIONS if allows(each, Feature.RELATIVE_PATHS))
SAMPLE = "evolved_partitions"
"""The scenario that shows that a whole version is not read."""

JAVA = Declaration(
    "java",
    "Java Iceberg",
    "another process, SQL only; through its JDBC catalog on the SQLite database of our SQL catalog, and its Hadoop catalog",
    Inability((), "Java does not resolve relative paths, which v4 has", "Failed to open input stream", RELATIVE),
    (
        Inability(("times",), "Spark has no such type in Java's runtime", "does not support time"),
        Inability(("nanoseconds",), "Spark has no such type", "unsupported type to Spark"),
    ),
)
PYICEBERG = Declaration(
    "pyiceberg",
    "PyIceberg",
    "the process of the tests, from the metadata file",
    Inability((), "PyIceberg knows v1 to v3", "does not match any of the expected tags", RELATIVE),
    (
        Inability(("nested",), "null lists of structs are read as empty lists: apache/iceberg-python issue 3833"),
        Inability(
            ("geometries", "geographies"),
            "its pattern wants quotes in `geometry(C)`, the spec has none: apache/iceberg-python issue 1820 (the types)",
            "Could not parse",
        ),
        Inability(
            ("variants", "variant_nulls", "shredded_variants"),
            "no variants: apache/iceberg-python issue 1818",
            "'variant'",
        ),
        Inability(("equality_deletes",), "no equality deletes: apache/iceberg issue 6568", "equality deletes"),
        Inability(("row_lineage",), "no metadata columns: apache/iceberg-python issue 1818", "_row_id"),
        Inability(("avro_files",), "no Avro data files", "FileFormat.AVRO"),
    ),
)
DUCKDB = Declaration(
    "duckdb",
    "DuckDB",
    "the process of the tests, with its iceberg and avro extensions, from the metadata file",
    Inability((), "DuckDB does not resolve relative paths, which v4 has", 'Cannot open file "metadata/snap', RELATIVE),
    (
        Inability(("nanoseconds",), "no `timestamptz_ns`: duckdb/duckdb-iceberg issue 1019", "timestamptz_ns"),
        Inability(("geographies",), "no geographies", "Geography support"),
        Inability(("unknown",), "no such type", "Unrecognized primitive type: unknown"),
        Inability(("variant_nulls",), "in DuckDB a variant null is NULL"),
        Inability(("branches_and_tags",), "`iceberg_scan` takes no name of a ref", "Invalid named parameter"),
        Inability(("avro_files", "orc_files"), "Parquet data files only", "only supports 'parquet'"),
    ),
)
CLICKHOUSE = Declaration(
    "clickhouse",
    "ClickHouse",
    "another process with chdb, by `icebergLocal`",
    Inability((), "ClickHouse does not resolve relative paths, which v4 has", "FILE_DOESNT_EXIST", RELATIVE),
    (
        Inability(("nested",), "ClickHouse has no null lists, maps and structs"),
        Inability(("times",), "times are seconds: ClickHouse/ClickHouse issue 88063"),
        Inability(("geometries", "geographies"), "off by default: `allow_geo_types_in_iceberg`", "geometry/geography"),
        Inability(
            ("unknown", "variants", "variant_nulls", "shredded_variants"), "no such type", "Unknown Iceberg type"
        ),
        Inability(("uuid_partitions",), "UUIDs from partitions: ClickHouse/ClickHouse issue 76977", "(?i)uuid|decode"),
        Inability(("defaults", "nested_defaults"), "defaults are not filled in"),
        Inability(
            ("deletion_vectors", "upgraded", "row_lineage", "equality_deletes", "spark_native"),
            "no deletion vectors in this release: ClickHouse/ClickHouse issue 107502",
            "Position deletes are supported only for parquet",
            tuple(each for each in ALL_VERSIONS if allows(each, Feature.DELETION_VECTORS)),
        ),
        Inability(
            ("branches_and_tags",),
            "`icebergLocal` takes no name of a ref",
            "UNKNOWN_SETTING|[Uu]nknown setting|neither a builtin setting",
        ),
    ),
)
PYICEBERG_WRITES = (1, 2)
"""The format versions that PyIceberg writes; v3 is apache/iceberg-python issue 1551."""
PEERS = {each.name: each for each in (JAVA, PYICEBERG, DUCKDB, CLICKHOUSE)}


def cells() -> list[tuple[str, str, int]]:
    """Every peer with every scenario in every version that has it; one scenario for versions that it does not read."""
    return [
        (peer.name, scenario.name, version)
        for peer in PEERS.values()
        for scenario in SCENARIOS.values()
        for version in scenario.versions()
        if version not in peer.unread.versions or scenario.name == SAMPLE
    ]
