"""Paths in metadata and names of metadata files."""

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidLocationError
from icefloe.metadata import (
    MetadataCompression,
    is_absolute,
    metadata_file_name,
    next_metadata_version,
    relativize,
    resolve_location,
    strip_trailing_slash,
    versioned_file_name,
)
from icefloe.metadata.files import parse_metadata_version
from icefloe.metadata.locations import qualify

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"


@pytest.mark.parametrize(
    ("location", "path", "resolved"),
    [
        ("s3://bucket/db/table", "data/00000-0.parquet", "s3://bucket/db/table/data/00000-0.parquet"),
        ("s3://bucket/db/table", "hdfs://wh/db/table/data/0.parquet", "hdfs://wh/db/table/data/0.parquet"),
        ("s3://bucket/db/table/", "data/00000-0.parquet", "s3://bucket/db/table//data/00000-0.parquet"),
        ("s3://bucket/db/table", "/data/00000-0.parquet", "s3://bucket/db/table//data/00000-0.parquet"),
        ("s3://bucket/db/table", "../x", "s3://bucket/db/table/../x"),
        ("s3://bucket/db/table", "file:/x", "file:/x"),
    ],
)
def test_the_spec_examples_of_resolution(location: str, path: str, resolved: str) -> None:
    assert resolve_location(location, path) == resolved


@pytest.mark.parametrize(
    ("location", "path", "stored"),
    [
        ("s3://bucket/db/table", "s3://bucket/db/table/data/0.parquet", "data/0.parquet"),
        ("s3://bucket/db/table", "s3://bucket/db/table2/data/0.parquet", "s3://bucket/db/table2/data/0.parquet"),
        ("s3://bucket/db/table", "s3://bucket/db/table", "s3://bucket/db/table"),
        ("s3://bucket/db/table", "s3://bucket/db/table/", "s3://bucket/db/table/"),
        ("s3://bucket/db/table", "s3://bucket/db/table//data/0", "/data/0"),
        ("s3://bucket/db/table/", "s3://bucket/db/table/data/0", "s3://bucket/db/table/data/0"),
        ("s3://bucket/db/table", "s3://bucket/db/table/a:b", "s3://bucket/db/table/a:b"),
        ("s3://bucket/db/table", "gs://bucket/db/table/a", "gs://bucket/db/table/a"),
        (None, "s3://bucket/a", "s3://bucket/a"),
    ],
)
def test_relativization(location: str | None, path: str, stored: str) -> None:
    assert relativize(location, path) == stored


@given(st.text("ab:/", max_size=6), st.text("ab:/.", max_size=8), st.booleans())
def test_what_is_stored_stands_for_what_was_meant(base: str, rest: str, inside: bool) -> None:
    location = f"s3://{base}"
    path = f"{location}/{rest}" if inside else f"s3://{rest}"
    assert resolve_location(location, relativize(location, path)) == path


@pytest.mark.parametrize(
    ("path", "absolute"),
    [
        ("s3://b", True),
        ("a+1-.x:y", True),
        ("S3A:x", True),
        ("/a:b", False),
        ("1a:b", False),
        ("", False),
        ("a", False),
    ],
)
def test_a_scheme_makes_a_path_absolute(path: str, absolute: bool) -> None:
    assert is_absolute(path) is absolute


def test_a_relative_path_needs_a_table_location() -> None:
    assert resolve_location(None, "s3://b/x") == "s3://b/x"
    with pytest.raises(InvalidLocationError, match="'data/x'"):
        resolve_location(None, "data/x")


def test_old_paths_without_a_scheme_get_the_table_location_s() -> None:
    assert qualify("hdfs://host:8020/wh/t", "/wh/t/data/0") == "hdfs://host:8020/wh/t/data/0"
    assert qualify("file:///wh/t", "/wh/t/data/0") == "file:///wh/t/data/0"
    assert qualify("file:/wh/t", "/wh/t/data/0") == "file:/wh/t/data/0"
    assert qualify("hdfs://host/wh", "s3://x/y") == "s3://x/y"
    for location, path in (("/wh/t", "/wh/t/data/0"), ("s3://b/t", "data/0")):
        with pytest.raises(InvalidLocationError, match=path):
            qualify(location, path)


@pytest.mark.parametrize(
    ("location", "stripped"),
    [
        ("s3://b/t/", "s3://b/t"),
        ("s3://b/t//", "s3://b/t"),
        ("s3://b", "s3://b"),
        ("file:///", "file:///"),
        ("/", "/"),
        ("/a/", "/a"),
    ],
)
def test_trailing_slashes(location: str, stripped: str) -> None:
    assert strip_trailing_slash(location) == stripped


def test_names_of_metadata_files() -> None:
    assert metadata_file_name(1, UUID) == f"00001-{UUID}.metadata.json"
    assert metadata_file_name(123456, UUID, MetadataCompression.GZIP) == f"123456-{UUID}.gz.metadata.json"
    assert versioned_file_name(7) == "v7.metadata.json"
    assert versioned_file_name(7, MetadataCompression.GZIP) == "v7.gz.metadata.json"


@given(st.integers(0, 10**12), st.uuids().map(str), st.sampled_from(MetadataCompression), st.booleans())
def test_a_name_tells_the_version(version: int, uuid: str, compression: MetadataCompression, file_system: bool) -> None:
    name = versioned_file_name(version, compression) if file_system else metadata_file_name(version, uuid, compression)
    for location in (name, f"s3://bucket/db/5-x/metadata/{name}"):
        assert parse_metadata_version(location) == version
        assert next_metadata_version(location) == version + 1


@pytest.mark.parametrize(
    ("location", "version"),
    [
        (f"s3://b/00003-{UUID}.metadata.json.gz", 3),
        ("s3://b/v3.metadata.json.gz", 3),
        ("s3://b/metadata.json", None),
        (f"s3://b/{UUID}.metadata.json", None),
        ("s3://b/x-00003.metadata.json", None),
        (f"{'9' * 5000}-x.metadata.json", None),
        ("s3://b/3-x.avro", None),
        ("", None),
    ],
    ids=lambda each: str(each)[:30],
)
def test_names_of_others(location: str, version: int | None) -> None:
    assert parse_metadata_version(location) == version


def test_versions_count_from_zero() -> None:
    assert next_metadata_version(None) == 0
    assert next_metadata_version("s3://b/strange.json") == 0
