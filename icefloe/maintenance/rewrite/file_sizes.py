"""Which files a rewrite takes by their sizes, which of them go together, and how large and how many the new ones are.

The rules and their defaults are Java's; the one difference is that a group has at most 10,000 files unless the caller says
otherwise, since what a group costs in memory grows with its files and their deletes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from icefloe import errors, planning, properties as props
from icefloe.maintenance.options import Option, Options, optional

_whole = props.whole_number(0, props.MAX_LONG)
_positive = props.whole_number(1, props.MAX_LONG)

TARGET_FILE_SIZE: props.Property[int | None] = props.Property("target-file-size-bytes", None, optional(_positive))
MIN_FILE_SIZE: props.Property[int | None] = props.Property("min-file-size-bytes", None, optional(_whole))
MAX_FILE_SIZE: props.Property[int | None] = props.Property("max-file-size-bytes", None, optional(_positive))
MIN_INPUT_FILES = props.Property("min-input-files", 5, _positive)
REWRITE_ALL = props.Property("rewrite-all", False, props.property_as_bool)
MAX_GROUP_SIZE = props.Property("max-file-group-size-bytes", 100 << 30, _positive)
MAX_GROUP_FILES = props.Property("max-file-group-input-files", 10_000, _positive)

SIZE_OPTIONS: tuple[Option, ...] = (
    TARGET_FILE_SIZE,
    MIN_FILE_SIZE,
    MAX_FILE_SIZE,
    MIN_INPUT_FILES,
    REWRITE_ALL,
    MAX_GROUP_SIZE,
    MAX_GROUP_FILES,
)
"""The options that every rewrite of files by their sizes has."""

_MIN_SHARE = 0.75
_MAX_SHARE = 1.8
_SPLIT_OVERHEAD = 5 << 10


@dataclass(frozen=True, slots=True)
class FileSizes:
    """The sizes of files that are well, and how groups of others are made."""

    target: int
    minimum: int
    maximum: int
    min_input_files: int = MIN_INPUT_FILES.default
    rewrite_all: bool = REWRITE_ALL.default
    group_bytes: int = MAX_GROUP_SIZE.default
    group_files: int = MAX_GROUP_FILES.default

    @staticmethod
    def of(options: Options, default_target: int) -> "FileSizes":
        """What the options say; sizes follow from the target, and the target is the table's if they are silent."""
        target = _given(TARGET_FILE_SIZE.of(options), default_target)
        minimum = _given(MIN_FILE_SIZE.of(options), int(target * _MIN_SHARE))
        maximum = _given(MAX_FILE_SIZE.of(options), int(target * _MAX_SHARE))
        if not minimum < target < maximum:
            raise errors.InvalidPropertyError(
                f"files of {target} bytes are the target ({TARGET_FILE_SIZE.key!r}), which must be more than"
                f" {MIN_FILE_SIZE.key!r}, {minimum}, and less than {MAX_FILE_SIZE.key!r}, {maximum}"
            )
        return FileSizes(
            target,
            minimum,
            maximum,
            MIN_INPUT_FILES.of(options),
            REWRITE_ALL.of(options),
            MAX_GROUP_SIZE.of(options),
            MAX_GROUP_FILES.of(options),
        )

    def misfits(self, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which files are too small or too large."""
        return (sizes < self.minimum) | (sizes > self.maximum)

    def groups(
        self, files: Sequence[int], size: Callable[[int], int], is_due: Callable[[int], bool] = lambda _: False
    ) -> list[list[int]]:
        """Candidates, by their numbers, in groups that are worth a rewrite; their order decides who is with whom.

        Args:
            files: the candidates; with `rewrite_all` all files.
            size: the size of one of them in bytes.
            is_due: whether one is reason enough, whatever its size, such as by the rows that are deleted of it.
        """
        packed = planning.pack(files, size, self.group_bytes, most_items=self.group_files)
        if self.rewrite_all:
            return list(packed)
        return [group for group in packed if self._is_worth_it(group, size) or any(map(is_due, group))]

    def _is_worth_it(self, group: Sequence[int], size: Callable[[int], int]) -> bool:
        total = sum(map(size, group))
        has_several = len(group) > 1
        return total > self.maximum or (has_several and (len(group) >= self.min_input_files or total > self.target))

    @property
    def write_maximum(self) -> int:
        """At which size a writer begins the next file: beyond the target, so that slight growth makes no tiny second file."""
        return self.target + int((self.maximum - self.target) * 0.5)

    def expected_files(self, total: int) -> int:
        """How many files so many bytes become."""
        if total < self.target:
            return 1
        without_rest, rest = divmod(total, self.target)
        with_rest = without_rest + (1 if rest else 0)
        if rest > self.minimum:
            return with_rest
        average = total // without_rest
        return without_rest if average < min(1.1 * self.target, self.write_maximum) else with_rest

    def split_size(self, total: int) -> int:
        """How many bytes one task reads, so that each writes one file of those expected."""
        estimate = total // self.expected_files(total) + _SPLIT_OVERHEAD
        return max(self.target, min(estimate, self.write_maximum))


def _given(value: int | None, default: int) -> int:
    return default if value is None else value
