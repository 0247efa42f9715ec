"""Which files of a commit that happened it does not need: if anything is in doubt, none is named."""

from collections.abc import Sequence

from icefloe.commit.outcome import Committed
from icefloe.commit.parent import list_location, manifests_of, read_entries
from icefloe.commit.producer import committed_manifests
from icefloe.commit.workbench import Workbench
from icefloe.manifests import WITHOUT_METRICS, FileContent, ManifestContent
from icefloe.storage import identity
from icefloe.storage.identities import identities
from icefloe.versions import Feature, allows


def of_failed_attempts(outcome: Committed, bench: Workbench) -> set[str]:
    """Manifests and manifest lists that only failed attempts needed."""
    metadata = outcome.state.metadata
    leftovers = {location for location in bench.written if location.endswith(".avro")}
    if bench.attempt == 1 or not leftovers:
        return set()
    try:
        for snapshot in map(metadata.snapshot_by_id, outcome.snapshot_ids):
            place = None if snapshot is None else list_location(snapshot, metadata)
            if snapshot is None or place is None:
                return set()
            leftovers -= {place, *committed_manifests(snapshot, metadata, bench)}
    except Exception:  # noqa: BLE001 - the commit happened; what cannot be read only keeps leftovers alive
        return set()
    return leftovers


def position_deletes_left_out(outcome: Committed, bench: Workbench, snapshot_ids: Sequence[int]) -> set[str]:
    """The position delete files that were written for these snapshots, and that the commit did without.

    If the table was upgraded meanwhile, it has taken what they hold as deletion vectors.
    """
    metadata = outcome.state.metadata
    positions = (each for each in bench.row_files if each.content is FileContent.POSITION_DELETES)
    unnamed = {identity(each.file_path): each.file_path for each in positions if not each.is_deletion_vector}
    if not unnamed or allows(metadata.format_version, Feature.NEW_POSITION_DELETE_FILES):
        return set()
    try:
        # A transaction may delete rows first and upgrade the table then: what is named stays, whatever the version.
        for snapshot in map(metadata.snapshot, snapshot_ids):
            for manifest in manifests_of(snapshot, metadata, bench):
                if manifest.content is ManifestContent.DELETES:
                    columns = read_entries(manifest, metadata, bench, WITHOUT_METRICS)
                    for each in unnamed.keys() & set(identities(columns.column("file_path")).to_pylist()):
                        del unnamed[each]
    except Exception:  # noqa: BLE001 - the commit happened; what cannot be read only keeps leftovers alive
        return set()
    return set(unnamed.values())
