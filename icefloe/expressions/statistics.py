"""Which files may hold a matching row, and which hold matching rows only, by their statistics alone.

All files are evaluated at once, in columns. A file that `might_match` leaves out holds no matching row; every row of one
that `must_match` names matches. Manifests are evaluated the same way, by their partition summaries.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow.compute as pc

from icefloe.expressions import facts, kernels, values as ex
from icefloe.expressions.binding import bound_term
from icefloe.expressions.facts import Facts, Mask, PartitionSummaries, Statistics
from icefloe.expressions.normal import rewrite_not
from icefloe.expressions.terms import BoundExtract, BoundReference
from icefloe.expressions.walks import fold

Test = Callable[[ex.Predicate, Facts], Mask]


def might_match(expression: ex.Expression, statistics: Statistics) -> Mask:
    """For each file, whether a row may match the bound predicate; no row of an empty file does."""
    return FileAnswers(statistics).might_match(expression)


def must_match(expression: ex.Expression, statistics: Statistics) -> Mask:
    """For each file, whether every row is sure to match the bound predicate; all rows of an empty file do."""
    return FileAnswers(statistics).must_match(expression)


class FileAnswers:
    """Answers to several questions about the same files, whose statistics are read once."""

    def __init__(self, statistics: Statistics) -> None:
        self._size = statistics.size
        self._is_empty = facts.known(pc.equal(statistics.record_counts, 0))
        self._find = cache(lambda column: facts.facts_of_files(column, statistics))

    def might_match(self, expression: ex.Expression) -> Mask:
        """For each file, whether a row may match the bound predicate; no row of an empty file does."""
        return _answer(expression, self._size, self._find, kernels.might_match) & ~self._is_empty

    def must_match(self, expression: ex.Expression) -> Mask:
        """For each file, whether every row is sure to match the bound predicate; all rows of an empty file do."""
        return _answer(expression, self._size, self._find, kernels.must_match) | self._is_empty


def partitions_might_match(expression: ex.Expression, summaries: PartitionSummaries) -> Mask:
    """For each manifest, whether one of its files may match the predicate, which is bound to the partition type."""
    find = cache(lambda column: facts.facts_of_manifests(column, summaries))
    return _answer(expression, summaries.size, find, kernels.might_match)


def _answer(expression: ex.Expression, size: int, find: Callable[[BoundReference], Facts], test: Test) -> Mask:
    def constant(value: bool) -> Mask:
        return np.full(size, value)

    def ask(predicate: ex.Predicate) -> Mask:
        term = bound_term(predicate)
        column = find(term.reference)
        if isinstance(term, BoundExtract):
            # Bounds of a path only rule files out: of what is not there, or null, they say nothing.
            return test(predicate, facts.facts_of_extract(term, column, has_bounds=test is kernels.might_match))
        return test(predicate, column if isinstance(term, BoundReference) else facts.without_bounds(column))

    return fold(rewrite_not(expression), constant, ask, np.logical_and, np.logical_or, np.logical_not)
