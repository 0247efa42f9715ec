"""A Catalyst expression as a tree that Python can walk: read by one call, with a way back to the original."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from py4j.java_gateway import JavaObject

from icefloe.schema import JSON

_CATALYST = "org.apache.spark.sql.catalyst.expressions."


@dataclass(frozen=True, slots=True)
class Node:
    """A Catalyst expression: the name of its class, its JSON, its children, and a way to the original."""

    name: str
    facts: JSON
    children: tuple["Node", ...]
    real: Callable[[], JavaObject]

    def walk(self) -> Iterator["Node"]:
        """The node and all beneath it."""
        yield self
        for child in self.children:
            yield from child.walk()


class NotUnderstood(Exception):
    """Part of a predicate that says nothing about files."""


def tree(expression: JavaObject) -> Node:
    """The tree of a Catalyst expression, read by one call."""
    nodes = json.loads(expression.toJSON())
    node, used = _read(nodes, 0, lambda: expression)
    if used != len(nodes):
        raise NotUnderstood
    return node


def is_same(one: Node, other: Node) -> bool:
    """Whether two nodes stand for the same value."""
    return (
        one.facts == other.facts
        and len(one.children) == len(other.children)
        and all(map(is_same, one.children, other.children))
    )


def _read(nodes: Sequence[JSON], position: int, real: Callable[[], JavaObject]) -> tuple[Node, int]:
    facts = nodes[position]
    children, position = [], position + 1
    for index in range(int(facts["num-children"])):
        child, position = _read(nodes, position, partial(_child, real, index))
        children.append(child)
    return Node(str(facts["class"]).removeprefix(_CATALYST), facts, tuple(children), real), position


def _child(real: Callable[[], JavaObject], index: int) -> JavaObject:
    return real().children().apply(index)
