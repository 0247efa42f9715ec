"""Tables on an object store that Spark's Hadoop does not know: read and written all the same, by Arrow on the executors."""

from pathlib import Path
from typing import Any

import pytest

from icefloe.catalog import load_catalog
from icefloe.errors import StateError
from icefloe.spark.connect import connect
from icefloe.spark.engine import why_not_written
from tests.storage.servers import S3Server


@pytest.mark.timeout(300)
def test_tables_on_s3_are_written_changed_and_read(spark: Any, s3_server: S3Server, tmp_path: Path) -> None:
    place = f"s3://{s3_server.new_bucket()}/house"
    catalog = load_catalog(
        "store", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=place, **s3_server.properties()
    )
    catalog.create_namespace("db")
    ice = connect(catalog, spark=spark)
    rows = ice.spark.range(0, 40, 1, 2).selectExpr("id", "cast(id % 2 as int) p", "concat('v', id) v")
    writer = ice.write(rows).to("db.t").partitioned_by("p").table_property("format-version", 3)
    writer.table_property("write.delete.mode", "merge-on-read").create()
    table = ice.load_table("db.t")
    assert "no file system for s3" in str(why_not_written(spark, table.metadata))
    assert all(task.file.file_path.startswith(place) for task in table.scan().plan_files())
    ice.delete("db.t", "id < 4")
    found = ice.table("db.t", row_filter="p = 1")
    assert sorted(row["id"] for row in found.collect()) == list(range(5, 40, 2))
    with pytest.raises(StateError, match="knows no file system for s3"):
        ice.table("db.t", options={"read.engine": "native"})
    failing = rows.selectExpr("id", "p", "if(id = 33, raise_error('enough'), v) v")
    with pytest.raises(Exception, match="enough"):
        ice.write(failing).to("db.t").append()
    referenced = {task.file.file_path for task in ice.load_table("db.t").scan().plan_files()}
    held = {info.location for info in table.storage.list_prefix(f"{place}/db/t/data") if "parquet" in info.location}
    assert held == referenced
