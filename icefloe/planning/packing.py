"""Which things go together into bins of a target weight: splits of a scan, files of a rewrite, manifests to merge."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")


class _Bin(Generic[Item]):
    __slots__ = ("items", "weight")

    def __init__(self, item: Item, weight: int) -> None:
        self.items = [item]
        self.weight = weight


def pack(
    items: Iterable[Item],
    weight: Callable[[Item], int],
    target: int,
    *,
    lookback: int = 1,
    most_items: int | None = None,
    largest_first: bool = False,
) -> Iterator[list[Item]]:
    """The items in bins, each in the first open bin that it fits into; bins come out when they can be full no more.

    At most `lookback` bins stay open: of one more, the oldest is closed, or the heaviest with `largest_first`. A bin holds
    at most `most_items`. An item that is heavier than the target has a bin of its own.
    """
    bins: list[_Bin[Item]] = []
    for item in items:
        own = weight(item)
        fitting = (
            bin_
            for bin_ in bins
            if bin_.weight + own <= target and (most_items is None or len(bin_.items) < most_items)
        )
        if (bin_ := next(fitting, None)) is not None:
            bin_.items.append(item)
            bin_.weight += own
            continue
        bins.append(_Bin(item, own))
        if len(bins) > lookback:
            yield bins.pop(_heaviest(bins) if largest_first else 0).items
    yield from (bin_.items for bin_ in bins)


def pack_from_end(items: Sequence[Item], weight: Callable[[Item], int], target: int) -> list[list[Item]]:
    """Runs of neighbours that fit into the target, packed from the end, so that the first run is what is left over."""
    bins = list(pack(reversed(items), weight, target))
    return [bin_[::-1] for bin_ in reversed(bins)]


def _heaviest(bins: Sequence[_Bin[Item]]) -> int:
    return max(range(len(bins)), key=lambda number: bins[number].weight)
