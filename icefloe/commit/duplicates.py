"""Whether files that a commit adds are in the table already: a path twice would count its rows twice.

Inside of a commit that is always checked (see `added`). Across commits it takes reading manifests, so it is done where
paths come from outside, and left out by writers that name their files by a fresh UUID. Only manifests are read whose
summaries allow for a file in one of the partitions, only their paths, and each of them once for a handle of the table.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.added import FileGroup
from icefloe.commit.partitions import PartitionSet
from icefloe.commit.view import View
from icefloe.errors import ValidationError
from icefloe.manifests.files import ManifestContent
from icefloe.manifests.wanted import wanted

_PATHS = wanted("file_path", partition=False)


def check_not_live(view: View, groups: Sequence[FileGroup], ignored: frozenset[str] = frozenset()) -> None:
    """Fail if one of the new data files is part of the snapshot that the commit builds on.

    `ignored` are paths that the same commit removes.
    """
    data = [group.columns for group in groups if group.content is ManifestContent.DATA and len(group.columns)]
    if not data:
        return
    paths = pa.concat_arrays([columns.column("file_path") for columns in data])
    partitions = PartitionSet.of(data)
    for manifest in view.manifests(ManifestContent.DATA):
        if not manifest.has_live_files or not partitions.may_be_in(manifest):
            continue
        entries = view.read(manifest, _PATHS)
        found = pc.and_(pc.is_in(entries.column("file_path"), value_set=paths), entries.is_live)
        for path in entries.column("file_path").filter(found).to_pylist():
            if path not in ignored:
                raise ValidationError(f"file {path!r} is in the table already; it cannot be added a second time")
