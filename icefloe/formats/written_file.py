"""What the writers and readers of all file formats share: the result of writing a file, and the size of batches."""

from dataclasses import dataclass

from icefloe.formats.metrics import Metrics

JUST_WRITTEN = "the file just written"
"""What errors call a file whose writer does not know where it is."""
DEFAULT_BATCH_ROWS = 131_072
"""The most rows in one batch that a reader gives."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """What a finished file says of itself."""

    metrics: Metrics
    split_offsets: tuple[int, ...]
    file_size_in_bytes: int
