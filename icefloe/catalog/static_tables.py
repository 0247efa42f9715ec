"""Decides what a table is that is named by its location alone: what a metadata file says, to be read and not changed."""

from collections.abc import Mapping

from icefloe import commit as cm, errors, metadata as md
from icefloe.catalog import table_files
from icefloe.metadata.files import parse_metadata_version
from icefloe.storage import Storage, absolute_location
from icefloe.table import Table

_ENDINGS = (".metadata.json", ".metadata.json.gz")


class StaticCommitter:
    """A table that no catalog is asked for: it stays what its metadata file says."""

    def __init__(self, storage: Storage, location: str) -> None:
        self._storage = storage
        self._location = location

    @property
    def storage(self) -> Storage:
        """Where the table's files are."""
        return self._storage

    @property
    def name(self) -> str:
        """The location, for messages."""
        return self._location

    def load(self) -> cm.TableState:
        """What the file says."""
        return cm.TableState(table_files.read_table_metadata(self._storage, self._location), self._location)

    def commit(self, base: cm.TableState, prepared: cm.Prepared, before_swap: cm.BeforeSwap) -> cm.TableState:  # noqa: ARG002 - refused
        """Refused: there is no catalog that could say that the table changed."""
        raise errors.UnsupportedOperationError(
            f"{self._location} is a table without a catalog, which is read-only; register it with register_table first"
        )


def load_static_table(location: str, properties: Mapping[str, str] | None = None) -> Table:
    """The table of a metadata file, or of a table's folder, by the metadata file of the highest version in it.

    Args:
        location: the file or the folder, as a path or with a scheme.
        properties: those of the storage, such as `s3.endpoint`.

    In a folder of a table that a catalog has, the highest version may be of a commit that did not happen: name the file.
    """
    storage = Storage(table_files.storage_properties(properties or {}))
    absolute = absolute_location(location)
    file = absolute if absolute.endswith(_ENDINGS) else _newest(storage, md.strip_trailing_slash(absolute))
    committer = StaticCommitter(storage, file)
    try:
        state = committer.load()
    except errors.LocationNotFoundError as error:
        raise errors.NoSuchTableError(f"no metadata file {file}") from error
    folder = (state.metadata.location or file).rstrip("/").rpartition("/")[2]
    return Table((folder,), state, committer)


def _newest(storage: Storage, folder: str) -> str:
    files = [info.location for info in storage.list_prefix(f"{folder}/metadata") if info.location.endswith(_ENDINGS)]
    versions = {file: -1 if (version := parse_metadata_version(file)) is None else version for file in files}
    highest = [file for file, version in versions.items() if version == max(versions.values())]
    if not highest:
        raise errors.NoSuchTableError(f"{folder} has no table metadata files in `metadata/`")
    if len(highest) > 1:
        raise errors.InvalidLocationError(
            f"{folder} has {len(highest)} metadata files of the same version, such as {min(highest)}; give the path of the right one"
        )
    return highest[0]
