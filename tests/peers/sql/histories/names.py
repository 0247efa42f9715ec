"""Which names columns get: plain ones mostly, now and then one that must be quoted, a keyword, or the twin of another by case."""

import random

PLAIN = ("a", "b", "c", "d", "e", "n", "id", "part")
ODD = (
    "a b",
    "a.b",
    "select",
    "1x",
    "a-b",
    "tick`",
    "x:y",
    "x/y",
    "ä",
    "名",
    "_c",
    "50%",
    "a=b",
    "key",
    "value",
    "element",
    "list",
    "date",
    "s'q",
    'd"q',
    "pos",
    "file_path",
    "_row",
    "order",
    "😀",
)


def quoted(name: str) -> str:
    """The name as SQL reads it."""
    if name.isidentifier() and name.isascii() and name.lower() not in ("select", "order", "date") and name[0] != "_":
        return name
    return "`" + name.replace("`", "``") + "`"


def text(value: str) -> str:
    """A text as SQL reads it."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def new_name(chance: random.Random, taken: "list[str]", *, odd: float, twins: bool) -> str:
    """A name that none of the taken ones equals; `twins` allows one that differs by case alone."""

    def free(name: str) -> bool:
        return name not in taken if twins else name.lower() not in {each.lower() for each in taken}

    for _ in range(50):
        name = chance.choice(ODD if chance.random() < odd else PLAIN)
        if twins and taken and chance.random() < 0.4:
            name = chance.choice(taken).swapcase()
        elif chance.random() < 0.1:
            name = name.upper()
        if free(name):
            return name
    return next(f"c{i}" for i in range(10_000) if free(f"c{i}"))
