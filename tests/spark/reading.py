"""What tests of reading share: tables on disk, equality deletes, rows in a form that can be compared, and pruning counts."""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from icefloe.catalog import Catalog, load_catalog
from icefloe.data import data_file_of
from icefloe.formats.equality_deletes import equality_delete_writer
from icefloe.manifests import FileContent
from icefloe.schema import schema_to_arrow, select_ids
from icefloe.spark.session import Session
from icefloe.table import Table
from tests.spark.sessions import settings

ALL_METADATA = ("_file", "_pos", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")
ENGINES = ("native", "arrow")


def new_catalog(folder: Any) -> Catalog:
    """A catalog whose tables are files in a folder."""
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{folder}/{uuid.uuid4()}.db", warehouse=f"{folder}/ware house%20"
    )
    catalog.create_namespace("db")
    return catalog


def delete_equal(table: Table, keys: Mapping[str, Sequence[Any]], of: Any = None) -> None:
    """Delete the rows that equal these keys: of one data file's partition, or, by an unpartitioned spec, everywhere."""
    schema = table.schema()
    ids = tuple(schema.find_field(name).field_id for name in keys)
    location = f"{table.location()}/data/{uuid.uuid4()}-deletes.parquet"
    with table.storage.open_output(location) as sink:
        writer = equality_delete_writer(sink, schema, ids, table.format_version, "parquet")
        columns = select_ids(schema, ids)
        writer.write(
            pa.table({each.name: list(keys[each.name]) for each in columns.fields}, schema_to_arrow(writer.schema))
        )
        done = writer.close()
    file = data_file_of(
        done,
        location,
        "parquet",
        content=FileContent.EQUALITY_DELETES,
        equality_ids=ids,
        spec_id=table.metadata.default_spec_id if of is None else of.spec_id,
        partition=() if of is None else of.partition,
    )
    table.update_snapshot().row_delta(None, deletes=[file])


def plain_rows(table: Table, names: Sequence[str] = ("*",), **which: Any) -> list[str]:
    """The rows that plain Python reads, as texts in order."""
    return sorted(_text(row) for row in table.scan(selected_fields=names, **which).to_arrow().to_pylist())


def spark_rows(ice: Session, table: Table, engine: str, names: Sequence[str] = ("*",), **which: Any) -> list[str]:
    """The rows that Spark reads, as texts in order."""
    frame = ice.table(table.name(), selected_fields=names, options={"read.engine": engine}, **which)
    return sorted(_text(row.asDict(recursive=True)) for row in frame.collect())


def planned(ice: Session, frame: Any) -> Any:
    """The counts of the plan that Spark makes for a frame; no job runs."""
    before = ice.reports[-1:]
    # No code is compiled for what is not run.
    with settings(ice.spark, {"spark.sql.codegen.wholeStage": "false"}):
        frame._jdf.queryExecution().toRdd().getNumPartitions()
    [report] = ice.reports[-1:]
    assert before != (report,), "it was planned before"
    return report.counts


def _text(row: Any) -> str:
    return repr(_plain(row))


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list():
            if value and isinstance(value[0], tuple):
                return {_plain(key): _plain(each) for key, each in value}
            return [_plain(each) for each in value]
        case dt.datetime():
            return value.replace(tzinfo=None)
        case uuid.UUID():
            return str(value)
        case bytearray():
            return bytes(value)
        case float():
            return str(value)
        case _:
            return value
