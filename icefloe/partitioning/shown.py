"""How specs and sort orders are shown: as users write them."""

from icefloe.partitioning.sorting import SortOrder
from icefloe.partitioning.spec import PartitionSpec
from icefloe.schema import Schema


def shown_spec(partitions: PartitionSpec, of: Schema) -> str:
    """A partition spec as users write it."""
    return ", ".join(_term(str(field.transform), field.source_ids, of) for field in partitions.fields) or "no"


def shown_order(order: SortOrder, of: Schema) -> str:
    """A sort order as users write it."""
    fields = (
        f"{_term(str(field.transform), field.source_ids, of)} {field.direction.value} {field.null_order.value}"
        for field in order.fields
    )
    return ", ".join(fields) or "no"


def _term(transform: str, source_ids: tuple[int, ...], of: Schema) -> str:
    sources = ", ".join(column_name(of, each) for each in source_ids)
    if transform == "identity":
        return sources
    name, bracket, parameter = transform.partition("[")
    return f"{name}({parameter.rstrip(']')}, {sources})" if bracket else f"{name}({sources})"


def column_name(of: Schema, field_id: int) -> str:
    """The name of a source column, or that it is gone."""
    return of.find_column_name(field_id) or f"column {field_id}, which is gone"
