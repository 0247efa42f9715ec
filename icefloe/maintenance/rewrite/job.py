"""What a rewrite of data files has to do, as values: the groups of a snapshot, and how their rows become new files."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from icefloe import errors, metadata as md, partitioning as pt, properties as props
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.maintenance.options import Options
from icefloe.maintenance.rewrite.file_sizes import FileSizes
from icefloe.maintenance.rewrite.options import OUTPUT_SPEC_ID
from icefloe.maintenance.rewrite.strategies import Strategy, strategy_of
from icefloe.versions import Feature, allows

PROCEDURE = "rewrite_data_files"
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class RewriteGroup:
    """Files that are rewritten together; their order is that of their numbers, from 1."""

    number: int
    spec_id: int
    partition: str
    """The partition as a path, for people."""
    files: tuple[str, ...]
    size_in_bytes: int
    record_count: int
    expected_files: int

    def __str__(self) -> str:
        where = self.partition or "the table"
        return (
            f"group {self.number}: {len(self.files)} files of {where} (spec {self.spec_id}),"
            f" {self.size_in_bytes / _MEBIBYTE:.1f} MiB, {self.record_count} rows -> about {self.expected_files} files"
        )


@dataclass(frozen=True, slots=True)
class RewriteJob:
    """Which files of one snapshot are rewritten, in which groups, and how."""

    table: MaintainedTable = field(compare=False, repr=False)
    table_uuid: str
    branch: str
    snapshot_id: int | None
    """The snapshot that files are read from; None of an empty table."""
    strategy: str | None
    sort_order: str | None
    where: str | None
    options: Options
    groups: tuple[RewriteGroup, ...]
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        total = sum(group.size_in_bytes for group in self.groups)
        how = self.sort_order or self.strategy or "binpack"
        head = (
            f"{PROCEDURE} by {how}: {self.file_count} files in {len(self.groups)} groups, {total / _MEBIBYTE:.1f} MiB,"
            f" of snapshot {self.snapshot_id} on {self.branch}"
        )
        return "\n".join([head, *map(str, self.groups)])

    @property
    def file_count(self) -> int:
        """How many files are rewritten."""
        return sum(len(group.files) for group in self.groups)

    @property
    def sizes(self) -> FileSizes:
        """The sizes that files should have."""
        return sizes_of(self.table.metadata, self.options)

    def output_spec(self, metadata: md.TableMetadata) -> pt.PartitionSpec:
        """The spec of new files."""
        return output_spec(metadata, self.options)

    def arrangement(self, metadata: md.TableMetadata) -> Strategy:
        """What is done with the rows."""
        return strategy_of(self.strategy, self.sort_order, metadata, self.options)


def sizes_of(metadata: md.TableMetadata, options: Options) -> FileSizes:
    """The sizes that files should have; by default those of the table."""
    return FileSizes.of(options, props.WRITE_TARGET_FILE_SIZE_BYTES.of(metadata.properties))


def output_spec(metadata: md.TableMetadata, options: Options) -> pt.PartitionSpec:
    """The spec of new files: the one that is asked for, or the current one."""
    spec_id = OUTPUT_SPEC_ID.of(options)
    if spec_id is None:
        return metadata.spec()
    spec = metadata.specs_by_id.get(spec_id)
    if spec is None:
        known = ", ".join(map(str, sorted(metadata.specs_by_id)))
        raise errors.InvalidPropertyError(
            f"option {OUTPUT_SPEC_ID.key!r} of {PROCEDURE} is {spec_id}; the table has the partition specs {known}"
        )
    return spec


def lacks_row_ids(metadata: md.TableMetadata, snapshot_id: int | None) -> bool:
    """Whether rows of the snapshot are of before an upgrade: they get their ids by the first commit after it, so that a
    rewrite of them must be one commit of one snapshot."""
    snapshot = None if snapshot_id is None else metadata.snapshot_by_id(snapshot_id)
    has_lineage = allows(metadata.format_version, Feature.ROW_LINEAGE)
    return has_lineage and snapshot is not None and snapshot.first_row_id is None
