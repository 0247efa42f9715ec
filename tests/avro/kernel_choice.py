"""Says which of the two kinds of kernels work for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from icefloe.avro import kernels


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Plain Python, however much there is to do."""
    with _left(1 << 60):
        yield


@contextmanager
def compiled_kernels() -> Iterator[None]:
    """Compiled code, however little there is to do."""
    with _left(0):
        yield


@contextmanager
def _left(size: int) -> Iterator[None]:
    before = dict(kernels.plain_left)
    kernels.plain_left.update(read=size, write=size)
    try:
        yield
    finally:
        kernels.plain_left.update(before)
