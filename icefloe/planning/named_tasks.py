"""Which deletes applied to some data files in a snapshot: their tasks, found by path and whole."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import expressions as ex, manifests as mf, metadata as md
from icefloe.planning.options import scan_options
from icefloe.planning.plan import Plan, PlanRequest, Progress, live_entries
from icefloe.planning.reading import ManifestSource
from icefloe.planning.report import LoggingReporter
from icefloe.planning.scan import schema_of_scan
from icefloe.planning.tasks import FileScanTask
from icefloe.storage import Storage, identities


def tasks_of_files(
    paths: pa.Array,
    snapshot: md.Snapshot,
    metadata: md.TableMetadata,
    storage: Storage,
    cache: mf.ManifestCache | None = None,
) -> list[FileScanTask]:
    """The tasks of the data files of a snapshot that have one of these paths, which are in their normal form."""
    schema = schema_of_scan(metadata, snapshot, None, is_past=True)
    source = ManifestSource(metadata, storage, snapshot.snapshot_id, schema, cache)

    def named(columns: mf.ManifestColumns) -> ex.Mask:
        is_named: ex.Mask = np.asarray(pc.is_in(identities(columns.column("file_path")), value_set=paths))
        return live_entries(columns) & is_named

    options = scan_options({}, metadata.properties)
    request = PlanRequest(source, ex.AlwaysTrue(), options, lambda: source.manifests(snapshot), entries=named)
    return list(Plan(Progress(request, (), LoggingReporter())).tasks())
