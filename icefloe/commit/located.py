"""Where the data files are that new deletes are about: their partition, rows and sequence number in the table as it is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.parent import Parent
from icefloe.commit.partitions import PartitionSet
from icefloe.errors import ValidationError
from icefloe.manifests import ManifestColumns, ManifestContent, ManifestFile, to_internal, wanted
from icefloe.metadata import TableMetadata
from icefloe.planning import ReplacedColumns, differing_types
from icefloe.storage import identity
from icefloe.storage.identities import identities

_PLACES = wanted("file_path")


@dataclass(frozen=True, slots=True)
class LocatedFile:
    """A data file of the table; one that the commit itself adds has no sequence number yet."""

    path: str
    """As the table spells it."""
    spec_id: int
    partition: tuple[Any, ...]
    record_count: int
    sequence_number: int | None


def locate(
    parent: Parent, paths: Iterable[str], partitions: PartitionSet | None, added: Sequence[ManifestColumns]
) -> dict[str, LocatedFile]:
    """The data files by the normal form of these paths, live ones and those that are added; an error if one is neither."""
    wanted_paths = pa.array(sorted(set(map(identity, paths))), pa.string())
    found: dict[str, LocatedFile] = {}
    for columns in added:
        found.update(_found(columns, wanted_paths))
    likely: list[ManifestFile] = []
    others: list[ManifestFile] = []
    for manifest in parent.manifests(ManifestContent.DATA):
        if manifest.has_live_files:
            (likely if partitions is None or partitions.may_be_in(manifest) else others).append(manifest)
    # A partition that was given wrongly must not hide the file: that error is told elsewhere, and better.
    for manifest in (*likely, *others):
        if len(found) == len(wanted_paths):
            break
        columns = parent.read(manifest, _PLACES)
        present = _found(columns.filter(columns.is_live), wanted_paths)
        if present:
            _check_types(columns, parent.metadata, next(iter(present)))
        found.update(present)
    missing = [path for path in wanted_paths.to_pylist() if path not in found]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ValidationError(
            f"rows of data file {missing[0]!r}{more} are deleted, but it is not in the table, or not any more"
        )
    return found


def check_types(parent: Parent, deletes: Iterable[ManifestColumns]) -> None:
    """Fail if there are data files that deletes, which do not say of which files they are, may be about and cannot be."""
    replaced = ReplacedColumns(parent.metadata, parent.metadata.schema())
    specs = [parent.metadata.spec(each) for each in {columns.spec_id for columns in deletes}]
    doubtful = {each.spec_id: each for each in specs if replaced.fields_ever(each)}
    for manifest in parent.manifests(ManifestContent.DATA) if doubtful else ():
        spec = doubtful.get(manifest.partition_spec_id)
        if spec is not None and manifest.has_live_files and replaced.fields(spec, manifest):
            columns = parent.read(manifest, _PLACES)
            columns = columns.filter(columns.is_live)
            if len(columns):
                _check_types(columns, parent.metadata, columns.column("file_path")[0].as_py())


def _check_types(columns: ManifestColumns, metadata: TableMetadata, path: str) -> None:
    """Fail if delete files cannot be in the partitions of these data files, which the types of now cannot say."""
    unlike = differing_types(columns.partition_type, metadata.partition_type(columns.spec_id))
    if unlike:
        fields = ", ".join(f"{each.name!r}" for each in columns.partition_type.fields if each.field_id in unlike)
        raise ValidationError(
            f"rows of data file {path!r} cannot be deleted: it was written when the column of partition field {fields} was"
            " of another type, before the table was replaced; remove whole files, or work on a branch made since"
        )


def _found(columns: ManifestColumns, paths: Any) -> dict[str, LocatedFile]:
    names = identities(columns.column("file_path"))
    is_wanted = pc.is_in(names, value_set=paths)
    chosen, names = columns.filter(is_wanted), names.filter(is_wanted)
    if not len(chosen):
        return {}
    values = [
        to_internal(chosen.partition[each.field_id], each.field_type)
        if each.field_id in chosen.partition
        else [None] * len(chosen)
        for each in chosen.partition_type.fields
    ]
    tuples = list(zip(*values, strict=True)) if values else [()] * len(chosen)
    return {
        name: LocatedFile(path, chosen.spec_id, tuples[row], rows, number)
        for row, (name, path, rows, number) in enumerate(
            zip(
                names.to_pylist(),
                chosen.column("file_path").to_pylist(),
                chosen.column("record_count").to_pylist(),
                chosen.column("sequence_number").to_pylist(),
                strict=True,
            )
        )
    }
