"""Orders along a curve through several columns, `zorder(a, b)` and `hilbert(a, b)`: which columns, and by which keys.

Rows that are near in all columns come near one another, so that files have narrow bounds in each of them.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from icefloe import errors, metadata as md, properties as props
from icefloe.maintenance.options import Option, Options
from icefloe.maintenance.rewrite import curve_bytes as cb
from icefloe.maintenance.rewrite.curve_keys import ByteKeys, Curve, CurveColumn, RankKeys
from icefloe.maintenance.rewrite.strategies import CURVE_OPTIONS, CURVES
from icefloe.partitioning import UNSORTED, SortOrder, transforms as tr
from icefloe.schema import types

RANK, BYTES = "rank", "bytes"
KEY = props.Property("zorder-key", RANK, props.one_of(RANK, BYTES))
TEXT_WIDTH = props.Property("var-length-contribution", cb.WHOLE_WIDTH, props.whole_number(1))
MOST_BYTES = props.Property("max-output-size", props.MAX_INT, props.whole_number(1))
ZORDER_OPTIONS: tuple[Option, ...] = (KEY, TEXT_WIDTH, MOST_BYTES)
HILBERT_OPTIONS: tuple[Option, ...] = (KEY,)


@dataclass(frozen=True, slots=True)
class CurveOrder:
    """The order of rows along a curve; no order of a table is one."""

    curve: Curve
    columns: tuple[CurveColumn, ...]
    key: str
    text_width: int = cb.WHOLE_WIDTH
    most_bytes: int = props.MAX_INT
    stored: SortOrder = UNSORTED

    @property
    def text(self) -> str:
        """The order as it is written."""
        return f"{self.curve}({', '.join('.'.join(column.names) for column in self.columns)})"

    @property
    def needs_sample(self) -> bool:
        """Whether keys depend on the rows that there are."""
        return self.key == RANK

    def keys(self, sample: pa.Table | None = None) -> ByteKeys | RankKeys:
        """What rows are sorted by."""
        if self.key == BYTES:
            return ByteKeys(self.curve, self.columns, self.text_width, self.most_bytes)
        assert sample is not None
        return RankKeys.of_sample(self.curve, self.columns, sample)

    @property
    def source_ids(self) -> list[int]:
        """The fields that it goes through."""
        return [column.field_id for column in self.columns]


def curve_order(curve: Curve, names: Sequence[str], metadata: md.TableMetadata, options: Options) -> CurveOrder:
    """The order along a curve through these columns; those that are the same in a whole partition are left out."""
    if not names:
        raise errors.InvalidInputError(f"{curve} is given no columns; name some, such as {curve}(a, b)")
    key = KEY.of(options)
    columns = tuple(
        column for name in names if (column := _column(curve, name, metadata, by_bytes=key == BYTES)) is not None
    )
    if not columns:
        raise errors.InvalidInputError(
            f"{curve}({', '.join(names)}) names identity partition columns alone, which are the same in all rows of a file"
        )
    if curve is Curve.HILBERT:
        return CurveOrder(curve, columns, key)
    return CurveOrder(curve, columns, key, TEXT_WIDTH.of(options), MOST_BYTES.of(options))


def _column(curve: Curve, name: str, metadata: md.TableMetadata, *, by_bytes: bool) -> CurveColumn | None:
    schema = metadata.schema()
    field = schema.find_field(name.strip().strip("`"), case_sensitive=False)
    constant = {each.source_id for each in metadata.spec().fields if isinstance(each.transform, tr.IdentityTransform)}
    if field.field_id in constant:
        warnings.warn(f"{curve} leaves out {name!r}, which is the same in all rows of a partition", stacklevel=2)
        return None
    if by_bytes:
        cb.check_bytes(name, field.field_type)
    elif not isinstance(field.field_type, types.PrimitiveType) or isinstance(field.field_type, _WITHOUT_ORDER):
        raise errors.InvalidInputError(
            f"column {name!r} of type {field.field_type} has no order, so no curve goes through it"
        )
    along = (*reversed(schema.ancestors(field.field_id)), field)
    if not all(isinstance(each.field_type, types.StructType) for each in along[:-1]):
        raise errors.InvalidInputError(f"column {name!r} is inside of a list or map, so no curve goes through it")
    return CurveColumn(tuple(each.name for each in along), field.field_type, field.field_id)


_WITHOUT_ORDER = types.UnknownType | types.GeometryType | types.GeographyType


def _zorder(names: Sequence[str], metadata: md.TableMetadata, options: Options) -> CurveOrder:
    return curve_order(Curve.ZORDER, names, metadata, options)


def _hilbert(names: Sequence[str], metadata: md.TableMetadata, options: Options) -> CurveOrder:
    return curve_order(Curve.HILBERT, names, metadata, options)


CURVES.update({Curve.ZORDER: _zorder, Curve.HILBERT: _hilbert})
CURVE_OPTIONS.update({Curve.ZORDER: ZORDER_OPTIONS, Curve.HILBERT: HILBERT_OPTIONS})
