"""Where the files of a manifest are: relative paths of v4 metadata to locations and back, for whole columns."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.manifests.columns import ManifestColumns

_PATH_COLUMNS = ("file_path", "referenced_data_file")
_ABSOLUTE = r"^[A-Za-z][A-Za-z0-9+.\-]*:"


def resolve_paths(columns: ManifestColumns, table_location: str | None) -> ManifestColumns:
    """The entries with every path a location (spec: Path Resolution); nothing changes without a table location."""
    if table_location is None:
        return columns
    changed = {
        name: _resolved(columns.columns[name], table_location) for name in _PATH_COLUMNS if name in columns.columns
    }
    return columns.with_columns(**changed)


def relativize_paths(columns: ManifestColumns, table_location: str) -> ManifestColumns:
    """The entries with paths under the table location cut short (spec: Path Relativization)."""
    changed = {
        name: _relativized(columns.columns[name], table_location) for name in _PATH_COLUMNS if name in columns.columns
    }
    return columns.with_columns(**changed)


def _resolved(paths: Any, table_location: str) -> Any:
    # Most paths are under the table: looking at their start is much cheaper than looking for a scheme.
    is_plain = pc.starts_with(paths, f"{table_location}/")
    if pc.all(is_plain, min_count=0).as_py():
        return paths
    is_relative = pc.invert(pc.or_(is_plain, pc.match_substring_regex(paths, _ABSOLUTE)))
    joined = pc.binary_join_element_wise(pa.scalar(table_location), paths, "/")
    return pc.if_else(pc.fill_null(is_relative, False), joined, paths)


def _relativized(paths: Any, table_location: str) -> Any:
    prefix = f"{table_location}/"
    rest = pc.utf8_slice_codeunits(paths, len(prefix))
    # What is left must not read as a location of its own.
    is_under = pc.and_(pc.starts_with(paths, prefix), pc.match_substring_regex(paths, _ABSOLUTE))
    is_safe = pc.and_(pc.not_equal(rest, ""), pc.invert(pc.match_substring_regex(rest, _ABSOLUTE)))
    return pc.if_else(pc.fill_null(pc.and_(is_under, is_safe), False), rest, paths)
