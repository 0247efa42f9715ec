"""Which bytes of a row become which columns: an Avro schema and a choice of fields, turned into a program for the walker.

Fields are matched by id, and by name only where the file carries no ids. What is not chosen is skipped, whatever its type.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from icefloe.avro import choices as ch, nodes as av, operations as op
from icefloe.avro.choices import Choice, Key, Take, TakeEach, TakeFields, TakePairs, TakeSpread

_NUMBERS = {"int": op.LONG, "long": op.LONG, "boolean": op.BOOL, "float": op.FLOAT, "double": op.DOUBLE}

MAX_LOOPS = 60
MAX_OPS = 1 << 20


class UnknownShape(Exception):
    """A schema that has no program; such files are read value by value."""


@dataclass(frozen=True, slots=True)
class Output:
    """Where a column comes out: bytes among the notes, numbers among the longs; `node` is the Avro type, without null."""

    key: Key
    index: int
    node: av.AvroNode


@dataclass(frozen=True, slots=True)
class ListOutput:
    """A list column: the long column of its lengths, its number, and what its items hold, by stream.

    Items of `records` are structs even with one field; those of `fused` pairs are never null and have no marks.
    """

    key: Key
    lengths: int
    number: int
    items: tuple[Output, ...]
    records: bool = True
    fused: bool = False


@dataclass(slots=True)
class Program:
    """Operations for the walker, the keys that it looks for, and what comes out where."""

    ops: list[int] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    lists: list[ListOutput] = field(default_factory=list)
    longs: int = 0
    notes: int = 0
    streams: int = 0
    smallest: int = 0


def compile_program(schema: av.AvroNode, choice: TakeFields) -> Program:
    """The program that takes the chosen fields out of rows of this schema, or UnknownShape."""
    if not isinstance(schema, av.AvroRecord):
        raise UnknownShape("the rows are not records")
    compiler = Compiler()
    compiler.read(schema, choice)
    compiler.program.ops.append(op.END)
    compiler.program.smallest = av.smallest_size(schema)
    return compiler.program


def field_of(record: av.AvroRecord, field_id: int, name: str) -> av.AvroField | None:
    """The field of that id; of that name if the record carries no ids at all."""
    if any(child.field_id is not None for child in record.fields):
        return next((child for child in record.fields if child.field_id == field_id), None)
    return next((child for child in record.fields if child.name == name), None)


class Compiler:
    def __init__(self) -> None:
        self.program = Program()
        self.known: dict[Key, Output] = {}
        self.loops = 0
        self.list_number = -1
        self.outputs: list[Output] = self.program.outputs

    # -- output columns

    def emit(self, *ops: int) -> int:
        at = len(self.program.ops)
        if at > MAX_OPS:
            raise UnknownShape("the schema is too large")
        self.program.ops.extend(ops)
        return at

    def new_long(self, count: int = 1) -> int:
        self.program.longs += count
        return self.program.longs - count

    def column(self, key: Key, node: av.AvroNode) -> int:
        """A new output column for a leaf; negative numbers name streams of items."""
        known = self.known.get(key)
        if known is not None:
            if known.node != node:
                raise UnknownShape("branches of a union are stored in different ways")
            return known.index
        if self.list_number >= 0:
            self.program.streams += 1
            index = -self.program.streams
        elif av.is_bytes(node):
            self.program.notes += 1
            index = self.program.notes - 1
        else:
            index = self.new_long()
        self.known[key] = Output(key, index, node)
        self.outputs.append(self.known[key])
        return index

    # -- reading what is chosen

    def read(self, node: av.AvroNode, choice: Choice) -> None:
        if isinstance(node, av.AvroUnion):
            self.union(node, lambda branch: self.skip(branch) if branch == av.NULL else self.read(branch, choice))
            return
        match choice:
            case TakeFields():
                self.read_fields(node, choice)
            case Take():
                self.leaf(node, choice.key)
            case TakeEach():
                self.read_each(node, choice)
            case ch.TakeList():
                self.read_list(node, choice.key, Take((choice.key[0], 1)))
            case ch.TakeRecords():
                fields = TakeFields(tuple((field_id, name, Take(key)) for field_id, name, key in choice.fields))
                self.read_list(node, choice.key, fields)
            case TakePairs():
                self.read_pairs(node, choice)
            case TakeSpread():
                self.read_spread(node, choice)

    def union(self, node: av.AvroUnion, read: Callable[[av.AvroNode], None]) -> None:
        at = self.emit(op.UNION, len(node.branches), *([0] * len(node.branches)))
        ends = []
        for i, branch in enumerate(node.branches):
            self.program.ops[at + 2 + i] = len(self.program.ops)
            read(branch)
            ends.append(self.emit(op.JUMP, 0))
        for end in ends:
            self.program.ops[end + 1] = len(self.program.ops)

    def read_fields(self, node: av.AvroNode, choice: TakeFields) -> None:
        if not isinstance(node, av.AvroRecord):
            raise UnknownShape("a record was expected")
        chosen = {
            id(child): inner
            for field_id, name, inner in choice.fields
            if (child := field_of(node, field_id, name)) is not None
        }
        for child in node.fields:
            if id(child) in chosen:
                self.read(child.node, chosen[id(child)])
            else:
                self.skip(child.node)

    def read_each(self, node: av.AvroNode, choice: TakeEach) -> None:
        if not isinstance(node, av.AvroRecord):
            raise UnknownShape("a record was expected")
        for i, child in enumerate(node.fields):
            number = child.field_id if child.field_id is not None else -1 - i
            inner = av.without_null(child.node)
            if inner == av.AvroPrimitive("null") or (choice.only is not None and number not in choice.only):
                self.skip(child.node)
            elif isinstance(inner, av.AvroRecord) and inner.is_variant:
                self.read(child.node, ch.parts_of_variant(choice.role, number))
            elif isinstance(inner, av.AvroRecord):
                self.read(child.node, TakeEach(choice.role))
            else:
                self.read(child.node, Take((choice.role, number)))

    def leaf(self, node: av.AvroNode, key: Key) -> None:
        match node:
            case av.AvroPrimitive("null"):
                pass
            case av.AvroPrimitive("bytes" | "string"):
                self.emit(op.BYTES, self.column(key, node))
            case av.AvroPrimitive(kind):
                self.emit(_NUMBERS[kind], self.column(key, node))
            case av.AvroFixed(size) if size > 0:
                self.emit(op.FIXED, self.column(key, node), size)
            case _:
                raise UnknownShape("a primitive was expected")

    def read_list(self, node: av.AvroNode, key: Key, element: Choice) -> None:
        if not isinstance(node, av.AvroArray) or self.list_number >= 0:
            raise UnknownShape("a list of its own was expected")
        smallest = av.smallest_size(node.items)
        if smallest == 0 or any(known.key == key for known in self.program.lists):
            raise UnknownShape("a list whose items take bytes was expected")
        lengths, self.list_number, self.outputs = self.new_long(), len(self.program.lists), []
        outside, self.known = self.known, {}
        self.program.lists.append(ListOutput(key, lengths, self.list_number, ()))
        number = self.list_number
        self.loop(number, lengths, smallest, lambda: self.read(node.items, element))
        records = not isinstance(element, Take)
        self.program.lists[number] = ListOutput(key, lengths, number, tuple(self.outputs), records)
        self.list_number, self.outputs, self.known = -1, self.program.outputs, outside

    def loop(self, number: int, lengths: int, smallest: int, body: Callable[[], None]) -> None:
        self.loops += 1
        if self.loops > MAX_LOOPS:
            raise UnknownShape("lists are nested too deeply")
        self.emit(op.ENTER, number)
        at = self.emit(op.LOOP, number, lengths, smallest, 0)
        body()
        self.emit(op.JUMP, at)
        self.program.ops[at + 4] = len(self.program.ops)
        self.loops -= 1

    def read_pairs(self, node: av.AvroNode, choice: TakePairs) -> None:
        key, value = self.pair(node)
        if any(known.key == choice.key for known in self.program.lists):
            raise UnknownShape("a map may be chosen once")
        keys, values = (choice.key[0], 1), (choice.key[0], 2)
        lengths, number = self.new_long(), len(self.program.lists)
        self.program.streams += 2
        first = self.program.streams - 2
        items = (Output(keys, -1 - first, key), Output(values, -2 - first, value))
        self.program.lists.append(ListOutput(choice.key, lengths, number, items, fused=True))
        mode = op.PAIRS_BYTES if av.is_bytes(value) else op.PAIRS_LONG
        self.emit(op.PAIRS, mode, lengths, number, first, first + 1)

    def read_spread(self, node: av.AvroNode, choice: TakeSpread) -> None:
        _, value = self.pair(node)
        is_note = av.is_bytes(value)
        start, numbers = len(self.program.keys), sorted(set(choice.keys))
        self.program.keys.extend(numbers)
        for number in numbers:
            if (choice.role, number) in self.known:
                raise UnknownShape("a map may be chosen once")
            self.column((choice.role, number), value)
        first = (self.program.notes if is_note else self.program.longs) - len(numbers)
        self.emit(op.PAIRS, op.SPREAD_BYTES if is_note else op.SPREAD_LONG, first, len(numbers), start, 0)

    def pair(self, node: av.AvroNode) -> tuple[av.AvroNode, av.AvroNode]:
        pair = pair_of(node)
        if pair is None or self.list_number >= 0:
            raise UnknownShape("a map from int to numbers or bytes was expected")
        return pair

    # -- skipping the rest

    def skip(self, node: av.AvroNode) -> None:
        match node:
            case av.AvroPrimitive("null"):
                pass
            case av.AvroPrimitive("int" | "long") | av.AvroEnum():
                self.emit(op.SKIP_LONG)
            case av.AvroPrimitive("bytes" | "string"):
                self.emit(op.SKIP_BYTES)
            case av.AvroPrimitive() | av.AvroFixed():
                self.emit(op.SKIP, av.smallest_size(node))
            case av.AvroRecord(fields):
                for child in fields:
                    self.skip(child.node)
            case av.AvroUnion():
                self.union(node, self.skip)
            case av.AvroArray(items) if av.smallest_size(items) == 0:
                self.emit(op.EMPTY_ITEMS)
            case av.AvroArray(items):
                self.skip_items(node, items)
            case av.AvroMap(values):
                self.loop(-1, -1, 1 + av.smallest_size(values), lambda: self.skip_entry(values))
            case av.AvroRecursion():
                raise UnknownShape("a type holds itself")
            case _:
                raise AssertionError(f"an Avro type without a way to skip it: {node}")

    def skip_items(self, node: av.AvroNode, items: av.AvroNode) -> None:
        if pair := pair_of(node):
            self.emit(op.PAIRS, op.SPREAD_BYTES if av.is_bytes(pair[1]) else op.SPREAD_LONG, 0, 0, 0, 0)
        else:
            self.loop(-1, -1, av.smallest_size(items), lambda: self.skip(items))

    def skip_entry(self, values: av.AvroNode) -> None:
        self.emit(op.SKIP_BYTES)
        self.skip(values)


def pair_of(node: av.AvroNode) -> tuple[av.AvroNode, av.AvroNode] | None:
    """Key and value of an array that stands for a map from int to numbers or bytes, never null, in that order."""
    match node:
        case av.AvroArray(
            av.AvroRecord(
                (
                    av.AvroField(node=av.AvroPrimitive("int" | "long", None) as key),
                    av.AvroField(node=av.AvroPrimitive("int" | "long" | "bytes" | "string") as value),
                )
            )
        ):
            return key, value
    return None
