"""What the generator knows of a table while it writes a history: its columns, its partitions and its refs, if all went well so far."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.peers.sql.histories.known import Defect
from tests.peers.sql.histories.parts import Part
from tests.peers.sql.histories.types import (
    BIGINT,
    BINARY,
    DATE,
    INT,
    NTZ,
    STRING,
    TIMESTAMP,
    Decimal,
    Field,
    Keys,
    Path,
    Shapes,
    Struct,
    Type,
    changed,
    paths,
)

TABLE, COPY, VIEW = "«t»", "«u»", "«v»"
"""Stand for the table, another one that is made from it, and a temporary view of it."""

MODES = ("copy-on-write", "merge-on-read")
"""The first version of the format has the first alone: Java refuses the other there, and we copy."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One step of a history."""

    part: Part
    kind: str


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A field of the partition spec: its text in SQL, and the column it is made of."""

    name: str
    part: Part
    source: str
    identity: bool


@dataclass
class Draft:
    """A history that is being written."""

    chance: random.Random
    keys: Keys
    shapes: Shapes
    version: int
    settings: dict[str, str]
    avoid: frozenset[Defect]
    fields: tuple[Field, ...] = ()
    partitions: list[PartitionField] = field(default_factory=list)
    branches: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    snapshots: int = 0
    copy: tuple[Field, ...] | None = None
    view: bool = False
    wap: bool = False
    mode: str = "copy-on-write"

    def may(self, defect: Defect) -> bool:
        """Whether what a known defect concerns is generated."""
        return defect not in self.avoid

    @property
    def sensitive(self) -> bool:
        """Whether case matters in names."""
        return self.settings.get("spark.sql.caseSensitive") == "true"

    def change(self, steps: tuple[str, ...], change: Callable[[tuple[Field, ...]], tuple[Field, ...]]) -> None:
        """Change the fields of the table, or of a struct in it."""

        def of_struct(kind: Type) -> Type:
            assert isinstance(kind, Struct)
            return Struct(change(kind.fields))

        found = changed(Struct(self.fields), steps, of_struct)
        assert isinstance(found, Struct)
        self.fields = found.fields

    def retype(self, steps: tuple[str, ...], kind: Type) -> None:
        """Give a place another type."""
        found = changed(Struct(self.fields), steps, lambda _: kind)
        assert isinstance(found, Struct)
        self.fields = found.fields

    def with_field(self, steps: tuple[str, ...], key: str, **changes: object) -> None:
        """Change one field of the table, or of a struct in it."""
        self.change(
            steps,
            lambda fields: tuple(replace(each, **changes) if each.key == key else each for each in fields),  # type: ignore[arg-type]  # names of attributes of a field
        )


def partitionable(fields: tuple[Field, ...]) -> list[Path]:
    """Columns that a transform may take."""
    return [path for path in paths(fields) if isinstance(path.last.type, Decimal) or path.last.type in _TRANSFORMS]


_TRANSFORMS: dict[Type, tuple[str, ...]] = {
    INT: ("bucket", "truncate"),
    BIGINT: ("bucket", "truncate"),
    STRING: ("bucket", "truncate"),
    BINARY: ("bucket", "truncate"),
    DATE: ("bucket", "years", "months", "days"),
    TIMESTAMP: ("bucket", "years", "months", "days", "hours"),
    NTZ: ("bucket", "years", "months", "days", "hours"),
}


def transforms_of(kind: Type) -> tuple[str, ...]:
    """The transforms of a type, but for identity."""
    return ("bucket", "truncate") if isinstance(kind, Decimal) else _TRANSFORMS.get(kind, ())
