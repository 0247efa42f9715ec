"""Where the format's own test files are, and the skip when they are not beside the project."""

from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[3] / "shared" / "golden"


def golden(name: str) -> Path:
    """The golden file or folder of that name."""
    path = GOLDEN / name
    if not path.exists():
        pytest.skip(f"no golden data: {name} is not in a folder shared/golden beside the project")
    return path
