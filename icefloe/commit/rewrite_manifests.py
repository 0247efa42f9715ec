"""Rewrite manifests: the same files in other manifests, of the right size and sorted by partition, so that scans read less.

Partitions are read first, and decide which entries go together; then each manifest is read once. Entries wait in an
`EntrySpool`, so that memory does not grow with the table.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe import errors, manifests as mf, metadata as md, parallel, properties as props
from icefloe.commit.added import FileGroup
from icefloe.commit.entry_spool import BUDGET, EntrySpool, RankedEntries
from icefloe.commit.manifest_groups import (
    ROLL,
    ManifestChoice,
    ManifestGroup,
    groups_to_rewrite,
    live_files,
    outdated_manifests,
)
from icefloe.commit.new_manifests import NewManifests, concat_entries, form_of, write_entries
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import by_partition_type, concat_partitions, partition_order
from icefloe.commit.producer import Delta
from icefloe.progress import Listener, Stage, silent

_WORKERS = min(4, os.cpu_count() or 1)
_KEYS = mf.wanted("status", partition=True)

Numbers = npt.NDArray[np.int64]


class RewriteManifests:
    """Writes manifests anew, of both kinds in one commit; no file comes or goes.

    `content` is which kind, `choose` which ones of it; all of them if not given. Manifests that are good already are left
    alone, see `manifest_groups`; so are those that other writers add in between. Beyond `memory` bytes of entries at once,
    they wait on disk.
    """

    def __init__(
        self,
        content: mf.ManifestContent | None = None,
        choose: Callable[[mf.ManifestFile], bool] | None = None,
        *,
        choice: ManifestChoice | None = None,
        progress: Listener = silent,
        memory: int = BUDGET,
    ) -> None:
        self.added: tuple[FileGroup, ...] = ()
        self._choice = choice or ManifestChoice(content, choose=choose)
        self._progress = progress
        self._memory = memory

    def apply(self, parent: Parent) -> Delta | None:
        """The manifests, the chosen ones replaced; nothing when there is nothing to gain."""
        self._choice.check(parent.metadata)
        live = parent.manifests()
        new: list[mf.ManifestFile] = []
        replaced: list[mf.ManifestFile] = []
        groups = self._groups(parent, live)
        for group in groups:
            key = ("rewritten", form_of(parent.metadata), group)
            made = parent.bench.remember(key, _Rewriting(parent, group, self._choice, self._progress, self._memory).run)
            if made:
                new += made
                replaced += group.manifests
        if not new:
            return None
        # The last look at what is about to be committed.
        before, after = _live(replaced), _live(new)
        if before != after:
            raise errors.ValidationError(
                f"manifests with {before[0]} live files and {before[1]} rows were rewritten to {after[0]} files and {after[1]} rows"
            )
        gone = set(replaced)
        others = (manifest for manifest in live if manifest not in gone)
        manifests = NewManifests((*new, *others), replaced=len(replaced) + self._count_dead(parent, groups))
        return Delta(md.Operation.REPLACE, manifests, entries_processed=before[0])

    def _count_dead(self, parent: Parent, groups: Iterable[ManifestGroup]) -> int:
        """Manifests beside these groups that hold deleted entries only: they go, too, as with every new snapshot."""
        sides = {(group.spec_id, group.content) for group in groups}
        return sum(
            (manifest.partition_spec_id, manifest.content) in sides and not manifest.has_live_files
            for manifest in filter(self._choice.includes, parent.manifests_of(parent.snapshot))
        )

    def _groups(self, parent: Parent, live: Sequence[mf.ManifestFile]) -> list[ManifestGroup]:
        """What is rewritten together: what was chosen in the first attempt, as long as it is still live."""
        if self._choice.only is not None:
            _check_all(self._choice.only, live)
        storage = parent.bench.storage
        outdated = outdated_manifests(parent.metadata, live, parent.bench.read, storage.limits)
        now = groups_to_rewrite(parent.metadata, live, self._choice, outdated)
        planned = parent.bench.remember(("chosen", self), lambda: now)
        is_live = set(live).issuperset(manifest for group in planned for manifest in group.manifests)
        return planned if is_live else now


def _check_all(only: Iterable[str], live: Iterable[mf.ManifestFile]) -> None:
    missing = set(only) - {manifest.manifest_path for manifest in live}
    if missing:
        raise errors.ValidationError(
            f"{len(missing)} manifests of the plan are no longer part of the table, such as {min(missing)}; plan it again"
        )


def _live(manifests: Iterable[mf.ManifestFile]) -> tuple[int, int]:
    """Live files, and their rows."""
    counted = [(live_files(each), (each.added_rows_count or 0) + (each.existing_rows_count or 0)) for each in manifests]
    return sum(files for files, _ in counted), sum(rows for _, rows in counted)


@dataclass(frozen=True, slots=True, eq=False)
class _Alike:
    """Manifests whose partition values are of the same types, with the place of each live entry in the order of all."""

    manifests: list[mf.ManifestFile]
    ranks: list[Numbers]

    @property
    def count(self) -> int:
        return sum(map(len, self.ranks))


@dataclass(frozen=True, slots=True, eq=False)
class _Rewriting:
    """One group on its way to new manifests."""

    parent: Parent
    group: ManifestGroup
    choice: ManifestChoice
    progress: Listener
    memory: int

    def run(self) -> tuple[mf.ManifestFile, ...]:
        """The new manifests; none if they would be as many as before, since each has another type of partitions."""
        parts = self.group.parts(self._target)
        kinds = self._alike()
        if parts == 1 and len(kinds) == len(self.group.manifests) > 1 and not self.group.is_needed:
            return ()
        stage = Stage("manifests", len(self.group.manifests), self.progress)
        return tuple(manifest for alike in kinds for manifest in self._written(alike, parts, stage))

    @property
    def _target(self) -> int:
        return props.MANIFEST_TARGET_SIZE_BYTES.of(self.parent.metadata.properties)

    def _alike(self) -> list[_Alike]:
        keys = dict(zip(self.group.manifests, self._read(self.group.manifests, _KEYS), strict=True))
        manifest_of = {id(columns): manifest for manifest, columns in keys.items()}
        positions = self.choice.positions(self.parent.metadata.spec(self.group.spec_id))
        return [
            _Alike([manifest_of[id(columns)] for columns in members], _ranks(members, positions))
            for members in by_partition_type([columns for columns in keys.values() if len(columns)])
        ]

    def _read(self, manifests: Sequence[mf.ManifestFile], what: mf.Wanted) -> Iterator[mf.ManifestColumns]:
        """The live entries of each manifest."""

        def read(manifest: mf.ManifestFile) -> mf.ManifestColumns:
            columns = self.parent.read(manifest, what)
            return columns.filter(columns.is_live)

        return parallel.in_order(read, manifests, _WORKERS, "icefloe-manifests")

    def _written(self, alike: _Alike, parts: int, stage: Stage) -> Iterator[mf.ManifestFile]:
        """The manifests of one type of partitions, each written as soon as its last entry was read."""
        size = -(-alike.count // max(1, round(parts * alike.count / max(1, self.group.live_files))))
        waiting = np.bincount(np.concatenate(alike.ranks) // size)
        with EntrySpool(self.memory) as spool:
            for columns, ranks in zip(self._read(alike.manifests, mf.EVERYTHING), alike.ranks, strict=True):
                numbers = ranks // size
                for number in np.unique(numbers).tolist():
                    members = numbers == number
                    part = columns if members.all() else columns.filter(members)
                    spool.add(number, RankedEntries(part, ranks[members]))
                    waiting[number] -= len(part)
                    if not waiting[number]:
                        yield from self._write(spool.take(number))
                stage.step()

    def _write(self, parts: list[RankedEntries]) -> Iterable[mf.ManifestFile]:
        columns = concat_entries([part.columns for part in parts])
        order = np.argsort(np.concatenate([part.ranks for part in parts]))
        existing = pa.array(np.full(len(columns), int(mf.EntryStatus.EXISTING), np.int32))
        ordered = columns.take(pa.array(order)).with_columns(status=existing)
        return write_entries(self.parent, ordered, self.group.content, int(ROLL * self._target))


def _ranks(parts: Sequence[mf.ManifestColumns], positions: Sequence[int]) -> list[Numbers]:
    """The place of each entry in the order of all by partition."""
    order = partition_order(concat_partitions(parts), positions).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return np.split(ranks, np.cumsum([len(part) for part in parts])[:-1])
