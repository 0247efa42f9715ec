"""Rewrite manifests: the same files in other manifests, fewer and sorted by partition, so that scans read less."""

from collections.abc import Callable, Sequence
from functools import partial

from icefloe.commit.added import FileGroup
from icefloe.commit.new_manifests import as_existing, concat_entries, form_of, write_entries
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import partition_order
from icefloe.commit.producer import Delta
from icefloe.errors import ValidationError
from icefloe.manifests import ManifestColumns, ManifestContent, ManifestFile
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
        self._content = content
        self._choose = choose

    @property
    def added(self) -> Sequence[FileGroup]:
        """None: all files are in the table."""
        return ()

    def apply(self, parent: Parent) -> Delta | None:
        """The manifests, the chosen ones replaced; nothing when there is nothing to gain."""
        live = [each for each in parent.manifests() if each.has_live_files]
        groups = self._groups(parent, live)
        if not groups:
            return None
        chosen = {each for members in groups for each in members}
        new: list[ManifestFile] = []
        for members in groups:
            key = ("rewritten", form_of(parent.metadata), tuple(members))
            new += parent.bench.remember(key, partial(self._rewrite, parent, members))
        _check_same_files(chosen, new)
        return Delta(
            Operation.REPLACE,
            (*new, *(each for each in live if each not in chosen)),
            replaced_manifests=len(chosen),
            entries_processed=sum(_live_files(each) for each in chosen),
        )

    def _groups(self, parent: Parent, live: Sequence[ManifestFile]) -> list[list[ManifestFile]]:
        """What is rewritten together: what was chosen in the first attempt, as long as it is still there."""
        planned = parent.bench.remember(("chosen", self), lambda: [each for each in live if self._is_chosen(each)])
        present = set(live)
        chosen = planned if present.issuperset(planned) else [each for each in live if self._is_chosen(each)]
        by_spec: dict[int, list[ManifestFile]] = {}
        for manifest in chosen:
            by_spec.setdefault(manifest.partition_spec_id, []).append(manifest)
        return [members for members in by_spec.values() if len(members) > 1]

    def _is_chosen(self, manifest: ManifestFile) -> bool:
        return manifest.content is self._content and (self._choose is None or self._choose(manifest))

    def _rewrite(self, parent: Parent, manifests: Sequence[ManifestFile]) -> tuple[ManifestFile, ...]:
        parts: list[ManifestColumns] = []
        for manifest in manifests:
            columns = parent.read(manifest)
            parts.append(columns.filter(columns.is_live))
        return tuple(
            manifest
            for together in concat_entries([each for each in parts if len(each)])
            for manifest in write_entries(parent, as_existing(together.take(partition_order(together))), self._content)
        )


def _live_files(manifest: ManifestFile) -> int:
    return (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)


def _check_same_files(before: set[ManifestFile], after: Sequence[ManifestFile]) -> None:
    """As many live files after as before: the last look at what is about to be committed."""
    had, has = sum(map(_live_files, before)), sum(map(_live_files, after))
    if had != has:
        raise ValidationError(f"manifests with {had} live files were rewritten to ones with {has}")
