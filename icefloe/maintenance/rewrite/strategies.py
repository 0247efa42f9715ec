"""How a rewrite arranges rows: as they come (`binpack`), or in an order over all rows of a group (`sort`).

An order is a `RowOrder`: one of columns and transforms here; curves through several columns are further kinds of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from icefloe import errors, metadata as md, partitioning as pt
from icefloe.data import KeyMaker, OrderKeys
from icefloe.maintenance.options import Option, Options
from icefloe.maintenance.rewrite.options import SORT_OPTIONS
from icefloe.schema import Schema

BINPACK = "binpack"
SORT = "sort"


class RowOrder(Protocol):
    """An order of rows over a whole group."""

    @property
    def text(self) -> str:
        """What the user wrote."""

    @property
    def stored(self) -> pt.SortOrder:
        """The order of the table that files have by it; unsorted if it is none of those."""

    @property
    def needs_sample(self) -> bool:
        """Whether its keys depend on the rows that there are."""

    @property
    def source_ids(self) -> list[int]:
        """The fields that keys are made of."""

    def keys(self, sample: pa.Table | None = None) -> KeyMaker:
        """What rows are sorted by."""


@dataclass(frozen=True, slots=True)
class ColumnOrder:
    """An order by columns and transforms."""

    text: str
    order: pt.SortOrder
    stored: pt.SortOrder
    schema: Schema
    needs_sample: bool = False

    @property
    def source_ids(self) -> list[int]:
        """The fields that it names."""
        return [field.source_id for field in self.order.fields]

    def keys(self, sample: pa.Table | None = None) -> KeyMaker:  # noqa: ARG002 - an order of values is always the same
        """The values that rows are sorted by."""
        return OrderKeys(self.order, self.schema)

    @staticmethod
    def of(text: str, order: pt.SortOrder, metadata: md.TableMetadata) -> "ColumnOrder":
        """The order, by the id that the table knows it under, if it does."""
        known = (each for each in metadata.sort_orders if each.same_order(order))
        return ColumnOrder(text, order, next(known, pt.UNSORTED), metadata.schema())


CurveMaker: TypeAlias = Callable[[Sequence[str], md.TableMetadata, Options], RowOrder]
"""Makes an order of the arguments of all calls of a curve in an order's text."""
CURVES: dict[str, CurveMaker] = {}
"""The curves by the name that a sort order calls them by, such as `zorder`."""
CURVE_OPTIONS: dict[str, tuple[Option, ...]] = {}
"""The options that only rewrites by a curve have, by its name."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """What a rewrite does with the rows of a group; without an order they stay as they come."""

    name: str = BINPACK
    order: RowOrder | None = None

    @property
    def is_sort(self) -> bool:
        """Whether rows are ordered over the whole group."""
        return self.order is not None


def strategy_options(sort_order: str | None, strategy: str | None) -> tuple[Option, ...]:
    """The options that the strategy has beside those of all."""
    if sort_order is None and strategy != SORT:
        return ()
    return (*SORT_OPTIONS, *(option for name in _curves_of(sort_order or "") for option in CURVE_OPTIONS.get(name, ())))


def strategy_of(
    strategy: str | None, sort_order: str | None, metadata: md.TableMetadata, options: Mapping[str, str]
) -> Strategy:
    """What the caller means; a sort order alone means `sort`, and `sort` alone the table's own order."""
    name = (strategy or (BINPACK if sort_order is None else SORT)).lower()
    if name not in (BINPACK, SORT):
        raise errors.InvalidInputError(f"strategy is {strategy!r}; it must be {BINPACK} or {SORT}")
    if name == BINPACK:
        if sort_order is not None:
            raise errors.InvalidInputError(
                f"a sort order, {sort_order!r}, is given to {BINPACK}, which sorts nothing; use {SORT}"
            )
        return Strategy()
    if sort_order is not None:
        return Strategy(SORT, _order_of(sort_order, metadata, options))
    order = metadata.sort_order()
    if order.is_unsorted:
        raise errors.InvalidInputError("the table has no sort order; give one, such as sort_order='ts DESC, id'")
    return Strategy(SORT, ColumnOrder.of("", order, metadata))


def _order_of(text: str, metadata: md.TableMetadata, options: Options) -> RowOrder:
    terms = split_terms(text)
    curves = [(name, arguments) for term in terms if (call := _curve_call(term)) for name, arguments in (call,)]
    if not curves:
        return ColumnOrder.of(text, pt.parse_sort_order(terms, metadata.schema(), case_sensitive=False), metadata)
    names = {name for name, _ in curves}
    if len(curves) < len(terms) or len(names) > 1:
        raise errors.InvalidInputError(
            f"sort order {text!r} mixes {', '.join(sorted(names))} with something else; use one"
        )
    columns = [column for _, arguments in curves if arguments.strip() for column in split_terms(arguments)]
    return CURVES[names.pop()](columns, metadata, options)


def _curve_call(term: str) -> tuple[str, str] | None:
    """The curve that a term calls, and what is between its brackets."""
    name, bracket, rest = term.partition("(")
    key = name.strip().lower()
    return (key, rest.rstrip()[:-1]) if bracket and key in CURVES and rest.rstrip().endswith(")") else None


def _curves_of(text: str) -> list[str]:
    return [call[0] for term in (split_terms(text) if text.strip() else ()) if (call := _curve_call(term))]


def split_terms(text: str) -> list[str]:
    """The terms of a list such as `ts DESC, bucket(16, id)`: cut at commas outside of brackets and backquotes."""
    terms, depth, is_quoted = [""], 0, False
    for letter in text:
        is_quoted ^= letter == "`"
        depth += 0 if is_quoted else (letter == "(") - (letter == ")")
        if letter == "," and depth == 0 and not is_quoted:
            terms.append("")
        else:
            terms[-1] += letter
    if depth or is_quoted or not all(term.strip() for term in terms):
        raise errors.InvalidSortOrderError(
            f"{text!r} is no list of columns and transforms such as 'ts DESC, bucket(16, id)'"
        )
    return [term.strip() for term in terms]
