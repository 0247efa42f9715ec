"""The options of rewrites of delete files, by Java's names, and ours."""

from icefloe import properties as props
from icefloe.maintenance.options import Option, fraction, optional
from icefloe.maintenance.rewrite.file_sizes import MAX_GROUP_FILES, SIZE_OPTIONS
from icefloe.maintenance.rewrite.options import JOB_ORDER, MAX_COMMITS, MAX_FILES, PARTIAL_PROGRESS

_positive = props.whole_number(1, props.MAX_LONG)

CONCURRENT_GROUPS: props.Property[int | None] = props.Property(
    "max-concurrent-file-group-rewrites", None, optional(_positive)
)
PUFFIN_LIVE_RATIO = props.Property("puffin-live-ratio", 0.5, fraction(0.0, 1.0))
KEY_MEMORY = props.Property("key-memory-bytes", 256 << 20, _positive)

CONVERSION: tuple[Option, ...] = (MAX_GROUP_FILES, CONCURRENT_GROUPS, PARTIAL_PROGRESS, MAX_COMMITS, KEY_MEMORY)
"""Those of a conversion of equality deletes."""
POSITION_DELETES: tuple[Option, ...] = (
    *SIZE_OPTIONS,
    JOB_ORDER,
    CONCURRENT_GROUPS,
    PARTIAL_PROGRESS,
    MAX_COMMITS,
    MAX_FILES,
    PUFFIN_LIVE_RATIO,
)
"""Those of a rewrite of position deletes."""
