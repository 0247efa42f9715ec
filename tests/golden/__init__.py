"""Where the formats' own test files are."""

from pathlib import Path

GOLDEN = Path(__file__).parent


def golden(name: str) -> Path:
    """The golden file or folder of that name."""
    path = GOLDEN / name
    assert path.exists(), f"there is no golden file {name}"
    return path
