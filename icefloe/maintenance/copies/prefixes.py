"""Where a path goes when everything beneath one location moves to another."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, metadata as md
from icefloe.storage import absolute_location, identity


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The location that files are beneath, and the one that they will be beneath; both without a slash at their end."""

    source: str
    target: str
    keeps_relative: bool = False
    """Whether paths without a scheme are relative to the table, and stay what they are (v4)."""

    @staticmethod
    def of(source: str, target: str, *, keeps_relative: bool = False) -> "Prefixes":
        """What a caller gave, checked."""
        for name, text in (("source_prefix", source), ("target_prefix", target)):
            if not text.strip("/ "):
                raise errors.InvalidInputError(f"{name} is {text!r}; it must be a location")
        chosen = Prefixes(source.rstrip("/"), absolute_location(target).rstrip("/"), keeps_relative)
        if identity(absolute_location(chosen.source)) == identity(chosen.target):
            raise errors.InvalidInputError(
                f"source_prefix and target_prefix are the same location, {source!r}; nothing would move"
            )
        return chosen

    def moved(self, path: str) -> str:
        """A path as it will be."""
        if self.keeps_relative and not md.is_absolute(path):
            return path
        return self.target + self.rest(path)

    def has(self, path: str) -> bool:
        """Whether a path is beneath the source."""
        return self._rest(path) is not None

    def rest(self, path: str) -> str:
        """What follows the source in a path, with the slash; an error if the path is not beneath it."""
        rest = self._rest(path)
        if rest is None:
            raise errors.InvalidInputError(
                f"{path} is not beneath the source prefix {self.source!r}; all files of the table must be, so give a prefix"
                " that they have in common"
            )
        return rest

    def moved_column(self, paths: pa.Array) -> pa.Array:
        """Paths as they will be; null stays null."""
        begins = pc.starts_with(paths, f"{self.source}/")
        moved = pc.binary_join_element_wise(
            pa.scalar(self.target), pc.utf8_slice_codeunits(paths, len(self.source)), ""
        )
        if pc.all(begins, min_count=0).as_py():
            return moved
        # Few spell a path otherwise than their table does.
        others = [None if text is None else self.moved(text) for text in paths.filter(pc.invert(begins)).to_pylist()]
        return pc.replace_with_mask(moved, pc.fill_null(pc.invert(begins), False), pa.array(others, paths.type))

    def _rest(self, path: str) -> str | None:
        if path == self.source or path.startswith(f"{self.source}/"):
            return path[len(self.source) :]
        if self.keeps_relative and not md.is_absolute(path):
            return None
        normal, source = identity(path), identity(absolute_location(self.source))
        return normal[len(source) :] if normal == source or normal.startswith(f"{source}/") else None
