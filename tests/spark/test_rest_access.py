"""Spark on tables of a REST catalog that signs requests or vends credentials: executors ask the server on their own."""

from pathlib import Path
from typing import Any

import pytest

from icefloe.spark.connect import connect
from tests.server.access.test_access import ROLE
from tests.server.access.test_over_http import client_of, lakehouse
from tests.storage.servers import S3Server


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["signed", "vended"])
def test_executors_ask_the_server(spark: Any, s3_server: S3Server, tmp_path: Path, mode: str) -> None:
    section = {"mode": mode, "role-arn": ROLE, "sts-endpoint": s3_server.endpoint}
    s3_server.checks_signatures = mode == "signed"
    try:
        with lakehouse(s3_server, tmp_path, section) as (server, _):
            catalog = client_of(server, "vended-credentials,remote-signing")
            catalog.create_namespace("db")
            ice = connect(catalog, spark=spark)
            rows = ice.spark.range(0, 400, 1, 4).selectExpr("id", "concat('v', id) v")
            writer = ice.write(rows).to("db.t").table_property("format-version", 3)
            writer.table_property("write.delete.mode", "merge-on-read").create()
            ice.delete("db.t", "id < 100")
            assert ice.table("db.t", row_filter="id < 200").count() == 100
            ice.sql("CREATE TABLE db.copy AS SELECT * FROM db.t WHERE id >= 300")
            assert ice.table("db.copy").count() == 100
            catalog.close()
    finally:
        s3_server.checks_signatures = False
