"""Replace delete files: others of the same meaning come in their place, or nothing, where they delete no row any more.

What goes and what comes is decided anew for each snapshot that the commit is tried on, so that whatever came meanwhile counts:
a data file that an old delete reaches keeps that delete.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from icefloe.commit import added as new_files, vectors as dv
from icefloe.commit.named_files import NO_FILES, NamedDeletes, NamedFiles
from icefloe.commit.new_manifests import NewManifests, merge_manifests, remove_files, write_added
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask
from icefloe.commit.producer import Delta
from icefloe.manifests import ManifestColumns, ManifestContent
from icefloe.metadata import Operation


@dataclass(frozen=True, slots=True, eq=False)
class DeleteSwap:
    """What a commit does to the delete files of one snapshot; rows stay as they are."""

    remove: NamedDeletes
    add: tuple[new_files.FileGroup, ...] = ()
    remove_data: NamedFiles = NO_FILES
    """Data files of which every row is deleted; their own deletes go with them."""
    ended: Collection[str] = field(default=())
    """Data files that are gone already, by normal path, among those whose deletion vectors are removed."""


Decide = Callable[[Parent], DeleteSwap | None]
"""What is to be done to the delete files of the snapshot that a commit builds on; None is nothing."""


class ReplaceDeletes:
    """Makes a `replace` snapshot of what is decided on its parent; in each attempt anew."""

    def __init__(self, decide: Decide) -> None:
        self.added: tuple[new_files.FileGroup, ...] = ()
        self._decide = decide

    def apply(self, parent: Parent) -> Delta | None:
        """The manifests with the new delete files in place of the old ones."""
        swap = self._decide(parent)
        if swap is None:
            return None
        gone = swap.remove_data
        data = remove_files(parent, ManifestContent.DATA, gone.may_be_in, gone.mask)
        gone.check_removed(data.removed, "data file")
        deletes = _without(parent, swap, gone)
        vectors = [part for part in map(new_files.vectors_of, swap.add) if len(part)]
        dv.check_not_revived(
            deletes.removed, {*gone.paths.to_pylist(), *swap.ended, *dv.vector_paths(vectors).to_pylist()}
        )
        dv.check_one_for_each(parent, deletes.manifests, vectors)
        if not (data.removed or deletes.removed or swap.add):
            return None
        files = new_files.fitted(parent.metadata, swap.add)
        new = write_added(parent, (self, tuple(map(_key, swap.add))), files)
        merged = merge_manifests(parent, new, data, deletes)
        return Delta(Operation.REPLACE, merged, [group.columns for group in files])


def _without(parent: Parent, swap: DeleteSwap, gone: NamedFiles) -> NewManifests:
    def choose(files: ManifestColumns) -> Mask:
        return swap.remove.mask(files) | gone.mask(files, "referenced_data_file")

    if not len(swap.remove) and not len(gone):
        return NewManifests(parent.manifests(ManifestContent.DELETES))
    deletes = remove_files(parent, ManifestContent.DELETES, lambda _: True, choose)
    swap.remove.check_removed(deletes.removed)
    return deletes


def _key(group: new_files.FileGroup) -> tuple[object, ...]:
    """What tells the new files of one attempt from those of another."""
    columns = group.columns
    names = ("file_path", "content_offset", "sequence_number")
    return group.spec_id, *(tuple(columns.column(name).to_pylist()) for name in names)
