"""Which entries a manifest may be written with (spec: Manifest Entry Fields, Data File Fields, Row-level Deletes)."""

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidInputError
from icefloe.manifests.columns import ManifestColumns
from icefloe.manifests.values import EntryStatus, FileContent, ManifestContent
from icefloe.versions import Feature, allows, require

_REQUIRED = ("status", "file_path", "file_format", "record_count", "file_size_in_bytes", "content")
_LEFT_TO_THE_COMMIT = ("snapshot_id", "sequence_number", "file_sequence_number")


def check_entries(columns: ManifestColumns, version: int, content: ManifestContent, snapshot_id: int) -> None:
    """Fail on the first rule that some entry breaks, with its path."""
    if content is ManifestContent.DELETES:
        require(version, Feature.DELETE_FILES, "a manifest of delete files")
    elif _are_new_data_files(columns):
        return
    check = _Check(columns)
    for name in _REQUIRED:
        check.none(pc.is_null(columns.column(name)), f"has no {name}")
    for name in ("record_count", "file_size_in_bytes"):
        check.none(pc.less(columns.column(name), 0), f"has a negative {name}")
    status = columns.column("status")
    check.none(pc.invert(pc.is_in(status, pa.array(list(map(int, EntryStatus)), pa.int32()))), "has an unknown status")
    _check_content(check, content)
    _check_numbers(check, version, snapshot_id)
    _check_deletes(check, version)


def _are_new_data_files(columns: ManifestColumns) -> bool:
    """Whether all entries are new data files that leave their numbers to the commit, as in every append: no rule is broken.

    Seen at a glance, since the rules one by one take longer than all else that is done for a few files.
    """
    length = len(columns)
    if not length or any(columns.column(name).null_count for name in _REQUIRED):
        return False
    status, contents, rows, sizes = (
        columns.column(name).to_numpy() for name in ("status", "content", "record_count", "file_size_in_bytes")
    )
    return (
        bool((status == int(EntryStatus.ADDED)).all() and (contents == int(FileContent.DATA)).all())
        and min(rows.min(), sizes.min()) >= 0
        and all(columns.column(name).null_count == length for name in (*_LEFT_TO_THE_COMMIT, "equality_ids"))
    )


class _Check:
    def __init__(self, columns: ManifestColumns) -> None:
        self.columns = columns
        status = columns.column("status")
        self.is_added = pc.equal(status, int(EntryStatus.ADDED))
        self.is_deleted = pc.equal(status, int(EntryStatus.DELETED))

    def none(self, is_wrong: pa.Array, problem: str) -> None:
        """No entry may be marked."""
        if len(is_wrong) and pc.any(is_wrong, min_count=0).as_py():
            index = pc.index(pc.fill_null(is_wrong, False), True).as_py()
            path = self.columns.column("file_path")[index].as_py()
            raise InvalidInputError(f"entry {index}, file {path!r}, {problem}")


def _check_content(check: _Check, content: ManifestContent) -> None:
    contents = check.columns.column("content")
    is_data = pc.equal(contents, int(FileContent.DATA))
    if content is ManifestContent.DATA:
        check.none(pc.invert(is_data), "is a delete file; those go into delete manifests")
    else:
        check.none(is_data, "is a data file; those go into data manifests")
        known = pa.array(list(map(int, FileContent)), pa.int32())
        check.none(pc.invert(pc.is_in(contents, known)), "has an unknown content")


def _check_numbers(check: _Check, version: int, snapshot_id: int) -> None:
    columns = check.columns
    snapshots = columns.column("snapshot_id")
    is_ours = pc.fill_null(pc.equal(snapshots, snapshot_id), True)
    check.none(pc.and_(check.is_added, pc.invert(is_ours)), f"is ADDED by another snapshot than {snapshot_id}")
    check.none(pc.and_(check.is_deleted, pc.invert(is_ours)), f"is DELETED by another snapshot than {snapshot_id}")
    is_existing = pc.and_not(pc.invert(check.is_added), check.is_deleted)
    check.none(pc.and_(is_existing, pc.is_null(snapshots)), "is EXISTING without the id of the snapshot that added it")
    if not allows(version, Feature.SEQUENCE_NUMBERS):
        return
    for name in ("sequence_number", "file_sequence_number"):
        numbers = columns.column(name)
        check.none(
            pc.and_(pc.invert(check.is_added), pc.is_null(numbers)),
            f"is EXISTING or DELETED without a {name}; only ADDED files inherit theirs",
        )
        check.none(pc.less(numbers, 0), f"has a negative {name}")
    check.none(
        pc.and_(check.is_added, pc.is_valid(columns.column("file_sequence_number"))),
        "is ADDED with a file_sequence_number; it must be left to the commit",
    )


def _check_deletes(check: _Check, version: int) -> None:
    columns = check.columns
    contents = columns.column("content")
    is_equality = pc.equal(contents, int(FileContent.EQUALITY_DELETES))
    has_ids = pc.fill_null(pc.greater(pc.list_value_length(columns.column("equality_ids")), 0), False)
    check.none(pc.and_not(is_equality, has_ids), "is an equality delete file without equality_ids")
    check.none(pc.and_not(has_ids, is_equality), "has equality_ids but is no equality delete file")
    is_data = pc.equal(contents, int(FileContent.DATA))
    check.none(pc.and_not(pc.is_valid(columns.column("first_row_id")), is_data), "is a delete file with a first_row_id")
    is_position = pc.equal(contents, int(FileContent.POSITION_DELETES))
    is_vector = pc.and_(is_position, pc.equal(pc.utf8_lower(columns.column("file_format")), "puffin"))
    if not allows(version, Feature.DELETION_VECTORS):
        check.none(is_vector, f"is a deletion vector; v{version} tables have none")
    for name in ("referenced_data_file", "content_offset", "content_size_in_bytes"):
        check.none(pc.and_(is_vector, pc.is_null(columns.column(name))), f"is a deletion vector without {name}")
    if not allows(version, Feature.NEW_POSITION_DELETE_FILES):
        is_new = pc.and_(pc.and_not(is_position, is_vector), check.is_added)
        check.none(is_new, f"is a new position delete file; v{version} tables take deletion vectors only")
