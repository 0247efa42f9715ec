"""What a rewrite that is killed leaves behind, and how the next one finds it: a small file that says that a run is under way.

The file is there from before the first new data file until the run ends, and is renewed meanwhile, in a folder of its own, which
one request lists. Data files of a run have its name in their paths. Once a day has passed without a sign of life, the next run
deletes those of them that no snapshot needs; files of runs that left no such file are left to the removal of orphans.
"""

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from icefloe import commit as cm, errors, metadata as md, properties as props
from icefloe.commit import delete_quietly
from icefloe.data import data_folder
from icefloe.maintenance.files.reachable import live_content, manifests_of
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.storage import Storage, identity

LOG = logging.getLogger(__name__)

RUN = "icefloe.maintenance-run"
GROUP = "icefloe.maintenance-group"
"""What the summary of a snapshot says of the run that made it: its name, and the numbers of its groups."""
_FOLDER, _ENDING = "rewriting", ".rewrite.json"
_LOST_AFTER_MS = 86_400_000
"""A run that has not renewed its file for a day is dead, and so is any request that it sent."""
_RENEWED_AFTER_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Trace:
    """A run that may be under way."""

    storage: Storage
    location: str
    run: str
    data_folder: str
    written_ms: int
    _over: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)

    def write(self) -> None:
        """Say that the run is alive."""
        document = {"run": self.run, "data-folder": self.data_folder, "written-ms": cm.now_ms()}
        self.storage.write(self.location, json.dumps(document).encode())

    def check(self) -> None:
        """Fail if another run has taken this one for dead: it may have deleted its files."""
        if not self.storage.exists(self.location):
            raise errors.StateError(
                f"{self.location} is gone, so another run may have deleted the new files; nothing is committed"
            )

    def end(self) -> None:
        """Say no more that the run is alive."""
        self._over.set()

    def remove(self) -> None:
        """The run is over, and has left nothing behind."""
        self.end()
        delete_quietly(self.storage, [self.location], "about a rewrite that is over")

    def renew(self) -> None:
        """Say so again and again, until the run is over."""
        while not self._over.wait(_RENEWED_AFTER_SECONDS):
            with suppress(errors.IcefloeError):
                self.check()
                self.write()


@contextmanager
def traced(table: MaintainedTable, run: str) -> Iterator[Trace]:
    """Leave a trace of a run while it lasts; one that is killed cannot remove it."""
    metadata = table.metadata
    location = f"{_folder(metadata)}/{run}{_ENDING}"
    trace = Trace(table.storage, location, run, data_folder(metadata), cm.now_ms())
    trace.write()
    renewing = threading.Thread(target=trace.renew, name="icefloe-rewrite-trace", daemon=True)
    renewing.start()
    try:
        yield trace
    except Exception:
        trace.remove()
        raise
    else:
        trace.remove()
    finally:
        # What was interrupted keeps its file, which is renewed no more.
        trace.end()
        renewing.join()


def sweep_killed_runs(table: MaintainedTable) -> tuple[str, ...]:
    """Delete what dead runs have left and nothing needs; which files. What cannot be told is left alone."""
    if not props.GC_ENABLED.of(table.metadata.properties):
        return ()
    swept: list[str] = []
    try:
        for trace in _traces(table.metadata, table.storage):
            if cm.now_ms() - trace.written_ms > _LOST_AFTER_MS:
                swept += _sweep(table, trace)
    except errors.IcefloeError as error:
        LOG.warning("files of a rewrite that was killed are left to the removal of orphans: %s", error)
    return tuple(swept)


def _sweep(table: MaintainedTable, trace: Trace) -> list[str]:
    before = table.refresh().metadata
    named = (info.location for info in table.storage.list_prefix(trace.data_folder) if trace.run in info.location)
    left = {identity(location): location for location in named}
    # What was committed meanwhile is in the newest state, what expired meanwhile in the one before.
    for metadata in (before, table.refresh().metadata):
        left = {key: path for key, path in left.items() if not _is_committed(path, trace.run, metadata)}
        for path in _needed(metadata, table.storage) if left else ():
            left.pop(path, None)
    trace.remove()
    delete_quietly(table.storage, left.values(), "of a rewrite that was killed")
    return list(left.values())


def _needed(metadata: md.TableMetadata, storage: Storage) -> Iterator[str]:
    manifests = manifests_of(metadata, metadata.snapshots, storage)
    for paths, _ in live_content(metadata, manifests.values(), storage):
        yield from paths


def _is_committed(path: str, run: str, metadata: md.TableMetadata) -> bool:
    """Whether a summary says that the group of the file is part of a snapshot."""
    number = path.partition(f"{run}-")[2].split("-", 1)[0].split(".", 1)[0].split("/", 1)[0]
    summaries = (snapshot.summary for snapshot in metadata.snapshots if snapshot.summary is not None)
    groups = (summary.get(GROUP, "") for summary in summaries if summary.get(RUN) == run)
    return any(number.isdigit() and str(int(number)) in (text or "").split(",") for text in groups)


def _traces(metadata: md.TableMetadata, storage: Storage) -> Iterator[Trace]:
    for info in storage.list_prefix(_folder(metadata)):
        if not info.location.endswith(_ENDING):
            continue
        try:
            document = json.loads(storage.read(info.location))
            values = (str(document["run"]), str(document["data-folder"]), int(document["written-ms"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            LOG.warning("%s does not say which rewrite it is about: %s", info.location, error)
            continue
        yield Trace(storage, info.location, *values)


def _folder(metadata: md.TableMetadata) -> str:
    return f"{md.metadata_folder(metadata)}/{_FOLDER}"
