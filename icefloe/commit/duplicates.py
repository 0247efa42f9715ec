"""Whether files that a commit adds are in the table already: a path twice would count its rows twice.

Inside of a commit that is always checked (see `added`). Across commits it takes reading manifests, so it is done where
paths come from outside, and left out by writers that name their files by a fresh UUID. Only manifests are read whose
summaries allow for a file in one of the partitions, only their paths, and each of them once for a handle of the table: from
then on their paths are known by their hashes. So a new handle reads the manifests that there are, and its commits after
the first one read those that others made meanwhile.
"""

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.added import FileGroup
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import PartitionSet
from icefloe.commit.path_index import hashes_of
from icefloe.errors import ValidationError
from icefloe.manifests import ManifestContent, ManifestFile, wanted
from icefloe.parallel import in_order
from icefloe.storage.identities import identities

_PATHS = wanted("file_path", partition=False)
_READERS = 8


def check_not_live(parent: Parent, groups: Sequence[FileGroup], ignored: frozenset[str] = frozenset()) -> None:
    """Fail if one of the new data files is part of the snapshot that the commit builds on.

    `ignored` are paths that the same commit removes, in their normal form.
    """
    data = [group.columns for group in groups if group.content is ManifestContent.DATA and len(group.columns)]
    if not data:
        return
    paths = identities(pa.concat_arrays([columns.column("file_path") for columns in data]))
    partitions = PartitionSet.of(data)
    index = parent.bench.caches.paths
    hits = index.may_hold(hashes_of(paths))
    manifests = parent.manifests(ManifestContent.DATA)
    index.make_room({each.manifest_path for each in manifests})
    doubtful = [
        each
        for each in manifests
        if (each.manifest_path not in index or each.manifest_path in hits)
        and each.has_live_files
        and partitions.may_be_in(each)
    ]
    with closing(_live_paths(parent, doubtful)) as found:
        for manifest, live in found:
            if manifest.manifest_path not in index:
                index.add(manifest.manifest_path, hashes_of(live))
            for path in live.filter(pc.is_in(live, value_set=paths)).to_pylist():
                if path not in ignored:
                    raise ValidationError(f"file {path!r} is in the table already; it cannot be added a second time")


def note_paths(parent: Parent, manifests: Sequence[ManifestFile], groups: Sequence[FileGroup]) -> None:
    """Remember the paths of manifests that were written of these groups, so that the next commit need not read them."""
    index = parent.bench.caches.paths
    paths = [group.columns.column("file_path") for group in groups if len(group.columns)]
    counts = [manifest.added_files_count for manifest in manifests]
    if sum(count or 0 for count in counts) != sum(map(len, paths)):
        return
    rest = identities(pa.concat_arrays(paths)) if paths else pa.array([], pa.string())
    for manifest, count in zip(manifests, counts, strict=True):
        if manifest.manifest_path not in index:
            index.add(manifest.manifest_path, hashes_of(rest.slice(0, count)))
        rest = rest.slice(count)


def _live_paths(parent: Parent, manifests: Sequence[ManifestFile]) -> Generator[tuple[ManifestFile, Any], None, None]:
    """Each manifest with the paths of its live files, in their normal form; several are read at a time."""

    def read(manifest: ManifestFile) -> Any:
        entries = parent.read(manifest, _PATHS)
        return identities(entries.column("file_path").filter(entries.is_live))

    with closing(in_order(read, manifests, _READERS, "icefloe-paths")) as paths:
        yield from zip(manifests, paths, strict=True)
