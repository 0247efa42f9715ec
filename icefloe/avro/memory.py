"""How kernels are compiled, and loads and stores at addresses for them.

Kernels give their helpers addresses, not arrays: numba counts references on every array that is passed, which would cost
more than the reading itself. Nothing here checks bounds; the kernels do, before each call, and keep the arrays alive.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]  # ships no types
from numba import njit, types
from numba.core.base import BaseContext
from numba.core.typing import Signature
from numba.extending import intrinsic

Int: TypeAlias = np.int64 | int
Longs: TypeAlias = npt.NDArray[np.int64]
Offsets: TypeAlias = npt.NDArray[np.int32]
Bytes: TypeAlias = npt.NDArray[np.uint8]
"""What kernels take and give."""

Function = TypeVar("Function", bound=Callable[..., object])
Generated: TypeAlias = tuple[Signature, Callable[..., ir.Value]]

_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)


def kernel(function: Function) -> Function:
    """Compile on the first call, without the interpreter lock; cached on disk where a folder is writable."""
    return _compiled(function, forceinline=False)


def helper(function: Function) -> Function:
    """The same for what is to become part of each kernel that calls it."""
    return _compiled(function, forceinline=True)


def _compiled(function: Function, forceinline: bool) -> Function:
    compile_with = partial(njit, nogil=True, error_model="numpy", forceinline=forceinline)
    try:
        return cast(Function, compile_with(cache=True)(function))
    except RuntimeError:
        # Neither the package's folder nor the user's can be written to: compiled again in each process.
        return cast(Function, compile_with()(function))


def _pointer(builder: ir.IRBuilder, base: ir.Value, offset: ir.Value, width: ir.IntType) -> ir.Value:
    return builder.inttoptr(builder.add(base, offset), width.as_pointer())


def _byte_at(_context: BaseContext, _base: types.Type, _at: types.Type) -> Generated:
    def generate(_: object, builder: ir.IRBuilder, __: object, arguments: list[ir.Value]) -> ir.Value:
        base, at = arguments
        return builder.zext(builder.load(_pointer(builder, base, at, _BYTE)), _WORD)

    return types.int64(types.int64, types.int64), generate


def _eight_at(_context: BaseContext, _base: types.Type, _at: types.Type) -> Generated:
    def generate(_: object, builder: ir.IRBuilder, __: object, arguments: list[ir.Value]) -> ir.Value:
        base, at = arguments
        return builder.load(_pointer(builder, base, at, _WORD), align=1)

    return types.int64(types.int64, types.int64), generate


def _put_byte(_context: BaseContext, _base: types.Type, _at: types.Type, _value: types.Type) -> Generated:
    def generate(context: Any, builder: ir.IRBuilder, _: object, arguments: list[ir.Value]) -> ir.Value:
        base, at, value = arguments
        builder.store(builder.trunc(value, _BYTE), _pointer(builder, base, at, _BYTE))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _put_eight(_context: BaseContext, _base: types.Type, _at: types.Type, _value: types.Type) -> Generated:
    def generate(context: Any, builder: ir.IRBuilder, _: object, arguments: list[ir.Value]) -> ir.Value:
        base, at, value = arguments
        builder.store(value, _pointer(builder, base, at, _WORD), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


byte_at = cast("Callable[[Int, Int], int]", intrinsic(_byte_at))
"""The byte at an offset from an address, as a number."""
eight_at = cast("Callable[[Int, Int], int]", intrinsic(_eight_at))
"""The eight bytes at an offset from an address, as a number."""
put_byte = cast("Callable[[Int, Int, Int], None]", intrinsic(_put_byte))
"""Set the byte at an offset from an address."""
put_eight = cast("Callable[[Int, Int, Int], None]", intrinsic(_put_eight))
"""Set the eight bytes at an offset from an address."""
