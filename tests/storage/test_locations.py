"""A location is a literal string; equality looks through the spellings that name one file, and through no others."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidLocationError
from icefloe.metadata import relativize, resolve_location
from icefloe.storage import absolute_location, parse_location, same_location
from icefloe.storage.locations import normalize_location


@pytest.mark.parametrize(
    ("text", "scheme", "authority", "path"),
    [
        ("/a/b", "file", "", "/a/b"),
        ("file:/a/b", "file", "", "/a/b"),
        ("file:///a/b", "file", "", "/a/b"),
        ("file://localhost/a/b", "file", "", "/a/b"),
        ("FILE:///a//b/./c/../d/", "file", "", "/a/b/d"),
        ("file:///a%20b#c?d", "file", "", "/a%20b#c?d"),
        ("s3://bucket/a/b", "s3", "bucket", "/a/b"),
        ("s3a://bucket/a%2Fb c", "s3", "bucket", "/a%2Fb c"),
        ("s3n://bucket/a?x#y", "s3", "bucket", "/a?x#y"),
        ("s3://bucket/db/table//data/0.parquet", "s3", "bucket", "/db/table//data/0.parquet"),
        ("s3://bucket", "s3", "bucket", "/"),
        ("gs://bucket/a", "gs", "bucket", "/a"),
        ("gcs://bucket/a", "gs", "bucket", "/a"),
        ("abfss://c@acc.dfs.core.windows.net/a", "abfs", "c@acc.dfs.core.windows.net", "/a"),
        ("wasbs://c@ACC.blob.core.windows.net/a", "abfs", "c@acc.dfs.core.windows.net", "/a"),
        ("abfs://container/a", "abfs", "container", "/a"),
        ("hdfs://NameNode:8020/a//b", "hdfs", "namenode:8020", "/a/b"),
        ("hdfs:///a", "hdfs", "", "/a"),
        ("hdfs:/a", "hdfs", "", "/a"),
        ("memory://name/a//b", "memory", "name", "/a//b"),
        ("memory:/a", "memory", "", "/a"),
    ],
)
def test_taking_apart(text: str, scheme: str, authority: str, path: str) -> None:
    location = parse_location(text)
    assert (location.scheme, location.authority, location.path) == (scheme, authority, path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("data/0.parquet", "relative"),
        ("k=a:b/x", "relative"),
        ("./x", "relative"),
        ("file:x", "relative path"),
        ("file://host/x", "host"),
        ("hdfs:x", "relative path"),
        ("hdfs://user:password@nn/x", "names a user; .*`hdfs.user`"),
        ("hdfs://user@nn:8020/x", "names a user"),
        ("memory://user:password@lake/x", "names a user; memory://name/path is expected"),
        ("memory://user@lake/x", "names a user"),
        ("s3:/bucket/x", "bucket"),
        ("s3:///x", "bucket"),
        ("s3://user:password@bucket/x", "bucket"),
        ("abfss://acc.dfs.core.windows.net/x", "container"),
        ("abfss:///x", "container"),
        ("abfss://@host/x", "container"),
        ("ftp://host/x", "unknown scheme 'ftp'; known: file:, memory:, s3:"),
        ("c:/x", "unknown scheme"),
        ("/a\0b", "NUL"),
    ],
)
def test_what_is_not_a_location_is_told(text: str, problem: str) -> None:
    with pytest.raises(InvalidLocationError, match=problem):
        parse_location(text)


@pytest.mark.parametrize("value", [None, 3, b"/a", ["/a"], {}])
def test_what_is_not_a_text_is_told(value: object) -> None:
    with pytest.raises(InvalidLocationError, match="not a string"):
        parse_location(value)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize(
    ("left", "right", "is_same"),
    [
        ("/a/b", "file:///a/b", True),
        ("file:/a/b", "file:///a//b", True),
        ("s3://b/k", "s3a://b/k", True),
        ("s3n://b/k", "s3a://b/k", True),
        ("gs://b/k", "gcs://b/k", True),
        ("abfs://c@a.dfs.core.windows.net/k", "wasbs://c@a.blob.core.windows.net/k", True),
        ("s3://b/a//k", "s3://b/a/k", False),
        ("s3://b/a%20k", "s3://b/a k", False),
        ("s3://b/K", "s3://b/k", False),
        ("file:///é", "file:///e\u0301", False),
        ("s3://b/k", "s3://other/k", False),
        ("s3://b/k", "gs://b/k", False),
        ("s3://b/wh/t", "hdfs://nn/wh/t", False),
        ("hdfs://nn/wh/t", "hdfs://nn:8020/wh/t", False),
        ("hdfs:/wh/t", "/wh/t", False),
        ("abfs://c/k", "abfs://c@a.dfs.core.windows.net/k", False),
    ],
)
def test_comparing(left: str, right: str, is_same: bool) -> None:
    assert same_location(left, right) is is_same
    assert same_location(right, left) is is_same
    assert (normalize_location(left) == normalize_location(right)) is is_same


keys = st.text(st.characters(exclude_characters="\0"), max_size=30)


@given(st.sampled_from(["s3://b", "s3a://b", "gs://b", "memory://m", "abfss://c@a.dfs.core.windows.net"]), keys)
def test_a_key_is_kept_to_the_letter(root: str, key: str) -> None:
    location = parse_location(f"{root}/{key}")
    assert location.key == key
    assert str(location) == f"{root}/{key}"
    normal = normalize_location(str(location))
    assert same_location(normal, str(location))
    assert normalize_location(normal) == normal


@given(keys)
def test_a_local_path_has_one_spelling(path: str) -> None:
    normal = normalize_location(f"/{path}")
    assert normalize_location(normal) == normal
    assert same_location(f"/{path}", f"file:/{path}") or path.startswith("/")
    assert same_location(f"/{path}", f"file:///{path}")


def test_a_users_path_becomes_fully_qualified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert absolute_location("ware house/x") == f"file://{tmp_path}/ware house/x"
    assert absolute_location(Path("w")) == f"file://{tmp_path}/w"
    assert absolute_location("~/w") == f"file://{tmp_path}/w"
    assert absolute_location("/w//x/") == "file:///w/x"
    assert absolute_location("s3a://b/w/") == "s3a://b/w/"
    for wrong in ("", "ftp://x/y"):
        with pytest.raises(InvalidLocationError):
            absolute_location(wrong)


def test_relative_locations_of_v4_are_resolved_into_usable_ones() -> None:
    resolved = resolve_location("s3://bucket/db/table/", "data/0.parquet")
    assert parse_location(resolved).key == "db/table//data/0.parquet"
    assert relativize("s3://bucket/db/table/", resolved) == "data/0.parquet"
