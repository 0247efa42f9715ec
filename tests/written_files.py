"""Whether every data file that a test commits is what its entry says: the one check that all writes of the suite pass through.

Each snapshot that is made in the test's process, by whichever engine its files were written, is looked at when it is made:
later damage is no business of this. Looked at are the first files of each commit that are really there. Their field ids must
be those of a schema of the table, and their counts and bounds must hold: for the rows where there are few, by footers else.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import pytest

from icefloe import properties as props
from icefloe.commit import producer
from icefloe.commit.parent import Parent
from icefloe.commit.producer import Delta
from icefloe.errors import IcefloeError, StorageError
from icefloe.formats.arrow_types import stored_schema
from icefloe.formats.field_ids import check_written_ids
from icefloe.formats.file_formats import DATA_FORMATS, reader_of
from icefloe.manifests import DataFile, FileContent
from icefloe.schema import Schema, reserved
from icefloe.verification import Level, silent
from icefloe.verification.contents import Contents
from icefloe.verification.report import Findings
from icefloe.verification.subject import Subject

MOST_FILES = 2
"""How many files of a commit are looked at."""
MOST_ROWS = 20_000
"""Files of more rows are checked by their footers."""


@contextmanager
def checked_files() -> Iterator[list[str]]:
    """What is wrong with the files of the snapshots that are made inside, as it is found."""
    problems: list[str] = []
    make = producer.make_snapshot

    def make_checked(parent: Parent, delta: Delta, *more: Any) -> Any:
        check = _Check(parent)
        for file in _new_files(delta):
            problems.extend(f"{file.file_path}: {each}" for each in check.problems(file))
        return make(parent, delta, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(producer, "make_snapshot", make_checked)
        yield problems


def _new_files(delta: Delta) -> Iterator[DataFile]:
    left = MOST_FILES
    for columns in delta.added:
        for file in columns.slice(0, left).files() if left else ():
            left -= 1
            if file.content is not FileContent.POSITION_DELETES and file.file_format in DATA_FORMATS:
                yield file


class _Check:
    """Looks at the files of one commit."""

    def __init__(self, parent: Parent) -> None:
        self._view = parent

    def problems(self, file: DataFile) -> Iterator[str]:
        """What is wrong with a file; nothing if a test made it up, or lets its storage fail."""
        storage = self._view.bench.storage
        try:
            if file.key_metadata is not None or storage.stat(file.file_path).size != file.file_size_in_bytes:
                return
        except (IcefloeError, OSError):
            return
        contents = self._by_rows if file.record_count <= MOST_ROWS else self._by_footer
        try:
            found, _ = contents.problems(file, self._view.snapshot_id)
        except StorageError:
            return
        except IcefloeError as problem:
            yield str(problem)
            return
        yield from (f"{code}: {message}" for code, message in found)
        if file.content is FileContent.DATA and props.NAME_MAPPING.of(self._view.metadata.properties) is None:
            yield from _other_ids(file, self._view)

    @cached_property
    def _by_rows(self) -> Contents:
        return self._contents(Level.DATA)

    @cached_property
    def _by_footer(self) -> Contents:
        return self._contents(Level.FOOTERS)

    def _contents(self, level: Level) -> Contents:
        parent = self._view
        return Contents(
            Subject(parent.metadata, None, parent.bench.storage, (), True, level, 1.0, (), 1, Findings(0), silent)
        )


def _other_ids(file: DataFile, parent: Parent) -> Iterator[str]:
    """A file of a table holds all columns of one of its schemas, and perhaps those of row lineage."""
    with parent.bench.storage.open_input(file.file_path, size=file.file_size_in_bytes) as source:
        found = reader_of(file.file_format)(source, file.file_path, Schema(reserved.POS)).file_schema
    lineage = {each.field_id for each in reserved.ROW_LINEAGE_COLUMNS}
    own = Schema(*(each for each in found.fields if each.field_id not in lineage))
    told = ""
    for schema in sorted(parent.metadata.schemas, key=lambda each: each.schema_id, reverse=True):
        try:
            check_written_ids(own, stored_schema(schema), file.file_path)
        except IcefloeError as problem:
            told = told or str(problem)
        else:
            return
    yield told
