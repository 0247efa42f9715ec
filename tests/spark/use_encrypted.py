"""A program that reads and changes an encrypted table while Spark writes its event log and serves its page; run by test_encryption.

What that page answers and what is logged lies in the folder afterwards, beside the event log.
"""

import logging
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from icefloe.catalog import load_catalog
from icefloe.errors import IcefloeError
from icefloe.spark.connect import connect, local_spark

ASKED = ("environment", "sql?details=true&planDescription=true&length=1000", "jobs", "stages", "allexecutors")


def changed(ice: Any, table: str) -> None:
    """Rows come and go by every kind of statement."""
    ice.sql(f"INSERT INTO {table} SELECT id, concat('name ', id) FROM range(0, 20)")
    ice.sql(f"DELETE FROM {table} WHERE id IN (1, 2)")
    ice.sql(f"UPDATE {table} SET name = 'changed' WHERE id = 5")
    ice.sql(
        f"MERGE INTO {table} t USING (SELECT id, 'merged' AS name FROM range(18, 22)) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    )
    ice.sql(f"CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))").collect()
    rows = ice.sql(f"SELECT id FROM {table} WHERE id > 2 ORDER BY id").collect()
    assert [row.id for row in rows] == [*range(3, 18), 20, 21], rows
    ice.table(table).explain("extended")


def broken(ice: Any, table: str) -> None:
    """A file of which a byte was changed, so that a task fails and says why."""
    (task, *_) = ice.load_table(table).scan().plan_files()
    path = Path(task.file.file_path.removeprefix("file://"))
    data = path.read_bytes()
    path.write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])
    with pytest.raises((IcefloeError, Py4JJavaError, PySparkException), match=path.name):
        ice.table(table).collect()
    path.write_bytes(data)


def main(folder: str) -> None:
    """Use a table in each version, then keep what the page says."""
    logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    catalog = load_catalog(
        "lake",
        type="sql",
        uri=f"sqlite:///{folder}/catalog.db",
        warehouse=f"{folder}/files",
        **{"encryption.kms-type": "file", "encryption.kms-file": f"{folder}/keys.json"},
    )
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.log.level": "INFO",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{folder}/events",
        "spark.eventLog.compress": "false",
        "spark.eventLog.logBlockUpdates.enabled": "true",
    }
    Path(folder, "events").mkdir()
    spark = local_spark(settings)
    ice = connect(catalog, spark=spark)
    for name in ("n.three", "n.four"):
        changed(ice, name)
    broken(ice, "n.three")
    context = spark.sparkContext
    base = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"
    for index, question in enumerate(ASKED):
        with urllib.request.urlopen(f"{base}/{question}") as answer:
            Path(folder, f"answer-{index}").write_bytes(answer.read())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
