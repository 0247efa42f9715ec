"""Handles of tables for statements, queries and micro-batches, which load their table each time.

Those that are loaded by one catalog share what was read of manifests, which never change: else every statement would read
all of its table's manifests.
"""

from collections.abc import MutableMapping, Sequence
from weakref import WeakKeyDictionary

from icefloe.catalog import Catalog
from icefloe.manifests import ManifestCache
from icefloe.table import Table

_READ: MutableMapping[Catalog, ManifestCache] = WeakKeyDictionary()


def load_again(catalog: Catalog, identifier: Sequence[str]) -> Table:
    """The table as it is now."""
    return catalog.load_table(tuple(identifier))._share(_READ.setdefault(catalog, ManifestCache()))
