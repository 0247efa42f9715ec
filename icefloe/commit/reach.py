"""Whether equality deletes that came meanwhile delete the same rows of new files as of the files that these replace.

New files that carry the sequence number of the plan are older than such deletes, so these still hold for them; but only in
their own spec and partition, and by the values of their key columns (spec: Scan Planning).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import manifests as mf, metadata as md
from icefloe.commit.partitions import Mask, PartitionSet


@dataclass(frozen=True, slots=True, eq=False)
class Replacement:
    """Where the rows of replaced files were and are now, and which columns of theirs new files cannot have."""

    before: PartitionSet
    after: PartitionSet
    unpartitioned: frozenset[int]
    """The specs whose equality deletes hold in all partitions."""
    lost: pa.Array

    @staticmethod
    def of(
        replaced: Sequence[mf.ManifestColumns],
        new: Sequence[mf.ManifestColumns],
        written: md.TableMetadata,
        now: md.TableMetadata,
    ) -> "Replacement":
        """The new files were written for the table as `written` has it, and go into it as it is now."""
        kept = written.schema().fields_by_id
        return Replacement(
            PartitionSet.of(replaced),
            PartitionSet.of(new),
            frozenset(spec.spec_id for spec in now.partition_specs if spec.is_unpartitioned),
            # A column that came later is in neither the old files nor the new ones.
            pa.array([each for each in range(1, written.last_column_id + 1) if each not in kept], pa.int32()),
        )

    def changes(self, deletes: mf.ManifestColumns) -> Mask:
        """Which equality deletes may delete other rows than before: some that they did not, or not all that they did."""
        if not len(self.after):
            return np.zeros(len(deletes), bool)
        if deletes.spec_id in self.unpartitioned:
            return self._by_lost_key(deletes)
        before, after = self.before.mask(deletes), self.after.mask(deletes)
        if self.before.members.keys() | self.after.members.keys() != {deletes.spec_id}:
            # Rows may have left the spec or come into it, and nobody knows which ones.
            return before | after
        return (before ^ after) | (before & self._by_lost_key(deletes))

    def _by_lost_key(self, deletes: mf.ManifestColumns) -> Mask:
        """Which of them compare a column that old files may have and new ones cannot."""
        keys = deletes.column("equality_ids")
        is_lost = pc.is_in(pc.list_flatten(keys), value_set=self.lost)
        return np.isin(np.arange(len(deletes)), pc.list_parent_indices(keys).filter(is_lost).to_numpy())
