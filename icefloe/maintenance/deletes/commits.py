"""In how many commits delete files are rewritten, and what becomes of files that no commit needed."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from icefloe import commit as cm, manifests as mf
from icefloe.commit import delete_quietly
from icefloe.maintenance.options import Options
from icefloe.maintenance.rewrite.options import MAX_COMMITS, PARTIAL_PROGRESS
from icefloe.storage import Storage

Item = TypeVar("Item")


def in_commits(items: Sequence[Item], options: Options) -> list[Sequence[Item]]:
    """The items of each commit: all in one, or with `partial-progress.enabled` in as many as are allowed."""
    if not PARTIAL_PROGRESS.of(options) or not items:
        return [items]
    size = -(-len(items) // MAX_COMMITS.of(options))
    return [items[start : start + size] for start in range(0, len(items), size)]


def discard_unused(storage: Storage, written: Iterable[mf.DataFile], replacement: cm.DeleteReplacement) -> None:
    """Delete files that were written for a commit that happened, and that it did not need: data files were gone, or had
    newer deletes."""
    used = {file.file_path for file in replacement.done.added}
    delete_quietly(storage, {file.file_path for file in written} - used, "not needed by what was committed")
