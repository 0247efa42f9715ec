"""Which code runs programs: compiled kernels, or plain Python for the first bytes of a process.

Importing numba and loading kernels takes most of a second, and compiling them on a new machine several; small tables are read
and written in less without them. Both give the same results, and either is safe with any bytes.
"""

from types import ModuleType

PLAIN_BYTES = 1 << 20
"""How many bytes of rows are read, and how many written, by plain Python: in half the time that numba takes to load."""

plain_left = {"read": PLAIN_BYTES, "write": PLAIN_BYTES}
"""What is left of them in this process."""


def walker_for(size: int) -> ModuleType:
    """The module that walks over rows of that many bytes."""
    if _is_plain("read", size):
        from icefloe.avro import plain_walker

        return plain_walker
    from icefloe.avro import walker

    return walker


def encoder_for(size: int) -> ModuleType:
    """The module that makes rows of about that many bytes."""
    if _is_plain("write", size):
        from icefloe.avro import plain_encoder

        return plain_encoder
    from icefloe.avro import encoder

    return encoder


def _is_plain(work: str, size: int) -> bool:
    # Once there was more to do, numba is loaded, and faster for anything. Threads may count at once: the limit is not strict.
    plain_left[work] = plain_left[work] - size if size <= plain_left[work] else 0
    return plain_left[work] > 0
