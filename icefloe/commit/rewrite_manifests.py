"""Rewrite manifests: the same files in other manifests, fewer and sorted by partition, so that scans read less."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from icefloe.commit.added import FileGroup
from icefloe.commit.new_manifests import NewManifests, form_of, write_together
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import partition_order
from icefloe.commit.producer import Delta
from icefloe.errors import ValidationError
from icefloe.manifests import EntryStatus, ManifestColumns, ManifestContent, ManifestFile
from icefloe.metadata import Operation


class RewriteManifests:
    """Writes manifests anew; no file comes or goes.

    `content` is which kind, `choose` which ones of it; all of them if not given. A spec with a single chosen manifest is
    left alone. Manifests that other writers add in between are kept as they are.
    """

    def __init__(
        self,
        content: ManifestContent = ManifestContent.DATA,
        choose: Callable[[ManifestFile], bool] | None = None,
    ) -> None:
        self.added: tuple[FileGroup, ...] = ()
        self._content = content
        self._choose = choose

    def apply(self, parent: Parent) -> Delta | None:
        """The manifests, the chosen ones replaced; nothing when there is nothing to gain."""
        live = parent.manifests()
        groups = self._groups(parent, live)
        if not groups:
            return None
        chosen = {manifest for members in groups for manifest in members}
        new: list[ManifestFile] = []
        for members in groups:
            key = ("rewritten", form_of(parent.metadata), tuple(members))
            new += parent.bench.remember(key, partial(self._rewrite, parent, members))
        # The last look at what is about to be committed.
        before, after = _live_files(chosen), _live_files(new)
        if before != after:
            raise ValidationError(f"manifests with {before} live files were rewritten to ones with {after}")
        others = (manifest for manifest in live if manifest not in chosen)
        manifests = NewManifests((*new, *others), replaced=len(chosen))
        return Delta(Operation.REPLACE, manifests, entries_processed=before)

    def _groups(self, parent: Parent, live: Sequence[ManifestFile]) -> list[list[ManifestFile]]:
        """What is rewritten together: what was chosen in the first attempt, as long as it is still live."""
        now = list(filter(self._is_chosen, live))
        planned = parent.bench.remember(("chosen", self), lambda: now)
        by_spec: dict[int, list[ManifestFile]] = {}
        for manifest in planned if set(live).issuperset(planned) else now:
            by_spec.setdefault(manifest.partition_spec_id, []).append(manifest)
        return [members for members in by_spec.values() if len(members) > 1]

    def _is_chosen(self, manifest: ManifestFile) -> bool:
        return manifest.content is self._content and (self._choose is None or self._choose(manifest))

    def _rewrite(self, parent: Parent, manifests: Sequence[ManifestFile]) -> tuple[ManifestFile, ...]:
        read = (parent.read(manifest) for manifest in manifests)
        return write_together(parent, [columns.filter(columns.is_live) for columns in read], self._content, _sorted)


def _sorted(columns: ManifestColumns) -> ManifestColumns:
    existing = pa.array(np.full(len(columns), int(EntryStatus.EXISTING), np.int32))
    return columns.take(partition_order(columns)).with_columns(status=existing)


def _live_files(manifests: Iterable[ManifestFile]) -> int:
    return sum((each.added_files_count or 0) + (each.existing_files_count or 0) for each in manifests)
