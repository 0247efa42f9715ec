"""What Spark is told of files: constants of every type, which files predicates on them keep, and by how few calls."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from icefloe.commit import Planned
from icefloe.manifests import DataFile
from icefloe.spark.connect import connect
from icefloe.spark.directories import constant_rows, unsafe_row
from icefloe.spark.gateway import Gateway
from icefloe.spark.jvm import door
from icefloe.spark.session import Session
from icefloe.table import Table
from tests.spark.reading import new_catalog
from tests.spark.sessions import settings as session_settings

KINDS: dict[str, Any] = {
    "bigint": st.integers(-(1 << 63), (1 << 63) - 1),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "boolean": st.booleans(),
    "double": st.floats(allow_nan=False),
    "float": st.floats(allow_nan=False, width=32),
    "string": st.text(st.characters(exclude_categories=["Cs"])),
    "binary": st.binary(),
    "decimal(9, 2)": st.decimals(-9_999_999, 9_999_999, places=2),
    "decimal(38, 2)": st.integers(1 - 10**38, 10**38 - 1).map(lambda each: Decimal(f"{each}e-2")),
}


@given(st.lists(st.tuples(*(st.none() | each for each in KINDS.values())), min_size=1, max_size=20))
@settings(max_examples=8)
def test_constants_have_the_form_of_sparks_own(spark: Any, rows: list[tuple[Any, ...]]) -> None:
    """Of every type, of more than a word's bits of columns."""
    many = 8
    schema = ", ".join(f"c{place} {kind}" for place, kind in enumerate([*KINDS] * many))
    rows = [row * many for row in rows]
    frame = spark.createDataFrame(rows, schema)
    kinds = [each.dataType for each in frame.schema]
    theirs = [bytes(row.getBytes()) for row in frame._jdf.queryExecution().executedPlan().executeCollect()]
    assert [unsafe_row(kinds, row) for row in rows] == theirs
    ours = constant_rows(Gateway(spark), kinds, rows)
    assert [bytes(row.getBytes()) for row in ours] == theirs


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session on tables of its own."""
    with connect(new_catalog(tmp_path_factory.mktemp("tables")), spark=spark) as session:
        yield session


def new_table(ice: Session, name: str) -> Table:
    return ice.catalog.create_table(
        ("db", name), "id long, p int", partition_spec=["p"], properties={"format-version": "3"}
    )


@contextmanager
def counted_calls(spark: Any) -> Iterator[list[str]]:
    """All that Python asks of the JVM; what it lets go of is told there too, at any time, and does not count."""
    client = spark.sparkContext._gateway._gateway_client
    real, sent = client.send_command, []

    def send_command(command: str, *arguments: Any, **settings: Any) -> Any:
        if not command.startswith("m\n"):
            sent.append(command)
        return real(command, *arguments, **settings)

    client.send_command = send_command
    try:
        yield sent
    finally:
        del client.send_command


def test_calls_do_not_grow_with_files(ice: Session) -> None:
    """Files that have deletes, and so constants of their own; none of them is there, for nothing is read."""
    counts = {}
    for count in (20, 400):
        table = new_table(ice, f"many_{count}")
        table.append(pa.table({"id": [1], "p": pa.array([7], pa.int32())}))
        [file] = [task.file for task in table.scan().plan_files()]
        more = [replace(file, file_path=f"{file.file_path}-{each}", first_row_id=None) for each in range(count)]
        table.update_snapshot().fast_append(more)
        vectors = {each.file_path: np.array([0]) for each in more}
        table.update_snapshot().row_delta(Planned.on(table.metadata), vectors=vectors)
        for which in ("true", "_partition.p = 7 and _file like '%-1%' and _file is not null"):
            frame = ice.table(table.name(), selected_fields=("*", "_file", "_partition")).filter(which)
            with counted_calls(ice.spark) as sent:
                assert frame._jdf.queryExecution().toRdd().getNumPartitions() > 0
            counts[count, which] = len(sent)
        frame = ice.table(table.name())
        with counted_calls(ice.spark) as sent:
            assert len(frame._jdf.inputFiles()) == count + 1
        counts[count, "inputFiles"] = len(sent)
    for (count, which), number in counts.items():
        assert number <= counts[20, which] + 5, (count, which, counts)


def test_predicates_on_constants_choose_files(ice: Session) -> None:
    table = new_table(ice, "chosen")
    for start in range(0, 30, 10):
        table.append(pa.table({"id": range(start, start + 10), "p": pa.array([start or None] * 10, pa.int32())}))
    table.delete("id in (5, 15)")
    paths = {task.partition[0]: task.file.file_path for task in table.scan().plan_files()}
    frame = ice.table(table.name(), selected_fields=("*", "_file", "_partition", "_spec_id"))
    for text, ids in {
        "_partition.p = 10": {*range(10, 20)} - {15},
        "_partition.p is null": {*range(10)} - {5},
        "_partition.p is not null": {*range(10, 30)} - {15},
        f"_file = '{paths[20]}'": {*range(20, 30)},
        "_file is null or _spec_id = 1": set(),
        "_partition.p > 10 or _partition.p is null and id > 3": {*range(20, 30), *range(4, 10)} - {5},
    }.items():
        found = frame.filter(text)
        assert {row["id"] for row in found.collect()} == ids, text
    assert len(frame.filter("_partition.p = 10").inputFiles()) == 3


@pytest.mark.parametrize("java", ["true", "false"])
def test_a_query_that_asks_again_is_told_what_was_made_before(ice: Session, java: str) -> None:
    """With Java classes of ours nothing is asked while a query is planned, and without them what is made is kept."""
    table = new_table(ice, f"again_{java}")
    table.append(pa.table({"id": range(100), "p": pa.array([each % 10 for each in range(100)], pa.int32())}))
    table.delete("id in (5, 15)")
    with session_settings(ice.spark, {door.ENABLED: java}):
        frame = ice.table(table.name())
    expected = {*range(100)} - {5, 15}
    calls = []
    for which in (lambda _: True, lambda each: each > 50, lambda each: each > 50, lambda _: True):
        asked = frame.filter("id > 50") if not which(0) else frame.select("*")
        with counted_calls(ice.spark) as sent:
            assert {row["id"] for row in asked.collect()} == set(filter(which, expected))
        calls.append(len(sent))
    if java == "true":
        assert max(calls) <= 8, calls
    else:
        assert calls[2] <= calls[1] - 10, calls


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_pipes_and_devices_are_refused_before_sparks_reader_waits_for_them(
    ice: Session, kind: str, tmp_path: Path
) -> None:
    table = new_table(ice, f"special_{kind}")
    table.append(pa.table({"id": [1], "p": pa.array([1], pa.int32())}))
    place = tmp_path / "x.parquet"
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero")
    table.update_snapshot().fast_append([DataFile(f"file://{place}", "parquet", 1, 1000, partition=(2,))])
    frame = ice.table(table.name())
    assert [tuple(row) for row in frame.filter("p = 1").collect()] == [(1, 1)]
    with pytest.raises(Exception, match="pipe, socket or device"):
        frame.collect()
