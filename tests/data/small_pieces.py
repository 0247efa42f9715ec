"""Files of a few rows that are read in pieces, as large ones are."""

from collections.abc import Iterator

import pytest

from icefloe.data import in_order


@pytest.fixture(scope="module")
def small_pieces() -> Iterator[None]:
    """No file is too small to be read in pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_order, "LEAST_ROWS", 0)
        yield
