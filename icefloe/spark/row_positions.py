"""Where rows of a frame are: the positions that Spark's tasks gather of them, file by file."""

import struct
from dataclasses import dataclass, field

import numpy as np
from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame, functions as F  # noqa: N812  # its usual name

from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.spark.gateway import Gateway, col, lit
from icefloe.spark.jvm import door

FILE = "__icefloe_file"
POS = "__icefloe_pos"
_CHOSEN = "__icefloe_chosen"
_CHUNK_BITS = 18
"""How many low bits of a position distinguish rows that are gathered as one list, so that no list is long."""
_OTHERS, _PICKED, _REPEATED = range(3)
"""What a bitmap is of, in the words of icefloe/spark/jvm/row_changes.java."""
_LENGTH = struct.Struct(">i")
_KEY = struct.Struct(">q")


@dataclass(frozen=True)
class Gathered:
    """Where rows are, by file: chosen ones, others, and those that are there more than once."""

    chosen: dict[str, DeletionVector] = field(default_factory=dict)
    others: dict[str, DeletionVector] = field(default_factory=dict)
    repeated: dict[str, DeletionVector] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(vector.cardinality for part in (self.chosen, self.others) for vector in part.values())

    def leaves_rows(self) -> bool:
        """Whether there are rows that are not chosen."""
        return bool(self.others)

    def twice(self) -> tuple[int, str, int] | None:
        """How many rows are there more than once, and where one of them is."""
        for name, vector in self.repeated.items():
            return sum(other.cardinality for other in self.repeated.values()), name, next(iter(vector))
        return None

    def add(self, name: str, kind: int, vector: DeletionVector) -> None:
        """Take in rows of a file, which others may have said before."""
        if kind != _REPEATED:
            for part in (self.chosen, self.others):
                self._keep(self.repeated, name, part.get(name, DeletionVector()).intersection(vector))
        self._keep((self.others, self.chosen, self.repeated)[kind], name, vector)

    def _keep(self, part: dict[str, DeletionVector], name: str, vector: DeletionVector) -> None:
        if vector:
            part[name] = part[name].union(vector) if name in part else vector


def gathered(rows: DataFrame, chosen: Column | None = None) -> Gathered:
    """Where rows are, and which of them are chosen; a bitmap for each task and file reaches the driver."""
    flag = lit(True) if chosen is None else chosen
    entry = door.entry(rows.sparkSession, "row_changes", in_tasks=True)
    return _listed(rows, flag) if entry is None else _by_tasks(rows, flag, entry)


def _by_tasks(rows: DataFrame, flag: Column, entry: JavaObject) -> Gathered:
    """By Java classes of ours, in one stage."""
    places = Gathered()
    take_in(places, bytes(entry.gathered(rows.select(col(FILE), col(POS), flag)._jdf)))
    return places


def take_in(places: Gathered, content: bytes) -> None:
    """Take in what tasks say of places."""
    start = 0
    while start < len(content):
        start, name = _sized(content, start)
        if name:
            (key,) = _KEY.unpack_from(content, start)
            start, bitmap = _sized(content, start + _KEY.size)
            places.add(name.decode(), key & 3, DeletionVector.from_portable(bitmap, key >> 2))


def _sized(content: bytes, start: int) -> tuple[int, bytes]:
    (length,) = _LENGTH.unpack_from(content, start)
    end = start + _LENGTH.size + length
    return end, content[start + _LENGTH.size : end]


def _listed(rows: DataFrame, flag: Column) -> Gathered:
    """By lists that Spark itself collects: eight bytes a row reach the driver, and each file's name a few times."""
    gateway = Gateway(rows.sparkSession)
    chunk = gateway.cached("chunks of positions", lambda: F.shiftright(POS, _CHUNK_BITS))
    listed = gateway.cached("lists of positions", lambda: F.collect_list(POS).alias(POS))
    groups = rows.groupBy(col(FILE), flag.alias(_CHOSEN), chunk).agg(listed).select(FILE, _CHOSEN, POS).toArrow()
    places = Gathered()
    for batch in groups.to_batches():
        positions = batch.column(2)
        values, ends = positions.values.to_numpy(), positions.offsets.to_numpy()
        parts = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), ends[:-1], ends[1:], strict=True)
        for name, is_chosen, start, end in parts:
            numbers, times = np.unique(values[start:end], return_counts=True)
            places.add(name, _REPEATED, DeletionVector.from_positions(numbers[times > 1]))
            places.add(name, _PICKED if is_chosen else _OTHERS, DeletionVector.from_positions(numbers))
    return places
