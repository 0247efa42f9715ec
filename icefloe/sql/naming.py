"""How an error of a statement tells which statement, and which table or view, it is about."""

import re

from icefloe.errors import IcefloeError

_KEYWORDS = (
    "create or replace alter drop insert into overwrite delete update merge truncate describe show call use table view"
    " global temporary temp namespace from if not exists tblproperties partitions columns in extended"
).replace(" ", "|") + r"|with\s+schema\s+evolution"
_NAME = r"(?:`[^`]*`|[\w.])+"
_HEAD = re.compile(rf"\s*((?:(?:{_KEYWORDS})\s+)+{_NAME})", re.IGNORECASE)
_CLAUSE = re.compile(r"(?:\s+[A-Za-z]+\b){1,3}")
_QUERIES = ("select", "with", "from", "values", "table", "explain")


def head_of(text: str) -> str | None:
    """The words that say what a statement does, and to what: `ALTER TABLE shop.orders ADD COLUMN`; None of a query."""
    found = _HEAD.match(text)
    if found is None or text.split(None, 1)[0].lower() in _QUERIES:
        return None
    head = found[1]
    if head[:5].lower() == "alter" and (clause := _CLAUSE.match(text, found.end())) is not None:
        head += clause[0]
    return " ".join(head.split())


def name_statement(error: IcefloeError, text: str) -> None:
    """Put the head of the statement before what an error says, unless it says that already."""
    head = head_of(text)
    if head is None or len(error.args) != 1 or not isinstance(error.args[0], str):
        return
    if not error.args[0].startswith(head):
        error.args = (f"{head}: {error.args[0]}",)
