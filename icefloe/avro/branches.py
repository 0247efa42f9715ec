"""Programs that take values with all their parts out of rows, lists within lists too, and the trees that come out."""

from collections.abc import Callable
from dataclasses import dataclass

from icefloe.avro import nodes as av, operations as op
from icefloe.avro.program import Compiler, ListOutput, Output, Program

ROWS = -1
"""The level of what is there once for each row; the others are numbers of lists."""

_STRING, _LONG = av.AvroPrimitive("string"), av.AvroPrimitive("long")


@dataclass(frozen=True, slots=True)
class Part:
    """What is taken of a value: fields of a record by position, the items of a list (0), keys (0) and values (1) of a map."""

    children: tuple[tuple[int, "Part"], ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """A value with its parts: `output` has its numbers, texts, lengths, or marks where it may be null.

    `level` is the number of a list or map, whose parts are there once for each of its items.
    """

    node: av.AvroNode
    output: Output | None
    children: tuple["Branch", ...] = ()
    level: int = ROWS


def compile_rows(record: av.AvroRecord, part: Part) -> tuple[Program, Branch]:
    """The program for the chosen parts of rows, or UnknownShape, and what comes out."""
    compiler = _Compiler()
    root = compiler.record(record, part, False)
    compiler.emit(op.END)
    compiler.program.smallest = av.smallest_size(record)
    return compiler.program, root


class _Compiler(Compiler):
    def branch(self, node: av.AvroNode, part: Part) -> Branch:
        value = av.option_of(node)
        if value is None:
            return self.value(node, part, False)
        assert isinstance(node, av.AvroUnion)
        at = self.emit(op.UNION, 2, 0, 0)
        null = node.branches.index(av.NULL)
        self.program.ops[at + 3 - null] = len(self.program.ops)
        branch = self.value(value, part, True)
        self.program.ops[at + 2 + null] = len(self.program.ops)
        return branch

    def value(self, node: av.AvroNode, part: Part, optional: bool) -> Branch:
        match node:
            case av.AvroRecord():
                return self.record(node, part, optional)
            case av.AvroArray(av.AvroRecord() as pair, is_map=True):
                return self.items(node, av.smallest_size(pair), lambda: self.record(pair, part, False).children)
            case av.AvroArray(items):
                return self.items(node, av.smallest_size(items), lambda: (self.branch(items, part.children[0][1]),))
            case av.AvroMap(values):
                value = part.children[1][1]
                smallest = 1 + av.smallest_size(values)
                return self.items(node, smallest, lambda: (self.leaf_branch(_STRING), self.branch(values, value)))
            case _:
                return self.leaf_branch(node)

    def record(self, node: av.AvroRecord, part: Part, optional: bool) -> Branch:
        marks = self.put(_LONG, op.MARK) if optional else None
        chosen = dict(part.children)
        children = []
        for i, field in enumerate(node.fields):
            if i in chosen:
                children.append(self.branch(field.node, chosen[i]))
            else:
                self.skip(field.node)
        return Branch(node, marks, tuple(children))

    def items(self, node: av.AvroNode, smallest: int, entry: Callable[[], tuple[Branch, ...]]) -> Branch:
        lengths = self.put(_LONG, None)
        number = len(self.program.lists)
        self.program.lists.append(ListOutput(lengths.key, lengths.index, number, ()))
        outer, self.list_number, self.outputs = (self.list_number, self.outputs), number, []
        children: list[Branch] = []
        self.loop(number, lengths.index, smallest, lambda: children.extend(entry()))
        self.program.lists[number] = ListOutput(lengths.key, lengths.index, number, tuple(self.outputs))
        self.list_number, self.outputs = outer
        return Branch(node, lengths, tuple(children), number)

    def put(self, node: av.AvroNode, code: int | None) -> Output:
        """A new column of numbers, and the operation that fills it."""
        key = "", len(self.known)
        index = self.column(key, node)
        if code is not None:
            self.emit(code, index)
        return self.known[key]

    def leaf_branch(self, node: av.AvroNode) -> Branch:
        match node:
            case av.AvroPrimitive("null") | av.AvroFixed(0):
                return Branch(node, None)
            case av.AvroEnum():
                return Branch(node, self.put(node, op.LONG))
            case _:
                key = "", len(self.known)
                self.leaf(node, key)
                return Branch(node, self.known[key])
