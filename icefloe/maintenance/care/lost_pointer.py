"""Which metadata file is the newest of a table whose catalog entry is lost: the one that leads to all others, if there is one.

A metadata file names those before it in its log. The files of one table that no other names are its tips; two of them mean that
two commits were prepared on one state, of which the catalog took one. Which one, files tell only if somebody has built on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from icefloe import errors, metadata as md
from icefloe.progress import Listener
from icefloe.storage import Storage, absolute_location, identity
from icefloe.verification import Level, VerificationReport, verify

_ENDINGS = (".metadata.json", ".metadata.json.gz")


@dataclass(frozen=True)
class LostTable:
    """What metadata files say of a table that no catalog has; `tips` are those that no other file names."""

    location: str
    tips: tuple[str, ...]
    evidence: tuple[str, ...]
    report: VerificationReport | None = field(default=None, repr=False)
    """How the table is by the newest metadata file, if there is exactly one."""

    @property
    def metadata_location(self) -> str:
        """The newest metadata file; an error if that is not certain."""
        if len(self.tips) != 1:
            raise errors.StateError(
                f"{self}\nregister the right one by hand, if you know which: catalog.register_table"
            )
        return self.tips[0]

    def __str__(self) -> str:
        return "\n".join(self.evidence)


def find_lost_table(storage: Storage, location: str, progress: Listener | None = None) -> LostTable:
    """Look for the newest metadata file under a table's location; nothing is changed."""
    folder = absolute_location(location)
    files, evidence = _metadata_files(storage, folder)
    uuids = {str(metadata.table_uuid) for metadata in files.values()}
    if len(uuids) > 1:
        evidence.append(f"there are files of {len(uuids)} tables ({', '.join(sorted(uuids))}); none of them is chosen")
        return LostTable(folder, tuple(sorted(files)), tuple(evidence))
    tips = _tips(files)
    if not files:
        evidence.append(f"no metadata file of a table is under {folder}")
    elif len(tips) == 1:
        evidence.append(f"{tips[0]} is named by no other of {len(files)} metadata files, and leads to the rest")
    else:
        evidence.append(f"{len(tips)} of {len(files)} metadata files are named by no other: {', '.join(tips)}")
    report = None
    if len(tips) == 1:
        report = verify(files[tips[0]], storage, tips[0], level=Level.FILES, progress=progress)
        evidence.append(f"by it the table has {_shown(files[tips[0]])}; {report}")
    return LostTable(folder, tips, tuple(evidence), report)


def _metadata_files(storage: Storage, folder: str) -> tuple[dict[str, md.TableMetadata], list[str]]:
    files: dict[str, md.TableMetadata] = {}
    problems: list[str] = []
    for info in storage.list_prefix(folder):
        if not info.location.endswith(_ENDINGS):
            continue
        try:
            metadata = md.decode_metadata_file(storage.read(info.location), storage.limits)
            files[info.location] = metadata.located(info.location)
        except errors.IcefloeError as error:
            problems.append(f"{info.location} cannot be read, and does not count: {error}")
    return files, problems


def _tips(files: Mapping[str, md.TableMetadata]) -> tuple[str, ...]:
    """The files that no other names, without those of commits that certainly lost: their base had another successor, on which
    somebody has built since."""
    named = {identity(each) for metadata in files.values() for each in _log(metadata)}
    went_on = {
        base for location, metadata in files.items() if (base := _base(metadata)) and identity(location) in named
    }
    tips = (location for location in files if identity(location) not in named)
    return tuple(sorted(tip for tip in tips if _base(files[tip]) not in went_on))


def _base(metadata: md.TableMetadata) -> str | None:
    """The metadata file that a commit was prepared on; None of a table's first."""
    log = _log(metadata)
    return identity(log[-1]) if log else None


def _log(metadata: md.TableMetadata) -> list[str]:
    return [metadata.resolve(entry.metadata_file) for entry in metadata.metadata_log]


def _shown(metadata: md.TableMetadata) -> str:
    snapshot = metadata.current_snapshot_id
    return f"{len(metadata.snapshots)} snapshots, the current one {snapshot}, changed at {metadata.last_updated_ms}"
