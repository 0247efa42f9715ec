"""Text of a statement as a tree that can be made smaller: items that may go, parts with simpler stand-ins, names of columns."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Ref:
    """The name of a column, by the key that it keeps when it is renamed: without the column there is no such text."""

    key: str
    name: str


@dataclass(frozen=True, slots=True)
class Seq:
    """Parts one after another, all needed."""

    parts: tuple["Part", ...]


@dataclass(frozen=True, slots=True)
class Item:
    """One of a list; it belongs to a column if it has a key."""

    part: "Part"
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Items:
    """A list, of which all but some may go; items that stand for columns go with their column alone."""

    items: tuple[Item, ...]
    separator: str = ", "
    least: int = 1


@dataclass(frozen=True, slots=True)
class Choice:
    """A part, and simpler ones that could stand in its place, the simplest first."""

    part: "Part"
    simpler: tuple["Part", ...]


Part: TypeAlias = str | Ref | Seq | Items | Choice


def seq(*parts: Part) -> Part:
    """Parts one after another; neighbouring texts become one."""
    found: list[Part] = []
    for part in parts:
        for each in part.parts if isinstance(part, Seq) else (part,):
            if isinstance(each, str) and found and isinstance(found[-1], str):
                found[-1] = found[-1] + each
            else:
                found.append(each)
    return found[0] if len(found) == 1 else Seq(tuple(found))


def items(parts: "list[Part] | tuple[Part, ...]", separator: str = ", ", least: int = 1) -> Items:
    """A list of parts that belong to no column."""
    return Items(tuple(Item(part) for part in parts), separator, least)


def columns(parts: "list[tuple[str, Part]]", separator: str = ", ", least: int = 1) -> Items:
    """A list with one part for each column, by their keys."""
    return Items(tuple(Item(part, key) for key, part in parts), separator, least)


def render(part: Part) -> str:
    """The text of it."""
    match part:
        case str():
            return part
        case Ref(name=name):
            return name
        case Seq(parts):
            return "".join(map(render, parts))
        case Items(found, separator):
            return separator.join(render(item.part) for item in found)
        case Choice(chosen):
            return render(chosen)


def without(part: Part, key: str) -> Part | None:
    """The same without a column; None if nothing is left that makes sense."""
    match part:
        case str():
            return part
        case Ref(found):
            return None if found == key else part
        case Seq(parts):
            rest = [without(each, key) for each in parts]
            return None if None in rest else seq(*(each for each in rest if each is not None))
        case Items(found):
            kept = tuple(
                replace(item, part=left)
                for item in found
                if item.key != key and (left := without(item.part, key)) is not None
            )
            return replace(part, items=kept) if len(kept) >= part.least else None
        case Choice(chosen, simpler):
            kept_part = without(chosen, key)
            if kept_part is not None:
                return replace(part, part=kept_part)
            return next((other for each in simpler if (other := without(each, key)) is not None), None)


def keys(part: Part) -> set[str]:
    """The columns that it names."""
    match part:
        case str():
            return set()
        case Ref(key):
            return {key}
        case Seq(parts):
            return set().union(*map(keys, parts))
        case Items(found):
            named = {item.key for item in found if item.key is not None}
            return named.union(*(keys(item.part) for item in found))
        case Choice(chosen):
            return keys(chosen)


def reductions(part: Part) -> Iterator[Part]:
    """Each smaller part that is one step away: first what removes much."""
    match part:
        case str() | Ref():
            return
        case Choice(chosen, simpler):
            for each in simpler:
                yield each
            for smaller in reductions(chosen):
                yield replace(part, part=smaller)
        case Items(found):
            for i, item in enumerate(found):
                if item.key is None and len(found) > part.least:
                    yield replace(part, items=found[:i] + found[i + 1 :])
            for i, item in enumerate(found):
                for smaller in reductions(item.part):
                    yield replace(part, items=(*found[:i], replace(item, part=smaller), *found[i + 1 :]))
        case Seq(parts):
            for i, each in enumerate(parts):
                for smaller in reductions(each):
                    yield seq(*parts[:i], smaller, *parts[i + 1 :])
