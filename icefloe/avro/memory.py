"""How kernels are compiled, and loads and stores at addresses for them.

Kernels give their helpers addresses, not arrays: numba counts references on every array that is passed, which would cost
more than the reading itself. Nothing here checks bounds; the kernels do, before each call, and keep the arrays alive.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]  # ships no types
from numba import njit, types
from numba.extending import intrinsic

_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on the first call, without the interpreter lock; kept on disk where some folder can be written to."""
    return _compiled(function, forceinline=False)


def helper(function: Callable[..., Any]) -> Any:
    """The same for what is to become part of each kernel that calls it."""
    return _compiled(function, forceinline=True)


def _compiled(function: Callable[..., Any], forceinline: bool) -> Any:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": forceinline}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:
        # Neither the package's folder nor the user's can be written to: compiled anew in each process.
        return njit(**options)(function)


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
