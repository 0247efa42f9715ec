"""Overwrite: data files leave, by a predicate or by name, and others come, in one step.

By a predicate, files leave whose rows all match it; one with some matching rows is an error, unless it is named too, which
says that its other rows are in a file that comes. Deletes are overwrites by which nothing comes.
"""

from icefloe import errors, manifests as mf, metadata as md
from icefloe.commit import conflicts
from icefloe.commit.added import FilesInput, check_not_live, fitted, group_files
from icefloe.commit.matching import FilterInput, RowFilter
from icefloe.commit.named_files import NamedFiles, NamedInput
from icefloe.commit.new_manifests import NewManifests, merge_manifests, remove_dangling, remove_files, write_added
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask, first_path, normal_paths
from icefloe.commit.producer import Delta


class Overwrite:
    """Removes data files and adds others.

    `planned` is what the files and the predicate were planned on; without it, which is allowed only if no file is named,
    the operation applies to whatever the table holds when it is committed. If the plan does not say which rows it has read,
    those of `row_filter` were, and with named files any row.
    """

    def __init__(
        self,
        metadata: md.TableMetadata,
        planned: conflicts.Planned | None,
        *,
        add: FilesInput = (),
        row_filter: FilterInput = False,
        remove: NamedInput = (),
        case_sensitive: bool = True,
        check_duplicates: bool = True,
        check_added_match: bool = False,
    ) -> None:
        self.added = group_files(add, metadata, mf.ManifestContent.DATA)
        self._filter = RowFilter.of(row_filter, metadata, case_sensitive=case_sensitive)
        self._named = NamedFiles.of(remove, metadata)
        self._planned = planned
        self._read = conflicts.rows_read(planned, metadata, case_sensitive=case_sensitive)
        self._check_duplicates = check_duplicates
        if len(self._named) and planned is None:
            raise errors.InvalidInputError("files are removed, but the snapshot that this was planned on is not given")
        if check_added_match:
            self._check_added()

    def apply(self, parent: Parent) -> Delta | None:
        """The manifests without what is removed, and with what is added."""
        since = None if self._planned is None else conflicts.Since(parent, self._planned)
        data = self._remove(parent, since)
        groups = fitted(parent.metadata, self.added)
        added = [group.columns for group in groups if len(group.columns)]
        if not added and not data.removed:
            return None
        if self._check_duplicates:
            check_not_live(parent, groups, frozenset(normal_paths(data.removed).to_pylist()))
        manifests = merge_manifests(
            parent, write_added(parent, self, groups), data, remove_dangling(parent, data.removed)
        )
        # By a predicate, rows are to go whether there are any or not.
        removes = bool(data.removed) or not self._filter.is_nothing
        operation = (md.Operation.OVERWRITE if removes else md.Operation.APPEND) if added else md.Operation.DELETE
        return Delta(operation, manifests, added)

    def _remove(self, parent: Parent, since: conflicts.Since | None) -> NewManifests:
        self._check_rows(parent, since)
        row_filter = conflicts.row_scope(parent.metadata, self._filter)

        def may_hold(manifest: mf.ManifestFile) -> bool:
            return self._named.may_be_in(manifest) or (not row_filter.is_nothing and row_filter.may_be_in(manifest))

        def choose(files: mf.ManifestColumns) -> Mask:
            named = self._named.mask(files)
            if row_filter.is_nothing:
                return named
            whole = named | row_filter.must(files)
            partly = row_filter.might(files) & ~whole
            if partly.any():
                raise errors.ValidationError(
                    f"{partly.sum()} files such as {first_path(files, partly)!r} contain rows that match {row_filter} and possibly"
                    " others; such files must be rewritten"
                )
            return whole

        data = remove_files(parent, mf.ManifestContent.DATA, may_hold, choose, row_filter.wanted)
        self._named.check_removed(data.removed, "data file")
        named = [files.filter(self._named.mask(files)) for files in data.removed]
        if since is not None:
            since.check_no_new_deletes_for([files for files in named if len(files)])
        return data

    def _check_rows(self, parent: Parent, since: conflicts.Since | None) -> None:
        """No rows came that the plan would have read, and none went that it overwrites."""
        if self._planned is None or since is None or not since.snapshots:
            return
        if self._planned.is_serializable:
            read = self._read or (None if len(self._named) else self._filter)
            scope = conflicts.row_scope(parent.metadata, read)
            since.check_no_new_data(scope)
            if self._planned.relies_on_read:
                since.check_no_new_deletes(scope)
                since.check_no_removed_data(scope)
        if not self._filter.is_nothing:
            written = conflicts.row_scope(parent.metadata, self._read or self._filter)
            since.check_no_new_deletes(written)
            since.check_no_removed_data(written)

    def _check_added(self) -> None:
        for group in self.added:
            outside = ~self._filter.must(group.columns)
            if outside.any():
                path = first_path(group.columns, outside)
                raise errors.ValidationError(
                    f"file {path!r} may contain rows that do not match {self._filter}; it cannot be added"
                )
