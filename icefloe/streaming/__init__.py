"""Tables as streams, and streams into tables: offsets, micro-batches, and batches that are committed once; pure, for any engine."""

from icefloe.streaming.epochs import CommitOnce, StreamBatch, check_not_in, newest_batch, once
from icefloe.streaming.files import PartsPlanner, TableFiles
from icefloe.streaming.offsets_codec import NOTHING, Offset, offset_from_text
from icefloe.streaming.settings import (
    BRANCH,
    OPTIONS,
    READ_MODE,
    UNLIMITED,
    Limits,
    ReadMode,
    StreamSettings,
    stream_settings,
)
from icefloe.streaming.steps import FileTotals, Part, SnapshotFiles, StreamSteps
