"""Overwrite: data files leave, by a predicate or by name, and others come, in one step.

By a predicate, files leave whose rows all match it; one with some matching rows is an error, unless it is named too, which
says that its other rows are in a file that comes. Deletes are overwrites by which nothing comes.
"""

from collections.abc import Sequence

from icefloe.commit.added import FileGroup, FilesInput, check_not_live, fitted, group_files
from icefloe.commit.conflicts import (
    Planned,
    Since,
    check_no_new_data,
    check_no_new_deletes,
    check_no_new_deletes_for,
    check_no_removed_data,
    row_scope,
)
from icefloe.commit.matching import FilterInput, RowFilter
from icefloe.commit.named_files import NamedFiles, NamedInput
from icefloe.commit.new_manifests import Filtered, merge_manifests, remove_dangling, remove_files, write_added
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask
from icefloe.commit.producer import Delta
from icefloe.errors import InvalidInputError, ValidationError
from icefloe.manifests import ManifestColumns, ManifestContent, ManifestFile
from icefloe.metadata import Operation, TableMetadata
from icefloe.storage.identities import identities


class Overwrite:
    """Removes data files and adds others.

    `planned` is what the files and the predicate were planned on; without it, which is allowed only if no file is named,
    the operation means whatever is there when it is committed. `conflict_filter` says which rows the plan has read, when
    that is not what `row_filter` says; with named files and no such filter, any new row counts as read. `relies_on_read` says
    that rows which were read and left alone are a reason for what is added, so they must still be there.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        planned: Planned | None,
        *,
        add: FilesInput = (),
        row_filter: FilterInput = False,
        remove: NamedInput = (),
        conflict_filter: FilterInput | None = None,
        case_sensitive: bool = True,
        check_duplicates: bool = True,
        check_added_match: bool = False,
        relies_on_read: bool = False,
    ) -> None:
        self._groups = group_files(add, metadata, ManifestContent.DATA)
        self._filter = RowFilter.of(row_filter, metadata, case_sensitive=case_sensitive)
        self._named = NamedFiles.of(remove, metadata)
        self._planned = planned
        self._conflict_filter = (
            None if conflict_filter is None else RowFilter.of(conflict_filter, metadata, case_sensitive=case_sensitive)
        )
        self._check_duplicates = check_duplicates
        self._relies_on_read = relies_on_read
        if len(self._named) and planned is None:
            raise InvalidInputError("files are named to be removed, but not the snapshot that this was planned on")
        if check_added_match:
            self._check_added()

    @property
    def added(self) -> Sequence[FileGroup]:
        """The files that come."""
        return self._groups

    def apply(self, parent: Parent) -> Delta | None:
        """The manifests without what is removed, and with what is added."""
        since = None if self._planned is None else Since(parent, self._planned)
        filtered = self._remove(parent, since)
        groups = fitted(parent.metadata, self._groups)
        added = [group.columns for group in groups if len(group.columns)]
        if not added and not filtered.removed:
            return None
        if self._check_duplicates:
            check_not_live(parent, groups, _paths(filtered))
        deletes = remove_dangling(parent, parent.manifests(ManifestContent.DELETES), filtered.removed)
        new = write_added(parent, self, groups)
        merged = merge_manifests(parent, (*new, *filtered.manifests, *deletes.manifests))
        removed = (*filtered.removed, *deletes.removed)
        return Delta(
            # By a predicate, rows are to go whether there are any or not.
            _operation(bool(added), bool(filtered.removed) or not self._filter.is_nothing),
            merged.manifests,
            added,
            removed,
            replaced_manifests=filtered.replaced + deletes.replaced + merged.replaced,
        )

    def _remove(self, parent: Parent, since: Since | None) -> Filtered:
        self._check_rows(parent, since)
        row_filter = row_scope(parent.metadata, self._filter)

        def may_hold(manifest: ManifestFile) -> bool:
            return self._named.may_be_in(manifest) or (not row_filter.is_nothing and row_filter.may_be_in(manifest))

        def choose(files: ManifestColumns) -> Mask:
            named = self._named.mask(files)
            if row_filter.is_nothing:
                return named
            whole = named | row_filter.must(files)
            partly = row_filter.might(files) & ~whole
            if partly.any():
                paths = files.column("file_path").filter(partly.tolist())
                raise ValidationError(
                    f"{len(paths)} files such as {paths[0].as_py()!r} hold rows that match {row_filter} and maybe others;"
                    " such files must be written anew"
                )
            return whole

        found = remove_files(parent, parent.manifests(ManifestContent.DATA), may_hold, choose, row_filter.wanted)
        self._named.check_found(found.removed, "data file")
        named = [each.filter(self._named.mask(each)) for each in found.removed]
        if since is not None:
            check_no_new_deletes_for(since, [each for each in named if len(each)], parent.metadata)
        return found

    def _check_rows(self, parent: Parent, since: Since | None) -> None:
        """No rows came that the plan would have read, and none went that it overwrites."""
        if self._planned is None or since is None or not since.snapshots:
            return
        read = self._conflict_filter
        if read is None and not len(self._named):
            read = self._filter
        if self._planned.is_serializable:
            scope = row_scope(parent.metadata, read)
            check_no_new_data(since, scope)
            if self._relies_on_read:
                check_no_new_deletes(since, scope)
                check_no_removed_data(since, scope)
        if not self._filter.is_nothing:
            written = row_scope(parent.metadata, self._conflict_filter or self._filter)
            check_no_new_deletes(since, written)
            check_no_removed_data(since, written)

    def _check_added(self) -> None:
        for group in self._groups:
            outside = ~self._filter.must(group.columns)
            if outside.any():
                path = group.columns.column("file_path").filter(outside.tolist())[0].as_py()
                raise ValidationError(
                    f"file {path!r} may hold rows that do not match {self._filter}; it cannot be added"
                )


def _paths(filtered: Filtered) -> frozenset[str]:
    paths = (identities(each.column("file_path")) for each in filtered.removed)
    return frozenset(path for each in paths for path in each.to_pylist())


def _operation(adds: bool, removes: bool) -> Operation:
    if adds and removes:
        return Operation.OVERWRITE
    return Operation.APPEND if adds else Operation.DELETE
