"""Whether the entries of one manifest are what its list says of it, and each one what an entry must be."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, manifests as mf
from icefloe.schema import IcebergType, NestedField, decode_bound, types
from icefloe.verification.codes import Code
from icefloe.verification.digest import FileKind, Mask, kinds_of
from icefloe.verification.subject import Subject
from icefloe.versions import Feature, allows


class EntryCheck:
    """One manifest, its entries, and the first of the snapshots that list it."""

    def __init__(
        self,
        subject: Subject,
        manifest: mf.ManifestFile,
        columns: mf.ManifestColumns,
        snapshot_id: int,
        is_inline: bool,
    ) -> None:
        self._subject = subject
        self._manifest = manifest
        self._columns = columns
        self._snapshot_id = snapshot_id
        self._is_inline = is_inline
        self._kinds = kinds_of(columns)

    def run(self) -> None:
        """Check everything."""
        self._counts()
        self._summaries()
        self._sequence_numbers()
        self._snapshots()
        self._ids()
        self._delete_fields()
        self._locations()

    def _say(self, code: Code, message: str) -> None:
        self._subject.findings.add(code, message, self._manifest.manifest_path, self._snapshot_id)

    def _each(self, code: Code, is_wrong: Mask, message: str) -> None:
        """One finding for each entry that is marked."""
        self._subject.findings.add_each(code, is_wrong, message, self._path, self._snapshot_id)

    def _path(self, index: int) -> str:
        return str(self._columns.column("file_path")[index].as_py())

    def _counts(self) -> None:
        wrong = [
            f"{name} is {recorded} and should be {count}"
            for name, count in mf.count_entries(self._columns).items()
            if (recorded := getattr(self._manifest, name)) not in (None, count)
        ]
        if wrong:
            self._say(Code.MANIFEST_COUNTS, ", ".join(wrong))

    def _summaries(self) -> None:
        summaries = self._manifest.partitions
        fields = self._columns.partition_type.fields
        if summaries is None:
            return
        if len(summaries) != len(fields):
            self._say(Code.MANIFEST_SUMMARY, f"it has {len(summaries)} partition summaries for {len(fields)} fields")
            return
        live = self._columns.is_live
        for field, summary in zip(fields, summaries, strict=True):
            column = self._columns.partition.get(field.field_id)
            if column is not None and not isinstance(field.field_type, types.UnknownType):
                self._summary(field, summary, column.filter(live))

    def _summary(self, field: NestedField, recorded: mf.PartitionFieldSummary, values: pa.Array) -> None:
        for problem in _summary_problems(field.field_type, recorded, values):
            self._say(Code.MANIFEST_SUMMARY, f"the summary of partition field {field.name!r} {problem}")

    def _sequence_numbers(self) -> None:
        smallest = mf.min_sequence_number(self._columns)
        if 0 <= smallest < self._manifest.min_sequence_number:
            recorded = self._manifest.min_sequence_number
            message = f"its smallest sequence number is {smallest}, not {recorded} as its list says"
            self._say(Code.MANIFEST_SEQUENCE, message)
        numbers, added = (self._columns.column(name) for name in ("sequence_number", "file_sequence_number"))
        unknown = pc.or_(pc.is_null(numbers), pc.is_null(added))
        self._each(Code.ENTRY_SEQUENCE, _mask(unknown), "it is not new in its manifest and has no sequence number")
        limit = self._manifest.sequence_number
        late = pc.or_(pc.greater(numbers, limit), pc.greater(added, limit))
        self._each(Code.ENTRY_SEQUENCE, _mask(late), f"its sequence number is above {limit}, that of its manifest")
        early = pc.and_(pc.greater(numbers, added), pc.less_equal(numbers, limit))
        self._each(Code.ENTRY_SEQUENCE, _mask(early), "its data are of a later sequence number than the file itself")

    def _snapshots(self) -> None:
        if self._is_inline:
            # Nothing says who wrote a manifest that a snapshot of v1 names itself.
            return
        owner = self._manifest.added_snapshot_id
        is_other = pc.not_equal(self._columns.column("snapshot_id"), owner)
        is_changed = pc.not_equal(self._columns.column("status"), int(mf.EntryStatus.EXISTING))
        message = f"it was added or deleted by another snapshot than {owner}, which wrote its manifest"
        self._each(Code.ENTRY_SNAPSHOT, _mask(pc.and_(is_other, is_changed)), message)

    def _ids(self) -> None:
        orders = self._columns.column("sort_order_id")
        known = pa.array([0, *self._subject.metadata.sort_orders_by_id], pa.int32())
        is_lost = pc.and_not(pc.is_valid(orders), pc.is_in(orders, known))
        self._each(Code.SORT_ORDER_UNRESOLVED, _mask(is_lost), "its sort order id names no sort order of the table")
        keys = self._columns.column("equality_ids")
        ids = pc.unique(keys.flatten()).to_pylist() if keys.null_count < len(keys) else []
        if lost := [field_id for field_id in ids if field_id not in self._subject.column_ids]:
            is_wrong = np.array([not {*lost}.isdisjoint(own or ()) for own in keys.to_pylist()])
            message = f"it deletes by columns {lost}, which no schema of the table has"
            self._each(Code.COLUMN_UNRESOLVED, is_wrong, message)

    def _delete_fields(self) -> None:
        version, code = self._subject.metadata.format_version, Code.DELETE_FILE_FIELDS
        if self._manifest.content is mf.ManifestContent.DELETES and not allows(version, Feature.DELETE_FILES):
            self._say(code, f"it is a manifest of delete files; v{version} tables have none")
        columns = self._columns
        is_equality, is_vector = self._kinds == FileKind.EQUALITY_DELETES, self._kinds == FileKind.VECTOR
        has_keys = _mask(pc.greater(pc.list_value_length(columns.column("equality_ids")), 0))
        self._each(code, is_equality & ~has_keys, "it is an equality delete file without key columns")
        self._each(code, ~is_equality & has_keys, "it has key columns but is no equality delete file")
        if not allows(version, Feature.DELETION_VECTORS):
            self._each(code, is_vector, f"it is a deletion vector; v{version} tables have none")
        for name in ("referenced_data_file", "content_offset", "content_size_in_bytes"):
            is_missing = _mask(pc.is_null(columns.column(name)))
            self._each(code, is_vector & is_missing, f"it is a deletion vector without {name}")

    def _locations(self) -> None:
        """Files of live entries; what was deleted may have been anywhere."""
        paths = self._columns.column("file_path")
        is_inside = np.zeros(len(paths), bool)
        for folder in self._subject.folders:
            is_inside |= _mask(pc.starts_with(paths, folder))
        is_outside = _mask(self._columns.is_live) & ~is_inside
        for index in np.flatnonzero(is_outside).tolist():
            is_outside[index] = not self._subject.is_inside(self._path(index))
        self._each(Code.OUTSIDE_LOCATION, is_outside, "it is outside of the table's locations")


def _summary_problems(field_type: IcebergType, recorded: mf.PartitionFieldSummary, values: pa.Array) -> Iterator[str]:
    """What is wrong with a summary of these partition values."""
    actual = mf.summarize(values, field_type)
    if actual.contains_null and not recorded.contains_null:
        yield "says that there is no null, but there is"
    if actual.contains_nan and recorded.contains_nan is False:
        yield "says that there is no NaN, but there is"
    if actual.lower_bound is None or actual.upper_bound is None:
        return
    if recorded.lower_bound is None or recorded.upper_bound is None:
        yield "has no bounds, but there are values"
        return
    try:
        is_low = decode_bound(recorded.lower_bound, field_type) <= decode_bound(actual.lower_bound, field_type)
        is_high = decode_bound(recorded.upper_bound, field_type) >= decode_bound(actual.upper_bound, field_type)
    except errors.InvalidValueError as error:
        yield f"has bounds that are not of type {field_type}: {error}"
        return
    if not (is_low and is_high) and not (
        isinstance(field_type, types.UUIDType) and _are_between_signed(values, recorded)
    ):
        yield "has bounds that exclude partitions of the manifest"


def _are_between_signed(uuids: pa.Array, recorded: mf.PartitionFieldSummary) -> bool:
    """Whether uuids are within bounds in the order of Java, which compares two signed halves; readers allow for it."""
    lower, upper = (_signed_halves(bytes(bound or b"")) for bound in (recorded.lower_bound, recorded.upper_bound))
    values = pc.unique(uuids.drop_null().cast(pa.binary(16))).to_pylist()
    return all(lower <= _signed_halves(value) <= upper for value in values)


def _signed_halves(raw: bytes) -> tuple[int, int]:
    return int.from_bytes(raw[:8], signed=True), int.from_bytes(raw[8:], signed=True)


def _mask(column: pa.Array) -> Mask:
    mask: Mask = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return mask
