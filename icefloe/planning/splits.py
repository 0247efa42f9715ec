"""How files become work of even size: splits at the offsets that their writer noted, packed into bins."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from icefloe.planning.options import ScanOptions
from icefloe.planning.tasks import CombinedScanTask, FileScanTask

_SPLITTABLE = frozenset(("parquet", "orc", "avro"))


def split_task(task: FileScanTask, split_size: int) -> Iterator[FileScanTask]:
    """The task as byte ranges that together are all of it: one for each offset of the file, or of a fixed size.

    A range stands for the row groups, stripes or blocks that start in it.
    """
    size = task.file.file_size_in_bytes
    if task.file.file_format not in _SPLITTABLE or not task.is_whole_file:
        yield task
        return
    offsets = task.file.split_offsets
    if offsets and all(low < high for low, high in pairwise(offsets)) and offsets[0] >= 0 and offsets[-1] < size:
        starts = [0, *offsets[1:]]
    else:
        starts = list(range(0, size, split_size))
    if len(starts) < 2:
        yield task
        return
    for start, end in zip(starts, [*starts[1:], size], strict=True):
        yield replace(task, start=start, length=end - start)


def cut_task(task: FileScanTask, parts: int) -> list[FileScanTask]:
    """The task as up to so many neighbouring byte ranges, each with about as many row groups, stripes or blocks."""
    splits = list(split_task(task, max(1, -(-task.file.file_size_in_bytes // parts))))
    count = min(parts, len(splits))
    bounds = [len(splits) * number // count for number in range(count + 1)]
    if count < 2:
        return [task]
    starts = [splits[first].start for first in bounds[:-1]]
    ends = [*starts[1:], task.file.file_size_in_bytes]
    return [replace(task, start=start, length=end - start) for start, end in zip(starts, ends, strict=True)]


def pack_tasks(tasks: Iterable[FileScanTask], options: ScanOptions) -> Iterator[CombinedScanTask]:
    """The tasks, split and put together to the target size; bins come out as soon as they can be full no more."""
    splits = (split for task in tasks for split in split_task(task, options.split_size))
    bins: list[_Bin] = []
    for split in splits:
        weight = _weight(split, options.split_open_file_cost)
        for each in bins:
            if each.weight + weight <= options.split_size:
                each.add(split, weight)
                break
        else:
            bins.append(_Bin(split, weight))
            if len(bins) > options.split_lookback:
                largest = max(bins, key=lambda each: each.weight)
                bins.remove(largest)
                yield largest.combined()
    for each in bins:
        yield each.combined()


class _Bin:
    def __init__(self, task: FileScanTask, weight: int) -> None:
        self.tasks = [task]
        self.weight = weight

    def add(self, task: FileScanTask, weight: int) -> None:
        self.tasks.append(task)
        self.weight += weight

    def combined(self) -> CombinedScanTask:
        """One task, with neighbouring ranges of one file joined."""
        joined = [self.tasks[0]]
        for task in self.tasks[1:]:
            last = joined[-1]
            if task.file is last.file and last.length is not None and last.start + last.length == task.start:
                joined[-1] = replace(last, length=last.length + task.data_bytes)
            else:
                joined.append(task)
        return CombinedScanTask(tuple(joined))


def _weight(task: FileScanTask, open_file_cost: int) -> int:
    """Bytes to read, but at least what it costs to open the files."""
    return max(task.size_bytes, (1 + len(task.deletes)) * open_file_cost)
