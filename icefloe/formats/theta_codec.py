"""The bytes of a theta sketch: the ordered compact form of Apache DataSketches, version 3, little-endian."""

import numpy as np

from icefloe.errors import CorruptFileError
from icefloe.formats.theta import ALL, Hashes, ThetaSketch

THETA_BLOB = "apache-datasketches-theta-v1"
"""The type of the Puffin blob that holds a sketch."""
MOST_HASHES = 1 << 26
"""More hashes than the largest sketch of the library has."""

_WORD = 8
_SERIAL_VERSION = 3
_COMPACT_FAMILY = 3
_SEED_HASH = bytes.fromhex("cc93")
_BIG_ENDIAN, _READ_ONLY, _EMPTY, _COMPACT, _ORDERED, _SINGLE = 1, 2, 4, 8, 16, 32
_FLAGS = _READ_ONLY | _COMPACT | _ORDERED
_WHOLE = np.float32(1).tobytes()


def encode_sketch(sketch: ThetaSketch) -> bytes:
    """The bytes of a sketch, the same as those of the Java library for the same hashes and theta."""
    hashes = sketch.hashes.astype("<i8").tobytes()
    match len(sketch.hashes), sketch.is_exact:
        case 0, True:
            return _first_word(1, _EMPTY)
        case 1, True:
            return _first_word(1, _SINGLE) + hashes
        case count, True:
            return _first_word(2, 0) + count.to_bytes(4, "little") + _WHOLE + hashes
        case count, _:
            theta = sketch.theta.to_bytes(_WORD, "little")
            return _first_word(3, 0) + count.to_bytes(4, "little") + _WHOLE + theta + hashes


def decode_sketch(data: bytes, location: str) -> ThetaSketch:
    """The sketch that bytes of any writer hold."""
    words, flags = _read_first_word(data, location)
    if flags & _EMPTY:
        return ThetaSketch()
    if words == 1:
        return _checked(_hashes(data, 1, 1, location), ALL, location)
    if len(data) < words * _WORD:
        raise CorruptFileError(location, f"a theta sketch of {len(data)} bytes is shorter than its own header")
    count = int.from_bytes(data[8:12], "little")
    theta = ALL if words == 2 else int.from_bytes(data[16:24], "little", signed=True)
    return _checked(_hashes(data, words, count, location), theta, location)


def _first_word(words: int, flags: int) -> bytes:
    return bytes([words, _SERIAL_VERSION, _COMPACT_FAMILY, 0, 0, _FLAGS | flags]) + _SEED_HASH


def _read_first_word(data: bytes, location: str) -> tuple[int, int]:
    """How many words the header has, and its flags."""
    if len(data) < _WORD:
        raise CorruptFileError(location, f"{len(data)} bytes are too few for a theta sketch")
    words, version, family, flags = data[0] & 0x3F, data[1], data[2], data[5]
    if version != _SERIAL_VERSION or family != _COMPACT_FAMILY or flags & _BIG_ENDIAN:
        raise CorruptFileError(
            location,
            f"a theta sketch of version {version}, family {family} and flags {flags:#x} is not a compact one of version 3",
        )
    if not flags & _EMPTY and data[6:8] != _SEED_HASH:
        raise CorruptFileError(
            location, f"a theta sketch has the seed hash {data[6:8].hex()}, not that of the seed 9001"
        )
    if not 1 <= words <= 3:
        raise CorruptFileError(location, f"a compact theta sketch has 1 to 3 words of header, not {words}")
    return words, flags


def _hashes(data: bytes, words: int, count: int, location: str) -> Hashes:
    if count > MOST_HASHES or len(data) != _WORD * (words + count):
        raise CorruptFileError(location, f"a theta sketch of {count} hashes cannot have {len(data)} bytes")
    return np.frombuffer(data, "<i8", count, _WORD * words).astype(np.int64)


def _checked(hashes: Hashes, theta: int, location: str) -> ThetaSketch:
    ordered = np.unique(hashes)
    in_range = not len(ordered) or (ordered[0] > 0 and ordered[-1] < theta)
    if theta <= 0 or not in_range or len(ordered) != len(hashes):
        raise CorruptFileError(location, "a theta sketch holds hashes that are not distinct, or not below its theta")
    return ThetaSketch(ordered, theta)
