"""Whether the snapshots of a table fit together: no row id given to two files, no file added again."""

from collections.abc import Mapping, Sequence

import numpy as np

from icefloe.manifests import ManifestFile
from icefloe.metadata import TableMetadata
from icefloe.verification.codes import Code
from icefloe.verification.digest import UNKNOWN, Digest, FileKind
from icefloe.verification.snapshots import PathOf
from icefloe.verification.subject import Subject


def check_row_ids(subject: Subject, files: Digest, path_of: PathOf) -> None:
    """Ranges of row ids belong to one file each, over all snapshots."""
    data = files.of(FileKind.DATA)
    data = data.take((data.first_row_id != UNKNOWN) & (data.rows > 0))
    if not len(data):
        return
    data = data.take(np.lexsort((data.path, data.first_row_id)))
    ends = data.first_row_id + data.rows
    highest = np.maximum.accumulate(ends)
    overlaps = np.zeros(len(data), bool)
    is_same = (data.first_row_id[1:] == data.first_row_id[:-1]) & (data.path[1:] == data.path[:-1])
    overlaps[1:] = (data.first_row_id[1:] < highest[:-1]) & ~is_same
    for at in np.flatnonzero(overlaps).tolist():
        if subject.findings.is_full(Code.ROW_IDS):
            subject.findings.count(Code.ROW_IDS, 1)
            continue
        message = (
            f"its rows have the ids from {data.first_row_id[at]} to {ends[at] - 1}; another file has some of them too"
        )
        subject.findings.add(Code.ROW_IDS, message, path_of(int(data.manifest[at]), int(data.place[at])))


def check_added_again(subject: Subject, files: Digest, manifests: Sequence[ManifestFile], path_of: PathOf) -> None:
    """A file is added by one snapshot of a line of descent; branches that took over the same commit may each add it."""
    owners = np.array([each.added_snapshot_id for each in manifests], np.int64)
    added = files.take(files.is_added)
    if not len(added):
        return
    by = owners[added.manifest]
    order = np.lexsort((by, added.name))
    added, by = added.take(order), by[order]
    is_again = np.zeros(len(added), bool)
    is_again[1:] = (added.name[1:] == added.name[:-1]) & (by[1:] != by[:-1])
    known: dict[tuple[int, int], bool] = {}
    for at in np.flatnonzero(is_again).tolist():
        pair = (int(by[at - 1]), int(by[at]))
        if pair not in known:
            known[pair] = _is_one_line(subject.metadata, *pair)
        if known[pair]:
            path = path_of(int(added.manifest[at]), int(added.place[at]))
            message = f"snapshots {pair[0]} and {pair[1]} both added it"
            subject.findings.add(Code.PATH_ADDED_AGAIN, message, path)


def _is_one_line(metadata: TableMetadata, one: int, other: int) -> bool:
    return metadata.is_ancestor(one, other) or metadata.is_ancestor(other, one)


def snapshots_of(listed: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """The first snapshot that lists each manifest, by the manifest's number."""
    found: dict[int, int] = {}
    for snapshot_id, numbers in listed.items():
        for number in numbers:
            found.setdefault(number, snapshot_id)
    return found
