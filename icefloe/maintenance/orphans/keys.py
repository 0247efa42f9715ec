"""When a listed file and one that metadata names are one file: by path, then by scheme and authority, as Java's procedure has it.

A path counts without its scheme and authority, with slashes collapsed and dots followed, since one writer's store collapses what
another's takes as it is: in doubt a file is needed. What metadata leaves out, a scheme or an authority, is any. Two files of one
path that differ in scheme or authority are in conflict, unless the caller says that these are equal.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidInputError, InvalidLocationError
from icefloe.maintenance.files.path_hashes import text_hashes
from icefloe.maintenance.files.path_set import Mask, PathSet
from icefloe.storage import parse_location

_PREFIX = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/]*))?")
_UNRESOLVED = r"//|/\.{1,2}(?:/|$)|/$"


@dataclass(frozen=True, slots=True)
class Prefix:
    """What stands before a path, in small letters; empty if it is left out."""

    scheme: str
    authority: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"

    def stands_for(self, listed: "Prefix") -> bool:
        """Whether a file that metadata names with this prefix is one that is listed with another: what is left out is any."""
        return self.scheme in ("", listed.scheme) and self.authority in ("", listed.authority)


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Which schemes and authorities are equal: each by the one that stands for it."""

    schemes: Mapping[str, str] = field(default_factory=dict)
    authorities: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(equal_schemes: Mapping[str, str], equal_authorities: Mapping[str, str]) -> "Prefixes":
        """From lists with commas, such as `{"s3a,s3n": "s3"}`."""
        return Prefixes(_flat(equal_schemes, "equal_schemes"), _flat(equal_authorities, "equal_authorities"))

    def prefix_of(self, location: str) -> tuple[Prefix, str]:
        """The prefix of a location that stands for all equal ones, and how it is spelled there."""
        match = _PREFIX.match(location)
        assert match is not None
        scheme, authority = (match[1] or "").lower(), (match[2] or "").lower()
        if scheme:
            try:
                parsed = parse_location(location)
                scheme, authority = parsed.scheme, parsed.authority.lower()
            except InvalidLocationError:
                pass
        chosen = self.schemes.get(scheme, self.schemes.get((match[1] or "").lower(), scheme))
        return Prefix(chosen, self.authorities.get(authority, authority)), match[0]


def _flat(groups: Mapping[str, str], name: str) -> dict[str, str]:
    flat: dict[str, str] = {}
    for names, chosen in groups.items():
        if not names.strip() or not (chosen or "").strip():
            raise InvalidInputError(f"{name} has {names!r}: {chosen!r}; write it as {{'s3a,s3n': 's3'}}")
        flat |= dict.fromkeys((part.strip().lower() for part in names.split(",")), chosen.strip().lower())
    return flat


class NeededPaths:
    """The files that a table needs, as far as they are known yet."""

    def __init__(self, prefixes: Prefixes) -> None:
        self._prefixes = prefixes
        self._paths: dict[Prefix, PathSet] = {}
        """Hashes of paths by what stands before them: mostly there is one."""

    @property
    def seen(self) -> frozenset[Prefix]:
        """The prefixes of all of them."""
        return frozenset(self._paths)

    def add(self, locations: pa.Array) -> None:
        """Files that metadata names."""
        for _, prefix, paths in self._parts(locations):
            self._paths.setdefault(prefix, PathSet()).add_hashes(text_hashes(paths))

    def compare(self, locations: pa.Array) -> tuple[Mask, Mask]:
        """Which of the listed files are needed, and which are in conflict with one that is."""
        needed = np.zeros(len(locations), bool)
        conflicting = np.zeros(len(locations), bool)
        for rows, prefix, paths in self._parts(locations):
            # A bare path is one of the local disk.
            listed = Prefix(prefix.scheme or "file", prefix.authority)
            hashes = text_hashes(paths)
            for known, known_paths in self._paths.items():
                mask = needed if known.stands_for(listed) else conflicting
                mask[rows] |= known_paths.contains_hashes(hashes)
        return needed, conflicting & ~needed

    def prefix_of(self, location: str) -> Prefix:
        """The prefix of a listed file."""
        return self._prefixes.prefix_of(location)[0]

    def _parts(self, locations: pa.Array) -> Iterator[tuple[npt.NDArray[np.int64], Prefix, pa.Array]]:
        """The locations by their prefixes: which rows they are, and their paths."""
        rows = np.arange(len(locations))
        while len(rows):
            here = locations.take(pa.array(rows))
            prefix, root = self._prefixes.prefix_of(here[0].as_py())
            begins = _begins(here, root)
            paths = pc.utf8_slice_codeunits(here.filter(pa.array(begins)), len(root))
            yield rows[begins], prefix, _resolved(paths)
            rows = rows[~begins]

    def close(self) -> None:
        """Give the disk back."""
        for paths in self._paths.values():
            paths.close()


def _begins(locations: pa.Array, root: str) -> Mask:
    """Which locations have this prefix; the first one does."""
    begins = pc.starts_with(locations, f"{root}/")
    if "//" not in root:
        begins = pc.and_not(begins, pc.starts_with(locations, f"{root}//"))
    mask: Mask = begins.to_numpy(zero_copy_only=False).copy()
    mask[0] = True
    return mask


def _resolved(paths: pa.Array) -> pa.Array:
    odd = pc.match_substring_regex(paths, _UNRESOLVED)
    if not pc.any(odd, min_count=0).as_py():
        return paths
    texts = ["/" + posixpath.normpath(path).lstrip("/") for path in paths.filter(odd).to_pylist()]
    return pc.replace_with_mask(paths, odd, pa.array(texts, paths.type))
