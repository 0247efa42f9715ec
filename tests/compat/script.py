"""A script for PyIceberg, by its documented calls; it knows nothing of icefloe. Its argument is a folder to work in."""

import datetime as dt
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    Not,
    NotEqualTo,
    NotNull,
    Or,
    StartsWith,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable, Table, TableProperties
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import (
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)

folder = Path(sys.argv[1])
catalog = load_catalog("default", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/w")
other = SqlCatalog("default", uri=f"sqlite:///{folder}/other.db", warehouse=f"file://{folder}/o")
other.create_namespace("docs")
assert other.list_namespaces() == [("docs",)]

# -- namespaces and tables
catalog.create_namespace("docs_example")
catalog.create_namespace_if_not_exists("docs_example")
try:
    catalog.create_namespace("docs_example")
    raise AssertionError
except NamespaceAlreadyExistsError:
    pass
schema = Schema(
    NestedField(field_id=1, name="datetime", field_type=TimestampType(), required=True),
    NestedField(field_id=2, name="symbol", field_type=StringType(), required=True),
    NestedField(field_id=3, name="bid", field_type=FloatType(), required=False),
    NestedField(field_id=4, name="ask", field_type=DoubleType(), required=False),
    NestedField(
        field_id=5,
        name="details",
        field_type=StructType(NestedField(field_id=6, name="created_by", field_type=StringType(), required=False)),
        required=False,
    ),
    NestedField(field_id=7, name="tags", field_type=ListType(element_id=8, element_type=StringType()), required=False),
)
partition_spec = PartitionSpec(
    PartitionField(source_id=1, field_id=1000, transform=DayTransform(), name="datetime_day")
)
sort_order = SortOrder(SortField(source_id=2, transform=IdentityTransform()))
bids = catalog.create_table(
    identifier="docs_example.bids",
    schema=schema,
    location=f"file://{folder}/bids",
    partition_spec=partition_spec,
    sort_order=sort_order,
)
assert isinstance(bids, Table)
try:
    catalog.create_table("docs_example.bids", schema)
    raise AssertionError
except TableAlreadyExistsError:
    pass
assert catalog.create_table_if_not_exists("docs_example.bids", schema).name() == ("docs_example", "bids")
assert catalog.load_table(("docs_example", "bids")).spec().fields[0].name == "datetime_day"
assert catalog.list_tables("docs_example") == [("docs_example", "bids")]
assert catalog.table_exists("docs_example.bids")
try:
    catalog.load_table("docs_example.nothing")
    raise AssertionError
except NoSuchTableError:
    pass
assert issubclass(CommitFailedException, Exception)
with catalog.create_table_transaction(identifier="docs_example.bids2", schema=schema) as txn:
    with txn.update_schema() as update_schema:
        update_schema.add_column(path="new_column", field_type=StringType())
    with txn.update_spec() as update_spec:
        update_spec.add_identity("symbol")
    txn.set_properties(test_a="test_aa", test_b="test_b", test_c="test_c")
assert catalog.load_table("docs_example.bids2").properties["test_a"] == "test_aa"

# -- writing and reading
df = pa.Table.from_pylist(
    [
        {"city": "Amsterdam", "lat": 52.371807, "long": 4.896029},
        {"city": "San Francisco", "lat": 37.773972, "long": -122.431297},
        {"city": "Drachten", "lat": 53.11254, "long": 6.0989},
        {"city": "Paris", "lat": 48.864716, "long": 2.349014},
    ],
)
tbl = catalog.create_table("docs_example.cities", schema=df.schema)
assert tbl.append(df) is None
assert tbl.overwrite(df) is None
more = pa.Table.from_pylist([{"city": "Groningen", "lat": 53.21917, "long": 6.56667}])
tbl.append(df=more)
assert len(tbl.scan().to_arrow()) == 5
assert tbl.delete(delete_filter="city == 'Paris'") is None
assert tbl.scan(row_filter=EqualTo("city", "Paris")).to_arrow().num_rows == 0
tbl.overwrite(
    pa.Table.from_pylist([{"city": "New York", "lat": 40.7128, "long": 74.0060}]),
    overwrite_filter=EqualTo("city", "Drachten"),
)
scan = tbl.scan(row_filter=GreaterThanOrEqual("lat", 50.0), selected_fields=("city", "lat"), limit=100)
assert sorted(scan.to_pandas()["city"]) == ["Amsterdam", "Groningen"]
assert [task.file.file_path for task in scan.plan_files()]
assert scan.to_arrow_batch_reader().read_all().num_rows == 2
con = tbl.scan(row_filter=LessThan("lat", 50.0)).to_duckdb(table_name="far")
assert con.execute("SELECT count(*) FROM far").fetchone() == (2,)
assert tbl.scan(row_filter="lat > 50").to_polars().height == 2
assert tbl.to_polars().collect().height == 4
assert tbl.scan().count() == 4
for predicate in (
    And(GreaterThan("lat", 1.0), NotEqualTo("city", "Paris")),
    Or(In("city", {"New York", "Groningen"}), StartsWith("city", "A")),
    Not(IsNull("city")),
    NotNull("city") & ~LessThan("lat", 0.0),
    AlwaysTrue(),
):
    assert tbl.scan(predicate).to_arrow().num_rows > 0

# -- upsert
people = catalog.create_table(
    "docs_example.people",
    schema=Schema(
        NestedField(1, "city", StringType(), required=True),
        NestedField(2, "inhabitants", IntegerType(), required=True),
        identifier_field_ids=[1],
    ),
)
arrow_schema = pa.schema(
    [pa.field("city", pa.string(), nullable=False), pa.field("inhabitants", pa.int32(), nullable=False)]
)
people.append(
    pa.Table.from_pylist(
        [{"city": "Amsterdam", "inhabitants": 921402}, {"city": "Drachten", "inhabitants": 45019}], schema=arrow_schema
    )
)
upd = people.upsert(
    pa.Table.from_pylist(
        [
            {"city": "Drachten", "inhabitants": 45505},
            {"city": "Berlin", "inhabitants": 3432000},
            {"city": "Amsterdam", "inhabitants": 921402},
        ],
        schema=arrow_schema,
    )
)
assert (upd.rows_updated, upd.rows_inserted) == (1, 1)

# -- files that are there
pq.write_table(df, folder / "part.parquet")
tbl.add_files(file_paths=[f"file://{folder}/part.parquet"], snapshot_properties={"abc": "def"})
assert tbl.current_snapshot().summary["abc"] == "def"

# -- evolution
with bids.update_schema() as update:
    update.add_column("retries", IntegerType(), "Number of retries to place the bid")
    update.add_column(("details", "confirmed_by"), StringType(), "Name of the exchange")
with bids.update_schema() as update:
    update.rename_column("retries", "num_retries")
    update.rename_column(("details", "confirmed_by"), "exchange")
with bids.update_schema() as update:
    update.move_first("symbol")
    update.move_after("bid", "ask")
    update.move_before("bid", "ask")
    update.update_column("bid", field_type=DoubleType(), required=False, doc="Price")
with bids.update_schema(allow_incompatible_changes=True) as update:
    update.delete_column("num_retries")
    update.make_column_optional("symbol")
with bids.update_schema() as update:
    update.union_by_name(
        Schema(NestedField(1, "symbol", StringType(), required=False), NestedField(2, "venue", StringType()))
    )
assert bids.schema().fields[0].name == "symbol"
assert "venue" in [field.name for field in bids.schema().fields]
with bids.update_spec() as update:
    update.add_field("symbol", BucketTransform(16), "bucketed_symbol")
    update.remove_field("datetime_day")
with bids.update_spec() as update:
    update.rename_field("bucketed_symbol", "sharded")
assert "sharded" in [field.name for field in bids.spec().fields]
with bids.update_sort_order() as update:
    update.desc("bid", IdentityTransform(), NullOrder.NULLS_LAST)
assert bids.sort_order().fields[0].direction == SortDirection.DESC

# -- properties, snapshots, metadata tables
with tbl.transaction() as transaction:
    transaction.set_properties(abc="def")
assert tbl.properties["abc"] == "def"
with tbl.transaction() as transaction:
    transaction.remove_properties("abc")
assert "abc" not in tbl.properties
tbl = tbl.transaction().set_properties(abc="def").commit_transaction()
assert TableProperties.WRITE_TARGET_FILE_SIZE_BYTES == "write.target-file-size-bytes"
first = tbl.snapshots()[0].snapshot_id
tbl.manage_snapshots().create_tag(snapshot_id=first, tag_name="start").create_branch(first, "audit").commit()
assert {"main", "start", "audit"} == set(tbl.refs())
tbl.manage_snapshots().remove_tag("start").remove_branch("audit").commit()
for table in (
    tbl.inspect.snapshots(),
    tbl.inspect.partitions(),
    tbl.inspect.entries(),
    tbl.inspect.refs(),
    tbl.inspect.manifests(),
    tbl.inspect.metadata_log_entries(),
    tbl.inspect.history(),
    tbl.inspect.files(),
    tbl.inspect.data_files(),
    tbl.inspect.delete_files(),
    tbl.inspect.all_files(),
    tbl.inspect.all_manifests(),
):
    assert isinstance(table, pa.Table)
tbl.maintenance.expire_snapshots().by_id(first).commit()
assert first not in [each.snapshot_id for each in tbl.refresh().snapshots()]
tbl.maintenance.expire_snapshots().older_than(dt.datetime(2020, 1, 1)).commit()
static = StaticTable.from_metadata(tbl.metadata_location)
assert static.scan().count() == 8
assert catalog.register_table("docs_example.again", tbl.metadata_location).scan().count() == 8
assert catalog.rename_table("docs_example.again", "docs_example.named").name() == ("docs_example", "named")
catalog.drop_table("docs_example.named")
assert catalog.load_namespace_properties("docs_example") is not None
catalog.update_namespace_properties("docs_example", updates={"owner": "ann"}, removals=set())
assert LongType() == LongType()
print("done")  # noqa: T201 - a script
