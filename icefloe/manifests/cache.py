"""Decoded manifests and their lists, kept in memory up to a bound: neither changes, so a location is as good as content."""

from collections.abc import Hashable

from icefloe.bounded_cache import BoundedCache
from icefloe.errors import InvalidInputError
from icefloe.manifests.columns import ManifestColumns
from icefloe.manifests.values import ManifestFile

DEFAULT_CACHE_BYTES = 256 << 20
_LISTS_KEPT = 64

ManifestLists = BoundedCache[str, tuple[ManifestFile, ...]]
"""Manifests by the location of their list."""


def manifest_lists() -> ManifestLists:
    """Room for the manifest lists used last."""
    return BoundedCache(_LISTS_KEPT)


class ManifestCache(BoundedCache[Hashable, ManifestColumns]):
    """The manifests used last, as many as fit in `capacity` bytes, and some lists.

    Keys must hold all that the columns depend on: location, wanted columns, and what was inherited.
    """

    def __init__(self, capacity: int = DEFAULT_CACHE_BYTES) -> None:
        if capacity < 0:
            raise InvalidInputError(f"a cache cannot hold {capacity} bytes")
        super().__init__(capacity, lambda columns: columns.nbytes)
        self.lists = manifest_lists()

    def clear(self) -> None:
        """Let go of everything."""
        super().clear()
        self.lists.clear()
