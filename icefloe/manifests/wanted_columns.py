"""Which columns of a manifest are to be decoded: what nobody asks for costs no memory."""

from collections.abc import Iterable
from dataclasses import dataclass

from icefloe.errors import InvalidInputError
from icefloe.manifests.entry_codec import ENTRY_COLUMNS, FILE_COLUMNS
from icefloe.manifests.values import Metric

ALL_COLUMNS = frozenset((*ENTRY_COLUMNS, *FILE_COLUMNS))
ALWAYS = frozenset((*ENTRY_COLUMNS, "content", "record_count", "first_row_id"))
"""What is decoded in any case: inheritance needs it."""
COUNTS = frozenset(metric for metric in Metric if not metric.is_bound)
BOUNDS = frozenset(metric for metric in Metric if metric.is_bound)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Columns by name, the partition tuple, and metrics of some fields (of all if `field_ids` is None)."""

    columns: frozenset[str]
    partition: bool
    metrics: frozenset[Metric]
    field_ids: tuple[int, ...] | None

    def __post_init__(self) -> None:
        unknown = self.columns - ALL_COLUMNS
        if unknown:
            known = ", ".join(sorted(ALL_COLUMNS))
            raise InvalidInputError(f"manifests have no column {', '.join(sorted(unknown))}; columns are {known}")


EVERYTHING = Wanted(ALL_COLUMNS, True, frozenset(Metric), None)
"""All that a manifest says."""

WITHOUT_METRICS = Wanted(ALL_COLUMNS, True, frozenset(), ())
"""All but the statistics of columns."""


def wanted(
    *columns: str, partition: bool = True, field_ids: Iterable[int] = (), metrics: Iterable[Metric] = Metric
) -> Wanted:
    """These columns and those that inheritance needs, with metrics of these fields."""
    ids = tuple(sorted(set(field_ids)))
    return Wanted(ALWAYS | frozenset(columns), partition, frozenset(metrics) if ids else frozenset(), ids)
