"""How rows of a table are deleted or replaced: by rewriting their files, or by marking them as deleted where they are.

Copy-on-write or merge-on-read is by the table's properties; v1 has no delete files, so it always copies. A file without rows
left is only removed. Merge-on-read writes deletion vectors where the table's version has them, and position delete files in
v2 (spec: Row-level Deletes). A change says to the commit which rows it has read, so that conflicts are detected as narrowly as
can be.
"""

import uuid
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from icefloe import commit as cm, expressions as ex, manifests as mf, metadata as md, properties as props
from icefloe.data import NewFile, NewLocations, data_file_of
from icefloe.formats.position_deletes import write_position_deletes
from icefloe.rows.branch import Branch
from icefloe.rows.engines import ARROW, Engine
from icefloe.rows.matching import MatchedRows, remaining_rows
from icefloe.schema import Value
from icefloe.versions import Feature, allows

_COPY = "copy-on-write"


@dataclass(frozen=True, slots=True)
class Statement:
    """A kind of change, by the properties that rule it: how rows leave their files, and what counts as a conflict."""

    mode: props.Property[str]
    isolation: props.Property[str]

    def copies(self, metadata: md.TableMetadata) -> bool:
        """Whether the table rewrites files for such changes."""
        has_deletes = allows(metadata.format_version, Feature.DELETE_FILES)
        return self.mode.of(metadata.properties) == _COPY or not has_deletes

    def planned(self, branch: Branch) -> cm.Planned:
        """What the commit of such a change is checked against."""
        isolation = cm.Isolation.of(branch.metadata, self.isolation)
        return cm.Planned.on(branch.metadata, branch.target.branch, isolation)


DELETE = Statement(props.DELETE_MODE, props.DELETE_ISOLATION_LEVEL)
UPDATE = Statement(props.UPDATE_MODE, props.UPDATE_ISOLATION_LEVEL)
MERGE = Statement(props.MERGE_MODE, props.MERGE_ISOLATION_LEVEL)


@dataclass(frozen=True)
class RowChange:
    """One change of rows of a branch by an engine, from the rows that it finds to its commit."""

    branch: Branch
    statement: Statement
    engine: Engine

    @property
    def metadata(self) -> md.TableMetadata:
        """The table that the change is planned on."""
        return self.branch.metadata

    @property
    def copies(self) -> bool:
        """Whether files with changed rows are rewritten."""
        return self.statement.copies(self.metadata)

    @property
    def has_lineage(self) -> bool:
        """Whether rows have ids, which those that stay or are replaced keep (spec: Row Lineage)."""
        return allows(self.metadata.format_version, Feature.ROW_LINEAGE)

    def find(self, chosen: Any, row_filter: ex.Expression) -> Sequence[MatchedRows]:
        """The chosen rows, in the form of the engine, by file and position; all of them match the filter."""
        return self.engine.find(chosen, self.branch, row_filter)

    def write(self, rows: Any, *, lineage: bool | None = None) -> list[mf.DataFile]:
        """Write rows as data files, with their ids if they have them."""
        return self.engine.write(rows, self.branch.request(lineage=self.has_lineage if lineage is None else lineage))

    def commit(
        self,
        matches: Sequence[MatchedRows],
        added: Sequence[mf.DataFile],
        read: ex.Expression,
        *,
        relies_on_read: bool = False,
    ) -> md.Snapshot | None:
        """Delete the matched rows and add files that were just written; where files are rewritten, `added` has their other rows.

        `read` says which rows all this relies on; with `relies_on_read`, even on some that it leaves alone.
        """
        if not matches and not added:
            return None
        self.branch.written.finish()
        planned = self.statement.planned(self.branch).reading(read, relies_on_read=relies_on_read)
        operation: cm.SnapshotOperation
        if self.copies or not matches:
            # Even without a match the commit must look for rows that others have added meanwhile.
            removed = [match.task.file for match in matches]
            operation = cm.Overwrite(self.metadata, planned, add=added, remove=removed, check_duplicates=False)
        else:
            operation = self._row_delta(matches, added, planned)
        return self.branch.changes.add(cm.SnapshotChange(operation, self.branch.target))

    def _row_delta(
        self, matches: Sequence[MatchedRows], added: Sequence[mf.DataFile], planned: cm.Planned
    ) -> cm.RowDelta:
        partly = {match.path: match for match in matches if not match.is_whole_file}
        has_vectors = allows(self.metadata.format_version, Feature.DELETION_VECTORS)
        return cm.RowDelta(
            self.metadata,
            planned,
            add=added,
            # Positions, not files: the commit writes the vectors, merged with those that others add meanwhile.
            vectors={path: match.positions for path, match in partly.items()} if has_vectors else None,
            deletes=() if has_vectors else _write_deletes(partly.values(), self.branch),
            remove=[match.task.file for match in matches if match.path not in partly],
            check_duplicates=False,
        )


def rewrite(change: RowChange, matches: Sequence[MatchedRows]) -> list[mf.DataFile]:
    """The other rows of the matched files as new files, by Arrow, if the change rewrites files; they keep their ids."""
    if not (matches and change.copies):
        return []
    with closing(remaining_rows(matches, change.branch.context)) as rows:
        return ARROW.write(rows, change.branch.request(lineage=change.has_lineage))


def _write_deletes(matches: Iterable[MatchedRows], branch: Branch) -> list[mf.DataFile]:
    """Position delete files: one for each partition, or one for each data file."""
    metadata, storage = branch.metadata, branch.changes.storage
    per_file = props.DELETE_GRANULARITY.of(metadata.properties) == "file"
    groups: dict[tuple[int, tuple[Value, ...], str], list[MatchedRows]] = {}
    for match in matches:
        groups.setdefault((match.task.spec_id, match.task.partition, match.path if per_file else ""), []).append(match)
    locations = NewLocations(metadata, str(uuid.uuid4()))
    file_format = props.WRITE_DELETE_FORMAT.of(metadata.properties) or props.WRITE_FORMAT.of(metadata.properties)
    files = []
    for (spec_id, partition, _), group in groups.items():
        location = locations.next(metadata.spec(spec_id), partition, file_format, "-deletes")
        positions = {match.path: match.positions for match in group}
        with storage.open_output(location) as output:
            new = NewFile(output, file_format, metadata)
            done = write_position_deletes(
                new.sink, positions, metadata.format_version, file_format, metadata.properties
            )
            stored, key_metadata = new.finish(done.file)
        files.append(
            data_file_of(
                stored,
                location,
                file_format,
                content=mf.FileContent.POSITION_DELETES,
                spec_id=spec_id,
                partition=partition,
                referenced_data_file=done.referenced_data_file,
                key_metadata=key_metadata,
            )
        )
        branch.changes.row_files.append(files[-1])
    return files
