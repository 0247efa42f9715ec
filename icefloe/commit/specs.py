"""Under which spec of the table new files go: theirs may be gone since they were written, or have another id by now.

Files say their spec by its id, and an id can be given again after a spec was removed; so specs are told by their fields.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from icefloe.commit.added import FileGroup, check_delete_files
from icefloe.errors import InvalidInputError, InvalidPartitionSpecError, ValidationError
from icefloe.metadata import TableMetadata, add_spec, updates as up
from icefloe.partitioning import PartitionSpec


@dataclass(frozen=True, slots=True)
class WithSpecs:
    """Metadata that has the specs of all new files, and the updates that add those that it lacked."""

    metadata: TableMetadata
    updates: tuple[up.AddPartitionSpecUpdate, ...] = ()


def with_specs(metadata: TableMetadata, groups: Iterable[FileGroup]) -> WithSpecs:
    """The metadata with the specs of these files; one that others removed comes back, though not as the default.

    A spec is removed only when no file needs it, which these files do: without it, nobody could read the table.
    """
    found, updates = metadata, []
    for group in groups:
        if len(group.columns) and _find(found, group.spec) is None:
            try:
                found, _ = add_spec(found, group.spec)
            except InvalidPartitionSpecError as error:
                raise ValidationError(
                    f"the files were written for partition spec {group.spec}, which another commit removed, and which the"
                    f" table cannot have again: {error}; write them anew"
                ) from error
            updates.append(up.AddPartitionSpecUpdate(group.spec))
    return WithSpecs(found, tuple(updates))


def check_still_taken(metadata: TableMetadata, deletes: Iterable[FileGroup]) -> None:
    """Fail if the table does not take the delete files any more: it was upgraded, or has lost a column, since they were given."""
    for group in deletes:
        try:
            check_delete_files(group.columns, metadata)
        except InvalidInputError as error:
            raise ValidationError(
                f"the table was changed by another commit since this one was planned: {error}; plan it anew"
            ) from error


def fitted(metadata: TableMetadata, groups: Sequence[FileGroup]) -> tuple[FileGroup, ...]:
    """The files under the ids that their specs have in this metadata, which must have them."""
    return tuple(_fitted(metadata, group) if len(group.columns) else group for group in groups)


def _fitted(metadata: TableMetadata, group: FileGroup) -> FileGroup:
    spec = _find(metadata, group.spec)
    assert spec is not None, f"{group.spec} was to be added"
    if spec.spec_id == group.spec_id and spec.fields == group.spec.fields:
        return group
    ids = {old.field_id: new.field_id for old, new in zip(group.spec.fields, spec.fields, strict=True)}
    columns = replace(
        group.columns,
        spec_id=spec.spec_id,
        partition_type=metadata.partition_type(spec.spec_id),
        partition={ids[field_id]: values for field_id, values in group.columns.partition.items()},
    )
    return replace(group, columns=columns, spec=spec)


def _find(metadata: TableMetadata, spec: PartitionSpec) -> PartitionSpec | None:
    """The spec of the table that is the same: under the same id if it can be, else under any."""
    same = metadata.specs_by_id.get(spec.spec_id)
    if same is not None and same.equivalent(spec):
        return same
    return next((each for each in metadata.partition_specs if each.equivalent(spec)), None)
