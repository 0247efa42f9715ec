"""Engines are plug-ins: found by the data, and not missed where what they need is not installed."""

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from icefloe.errors import NotInstalledError
from icefloe.rows import engine_for, engine_named
from icefloe.rows.engines import ARROW

WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = None
import pyarrow as pa
from icefloe.catalog import load_catalog
from icefloe.rows.engines import ARROW, engine_for, engine_named
from icefloe.errors import NotInstalledError
assert engine_for(object()) is ARROW
catalog = load_catalog("m", type="memory", warehouse="memory://w")
catalog.create_namespace("db")
table = catalog.create_table("db.t", "id bigint")
table.append(pa.table({"id": [1, 2]}))
assert table.scan().count() == 2
try:
    table.scan().to_spark(None)
except NotInstalledError as problem:
    print(problem)
"""


def test_data_in_memory_is_arrows() -> None:
    found: list[Any] = [pa.table({"a": [1]}), pa.record_batch({"a": [1]}), [], iter([]), "text", None]
    assert [engine_for(data) for data in found] == [ARROW] * len(found)


def test_an_engine_that_is_not_there_is_named() -> None:
    with pytest.raises(NotInstalledError, match=r"the engine 'flink' is not installed; .*icefloe\[flink\]"):
        engine_named("flink")


def test_without_spark_all_else_works() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_SPARK], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert "pip install 'icefloe[spark]'" in done.stdout
