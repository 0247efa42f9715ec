"""The normal form of paths: which spellings are one file, and that columns and single paths agree on it."""

import random

import pyarrow as pa
import pytest

from icefloe.storage import identity, is_same_file, possible_identity
from icefloe.storage.identities import identities

ONE_FILE = [
    ("/w/t/a", "file:/w/t/a", "file:///w/t/a", "FILE:///w/t/a", "file://localhost/w/t/a", "/w//t/a", "/w/./t/x/../a"),
    ("s3://b/t/a", "s3a://b/t/a", "s3n://b/t/a", "S3://b/t/a"),
    ("gs://b/t/a", "gcs://b/t/a"),
    (
        "abfs://c@acct.dfs.core.windows.net/a",
        "abfss://c@ACCT.dfs.core.windows.net/a",
        "wasb://c@acct.blob.core.windows.net/a",
        "wasbs://c@acct.blob.core.windows.net/a",
    ),
    ("hdfs://nn:8020/t/a", "hdfs://NN:8020/t//a", "hdfs://nn:8020/t/x/../a"),
]

DIFFERENT_FILES = [
    "s3://b/t//a",
    "s3://b/t/a",
    "s3://b/t/./a",
    "s3://b/x/../t/a",
    "s3://B/t/a",
    "s3://b/t/a%20",
    "gs://b/t/a",
    "/t/a",
    "/T/a",
    "/t/a%20b",
    "/t/a b",
    "memory://x/t/a",
    "memory://x/t//a",
    "hdfs://nn/t/a",
    "hdfs://other/t/a",
    "abfs://c@one.dfs.core.windows.net/t/a",
    "abfs://d@one.dfs.core.windows.net/t/a",
    "oss://b/t/a",
    "t/a",
]


@pytest.mark.parametrize("spellings", ONE_FILE, ids=lambda each: each[0])
def test_spellings_of_one_file_are_one(spellings: tuple[str, ...]) -> None:
    assert {identity(each) for each in spellings} == {identity(spellings[0])}
    assert len(set(identities(pa.array([*spellings] * 3)).to_pylist())) == 1
    assert all(is_same_file(spellings[0], each) for each in spellings)


def test_different_files_stay_different() -> None:
    assert len({identity(each) for each in DIFFERENT_FILES}) == len(DIFFERENT_FILES)
    assert len(set(identities(pa.array(DIFFERENT_FILES)).to_pylist())) == len(DIFFERENT_FILES)
    assert not is_same_file(None, None)


def test_what_may_be_one_file_is_told_where_files_are_deleted() -> None:
    may_be_one = ("hdfs:/t/a", "hdfs:///t//a", "hdfs://nn/t/a", "hdfs://nn:8020/t/a", "hdfs://service/t/a")
    assert len({identity(each) for each in may_be_one}) == 4
    assert len({possible_identity(each) for each in may_be_one}) == 1
    others = [each for each in DIFFERENT_FILES if not each.startswith("hdfs:")]
    assert [possible_identity(each) for each in others] == [identity(each) for each in others]
    assert possible_identity("hdfs://nn/t/b") != possible_identity("hdfs:/t/a") != possible_identity("/t/a")


def test_a_column_that_is_spelled_normally_is_not_copied() -> None:
    paths = pa.array([f"file:///w/t/data/{number}.parquet" for number in range(100)])
    assert identities(paths) is paths


ROOTS = ["file://", "file:", "", "file://localhost", "s3://b", "s3a://b", "gcs://b", "hdfs://NN", "hdfs:", "memory:"]
ROOTS += ["abfss://c@a.dfs.core.windows.net", "wasbs://c@A.blob.core.windows.net", "memory://x", "oss://q", "relative"]
PARTS = ["/a", "//a", "/./a", "/../a", "/é", "/.hidden", "/a/"]


def test_columns_say_what_single_paths_say() -> None:
    chance = random.Random(16)
    for _ in range(300):
        roots = chance.sample(ROOTS, chance.choice([1, 1, 2, 3, 12]))
        parts = chance.choice([["/a", "/b"], PARTS])
        paths = [
            chance.choice(roots) + "".join(chance.choices(parts, k=3)) if chance.random() > 0.05 else None
            for _ in range(chance.choice([0, 1, 30]))
        ]
        # A slice of a longer column, whose offsets do not begin at zero.
        column = pa.array(["before/x", *paths, "after"], chance.choice([pa.string(), pa.large_string()]))
        found = identities(column.slice(1, len(paths)))
        assert found.to_pylist() == [None if each is None else identity(each) for each in paths]
