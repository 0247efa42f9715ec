"""Decides how tables live in a file system without anything beside it: the folder is the name, the highest version the table.

A commit creates `v<N+1>.metadata.json`, which exactly one writer can. The newest version is the highest one listed;
`version-hint.text` is written for other programs, and never read. Old versions are not deleted, whatever the table asks
for: a version number that became free could be taken once more by a writer that was slow, and its commit would be lost.
"""

import re
from collections.abc import Mapping
from typing import NoReturn

from icefloe import commit as cm, errors, metadata as md, properties as props
from icefloe.catalog.catalog import Catalog
from icefloe.catalog.committers import CatalogCommitter
from icefloe.catalog.identifiers import Identifier, show
from icefloe.catalog.seals import refuse_unkept
from icefloe.catalog.table_files import LOG, check_purgeable, compression_for, read_table_metadata
from icefloe.commit import delete_quietly
from icefloe.storage import absolute_location, parse_location, same_location
from icefloe.versions import Feature, require

VERSION_HINT = "version-hint.text"
"""The file that tells other programs a version to begin their search at."""

_ENDINGS = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
"""Of two files of one version, the one whose ending comes first counts, as in the Java library."""
_VERSION_FILE = re.compile(rf"v([0-9]{{1,18}})({'|'.join(re.escape(ending) for ending in _ENDINGS)})")


class HadoopCatalog(Catalog):
    """Tables as folders of a warehouse, for stores that can create a file exclusively; v1 to v3, no views."""

    _sees_every_commit = True

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        super().__init__(name, properties)
        if self._warehouse is None:
            raise errors.InvalidPropertyError(
                f"catalog {name!r} of type hadoop has no `warehouse`; set it to the folder that contains its tables"
            )

    def _check_name(self, identifier: Identifier) -> None:
        for part in identifier:
            if "/" in part or "\\" in part or set(part) == {"."}:
                raise errors.InvalidInputError(
                    f"{show(identifier)} has the part {part!r}, which cannot be the name of a folder"
                )

    def _folder(self, identifier: Identifier) -> str:
        self._check_name(identifier)
        return "/".join((str(self._warehouse).rstrip("/"), *identifier))

    def _default_location(self, identifier: Identifier) -> str:
        return self._folder(identifier)

    def _given_location(self, identifier: Identifier, location: str) -> str:
        folder = self._folder(identifier)
        if not same_location(absolute_location(location).rstrip("/"), folder):
            raise errors.InvalidLocationError(
                f"table {show(identifier)} cannot be at {location!r}: a catalog of type hadoop stores it at {folder!r}"
            )
        return folder

    # Namespaces

    def _namespace_exists(self, namespace: Identifier) -> bool:
        if any(self._has_table(namespace[:depth]) for depth in range(1, len(namespace) + 1)):
            return False
        return namespace[-1] in self._storage.list_folders(self._folder(namespace[:-1]))

    def _create_namespace(self, namespace: Identifier, properties: dict[str, str]) -> None:
        if properties:
            self._refuse_properties(namespace)
        for depth in range(1, len(namespace) + 1):
            if self._has_table(namespace[:depth]):
                raise errors.TableAlreadyExistsError(
                    f"{show(namespace[:depth])} is a table, so it cannot be a namespace"
                )
        self._storage.make_folder(self._folder(namespace))

    def _drop_namespace(self, namespace: Identifier) -> None:
        self._storage.remove_folder(self._folder(namespace))
        if self._namespace_exists(namespace):
            raise errors.NamespaceNotEmptyError(f"the folder of namespace {show(namespace)} still contains files")

    def _child_namespaces(self, parent: Identifier) -> set[Identifier]:
        return {child for child in self._children(parent) if not self._has_table(child)}

    def _children(self, parent: Identifier) -> set[Identifier]:
        return {(*parent, name) for name in self._storage.list_folders(self._folder(parent))}

    def _load_namespace(self, namespace: Identifier) -> dict[str, str]:
        return {"location": self._folder(namespace)}

    def _change_namespace(
        self,
        namespace: Identifier,
        removals: frozenset[str],  # noqa: ARG002 - refused whatever they are
        updates: dict[str, str],  # noqa: ARG002 - the same
    ) -> dict[str, str]:
        self._refuse_properties(namespace)

    def _refuse_properties(self, namespace: Identifier) -> NoReturn:
        raise errors.InvalidInputError(
            f"namespace {show(namespace)} cannot have properties: in a catalog of type hadoop it is only a folder"
        )

    # Tables

    def _versions(self, identifier: Identifier) -> list[tuple[int, str]]:
        """The metadata files by version, the newest last."""
        folder = f"{self._folder(identifier)}/metadata"
        path = parse_location(folder).path
        versions = []
        for info in self._storage.list_prefix(folder):
            # By paths: one file can be written as a location in several ways.
            parent, _, name = parse_location(info.location).path.rpartition("/")
            if parent == path and (match := _VERSION_FILE.fullmatch(name)):
                versions.append((int(match[1]), -_ENDINGS.index(match[2]), f"{folder}/{name}"))
        return [(version, location) for version, _, location in sorted(versions)]

    def _has_table(self, identifier: Identifier) -> bool:
        return bool(self._versions(identifier))

    def _table_names(self, namespace: Identifier) -> set[Identifier]:
        return {child for child in self._children(namespace) if self._has_table(child)}

    def _metadata_location(self, identifier: Identifier) -> str | None:
        versions = self._versions(identifier)
        return versions[-1][1] if versions else None

    def _table_state(self, identifier: Identifier) -> cm.TableState | None:
        versions = self._versions(identifier)
        if not versions:
            return None
        _, location = versions[-1]
        metadata = read_table_metadata(self._storage, location)
        _check_version(metadata, identifier)
        return cm.TableState(metadata, location)

    def _create_table(self, identifier: Identifier, metadata: md.TableMetadata) -> cm.TableState:
        self._check_storable(identifier, metadata)
        self._check_free(identifier)
        # Never compressed, so that there is one name that all who create the table compete for.
        try:
            return self._store(identifier, metadata, 1, md.MetadataCompression.NONE)
        except errors.CommitFailed:
            raise errors.TableAlreadyExistsError(
                f"table {show(identifier)} was created by another writer at the same time"
            ) from None

    def _store(
        self, identifier: Identifier, metadata: md.TableMetadata, version: int, compression: md.MetadataCompression
    ) -> cm.TableState:
        """Make the metadata the table's version of that number: this is the commit."""
        folder = f"{self._folder(identifier)}/metadata"
        location = f"{folder}/{md.versioned_file_name(version, compression)}"
        data = md.encode_metadata_file(metadata, compression)
        try:
            self._storage.create_exclusive(location, data)
        except errors.LocationExistsError:
            # A request may have been sent twice by something on the way: then the file is ours.
            if not self._is_ours(location, data):
                raise errors.CommitFailed(f"another writer committed first: {location} exists") from None
        except errors.NothingStoredError:
            raise
        except errors.StorageError as error:
            self._find_out(location, data, error)
        self._write_hint(folder, version)
        return cm.TableState(metadata, location)

    def _is_ours(self, location: str, data: bytes) -> bool:
        try:
            return self._storage.read(location) == data
        except errors.StorageError:
            return False

    def _find_out(self, location: str, data: bytes, error: errors.StorageError) -> None:
        """After a create whose outcome is open: return if our file is there, and say what is known if it is not."""
        try:
            stored = self._storage.read(location)
        except errors.StorageError as problem:
            is_missing = isinstance(problem, errors.LocationNotFoundError)
            seen = "it is not there yet" if is_missing else f"reading it failed: {problem}"
            raise errors.CommitStateUnknown(f"it is unknown whether {location} was created: {error}; {seen}") from error
        if stored != data:
            raise errors.CommitFailed(f"another writer committed first: {location} exists") from error

    def _write_hint(self, folder: str, version: int) -> None:
        try:
            self._storage.write(f"{folder}/{VERSION_HINT}", str(version).encode())
        except Exception as error:  # noqa: BLE001 - the commit happened, and nobody depends on the hint
            LOG.warning("the version hint was not written: %s", error)

    def _check_storable(self, identifier: Identifier, metadata: md.TableMetadata) -> None:
        """Fail unless the metadata may be a version of a table in a file system."""
        _check_version(metadata, identifier)
        folder = self._folder(identifier)
        if metadata.location is None or not same_location(metadata.location, folder):
            raise errors.InvalidLocationError(
                f"table {show(identifier)} cannot move to {metadata.location!r}: the location follows from its name, {folder!r}"
            )
        if props.METADATA_PATH.of(metadata.properties) is not None:
            raise errors.InvalidPropertyError(
                f"property {props.METADATA_PATH.key!r} cannot be set on table {show(identifier)}: a file-system table is"
                " identified by its metadata folder"
            )
        if not self._storage.supports_exclusive_create(f"{folder}/metadata/{md.versioned_file_name(1)}"):
            raise errors.InvalidLocationError(
                f"{folder!r} cannot hold file-system tables: its storage does not support exclusive creation, so commits of"
                " two writers could not be distinguished; use a catalog of type sql"
            )

    def _register_table(self, identifier: Identifier, state: cm.TableState, current: cm.TableState | None) -> None:  # noqa: ARG002 - refused in any case
        raise errors.InvalidInputError(
            f"{show(identifier)} cannot be registered: a catalog of type hadoop determines the location of a table by its name"
        )

    def _rename_table(self, source: Identifier, target: Identifier) -> None:  # noqa: ARG002 - refused in any case
        raise errors.InvalidInputError(
            f"table {show(source)} cannot be renamed: a catalog of type hadoop uses the folder as the name"
        )

    def _drop_table(self, identifier: Identifier, state: cm.TableState | None) -> bool:
        """Delete the folder with all that is in it: the table is not known by anything else."""
        current = self._table_state(identifier)
        if current is None or (state is not None and state.metadata_location != current.metadata_location):
            return False
        check_purgeable(identifier, current.metadata)
        folder = self._folder(identifier)
        # The newest goes last: before that the table is whole, after it there is none; never an older one.
        for _, location in self._versions(identifier):
            for failure in self._storage.delete([location]):
                raise failure.error
        delete_quietly(
            self._storage, [info.location for info in self._storage.list_prefix(folder)], "of a dropped table"
        )
        self._remove_folders(folder)
        return True

    def _remove_folders(self, folder: str) -> None:
        try:
            for name in self._storage.list_folders(folder):
                self._remove_folders(f"{folder}/{name}")
            self._storage.remove_folder(folder)
        except errors.StorageError as error:
            LOG.warning("an empty folder of a dropped table stays behind: %s", error)

    def _committer(self, identifier: Identifier) -> "HadoopCommitter":
        return HadoopCommitter(self, identifier)

    def _current(self, identifier: Identifier, base: cm.TableState) -> tuple[int, cm.TableState]:
        """The newest version, which must be the base."""
        versions = self._versions(identifier)
        if not versions:
            raise self._no_table(identifier)
        version, location = versions[-1]
        if location != base.metadata_location:
            raise errors.StaleBaseError(cm.stale(show((self._name, *identifier)), base.metadata_location, location))
        # Read again, even if the base has the same name: another table may have replaced a dropped one.
        return version, cm.TableState(read_table_metadata(self._storage, location), location)

    def __reduce__(self) -> tuple[type["HadoopCatalog"], tuple[str, dict[str, str]]]:
        return HadoopCatalog, (self._name, {**self._properties, "warehouse": str(self._warehouse)})


class HadoopCommitter(CatalogCommitter):
    """One table of such a catalog, as commits see it."""

    _catalog: HadoopCatalog

    def commit(self, base: cm.TableState, prepared: cm.Prepared, before_swap: cm.BeforeSwap) -> cm.TableState:
        """One attempt to create the next version of the table: see `Committer.commit`."""
        catalog, identifier = self._catalog, self._identifier
        try:
            version, current = catalog._current(identifier, base)
            cm.check_same_table(base.metadata, current.metadata, self.name)
            changed = md.apply_all(
                current.metadata, prepared.updates, cm.now_ms(), current.metadata_location, prepared.requirements
            )
            if changed is current.metadata:
                return current
            catalog._check_storable(identifier, changed)
        except (errors.StorageError, errors.CorruptFileError) as error:
            raise errors.CommitFailed(
                f"the commit to {self.name} was not started; nothing was changed: {error}"
            ) from error
        # As the base says, not the new metadata: all who build on one version must compete for one name.
        compression = compression_for(current.metadata.properties)
        before_swap()
        try:
            return catalog._store(identifier, changed, version + 1, compression)
        except errors.NothingStoredError as error:
            raise errors.CommitFailed(f"table {self.name} was not changed: {error}") from error


def _check_version(metadata: md.TableMetadata, identifier: Identifier) -> None:
    refuse_unkept(metadata, show(identifier), "hadoop")
    require(
        metadata.format_version, Feature.FILE_SYSTEM_TABLES, f"table {show(identifier)} in a catalog of type hadoop"
    )
