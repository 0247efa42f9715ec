"""Loads and stores at addresses for compiled kernels.

Kernels give their helpers addresses, not arrays: numba counts references on every array that is passed, which would cost
more than the reading itself. Nothing here checks bounds; the kernels do, before each call, and keep the arrays alive.
"""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]  # ships no types
from numba import types
from numba.extending import intrinsic

_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)


def _pointer(builder: Any, base: Any, offset: Any, kind: Any) -> Any:
    return builder.inttoptr(builder.add(base, offset), kind.as_pointer())


def _byte_at(_context: Any, _base: Any, _at: Any) -> Any:
    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        base, at = arguments
        return builder.zext(builder.load(_pointer(builder, base, at, _BYTE)), _WORD)

    return types.int64(types.int64, types.int64), generate


def _eight_at(_context: Any, _base: Any, _at: Any) -> Any:
    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        base, at = arguments
        return builder.load(_pointer(builder, base, at, _WORD), align=1)

    return types.int64(types.int64, types.int64), generate


def _put_byte(_context: Any, _base: Any, _at: Any, _value: Any) -> Any:
    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        base, at, value = arguments
        builder.store(builder.trunc(value, _BYTE), _pointer(builder, base, at, _BYTE))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _put_eight(_context: Any, _base: Any, _at: Any, _value: Any) -> Any:
    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        base, at, value = arguments
        builder.store(value, _pointer(builder, base, at, _WORD), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


byte_at: Any = intrinsic(_byte_at)
"""The byte at an offset from an address, as a number."""
eight_at: Any = intrinsic(_eight_at)
"""The eight bytes at an offset from an address, as a number."""
put_byte: Any = intrinsic(_put_byte)
"""Set the byte at an offset from an address."""
put_eight: Any = intrinsic(_put_eight)
"""Set the eight bytes at an offset from an address."""
