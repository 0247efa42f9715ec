"""Delete by predicate: which files go as a whole, and which ones only hold some of the rows and must be written anew."""

from dataclasses import dataclass

from icefloe.commit.history import Planned
from icefloe.commit.matching import FilterInput, RowFilter
from icefloe.commit.overwrite import Overwrite
from icefloe.commit.parent import Parent
from icefloe.commit.producer import head_of
from icefloe.commit.workbench import Workbench
from icefloe.manifests import EVERYTHING, DataFile, ManifestColumns, ManifestContent
from icefloe.metadata import MAIN_BRANCH, TableMetadata


@dataclass(frozen=True, slots=True, eq=False)
class DeletePlan:
    """What a delete by predicate comes to, on one snapshot.

    All rows of the files in `whole` match, as their statistics prove. Files in `partial` may hold matching rows and others.
    """

    planned: Planned
    whole: tuple[ManifestColumns, ...]
    partial: tuple[ManifestColumns, ...]

    @property
    def whole_files(self) -> list[DataFile]:
        """The files that go, as values."""
        return [file for columns in self.whole for file in columns.files()]

    @property
    def partial_files(self) -> list[DataFile]:
        """The files to write anew, or to delete rows of, as values."""
        return [file for columns in self.partial for file in columns.files()]


def plan_delete(
    metadata: TableMetadata,
    row_filter: FilterInput,
    bench: Workbench,
    *,
    branch: str = MAIN_BRANCH,
    case_sensitive: bool = True,
) -> DeletePlan:
    """The files that a delete concerns, by partition values and statistics alone; no row is read."""
    wanted_rows = RowFilter.of(row_filter, metadata, case_sensitive=case_sensitive)
    parent = Parent(metadata, head_of(metadata, branch), 0, bench)
    whole, partial = [], []
    for manifest in parent.manifests(ManifestContent.DATA):
        if not manifest.has_live_files or not wanted_rows.may_be_in(manifest):
            continue
        columns = parent.read(manifest, EVERYTHING)
        columns = columns.filter(columns.is_live)
        must = wanted_rows.must(columns)
        some = wanted_rows.might(columns) & ~must
        whole.append(columns.filter(must))
        partial.append(columns.filter(some))
    return DeletePlan(
        Planned.on(metadata, branch),
        tuple(each for each in whole if len(each)),
        tuple(each for each in partial if len(each)),
    )


def delete_where(metadata: TableMetadata, row_filter: FilterInput, *, case_sensitive: bool = True) -> Overwrite:
    """All files of matching rows go, as the table is when it is committed; a file with other rows, too, is an error."""
    return Overwrite(metadata, None, row_filter=row_filter, case_sensitive=case_sensitive)
