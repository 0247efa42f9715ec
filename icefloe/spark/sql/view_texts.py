"""The texts of temporary views: where one was written travels in it, and whenever Spark reads one, its plan is ours.

Spark keeps such a view as a text, and its session catalog has that parsed for every query that names the view. So the table
behind it is looked up each time, and the view shows the rows that are there then.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from icefloe.spark.gateway import Gateway
from icefloe.spark.sql.delegating_parser import DelegatingParser

_MARK = "icefloe view of: "
_MARKED = re.compile(rf"(.*)\n/\* {_MARK}(.*) \*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ViewText:
    """A view's query, the catalog and namespace of ours that were current, and the temporary views that it may name."""

    query: str
    home: tuple[str, tuple[str, ...]] | None = None
    temporary: frozenset[str] = frozenset()


def marked_view(text: str, home: tuple[str, tuple[str, ...]] | None, temporary: Iterable[str]) -> str:
    """A view's text with where it was written; without a catalog of ours as home, names say all by themselves."""
    if home is None:
        return text
    context = json.dumps([home[0], list(home[1]), sorted(temporary)]).replace("*/", "*\\/")
    return f"{text}\n/* {_MARK}{context} */"


def read_view(text: str) -> ViewText:
    """What `marked_view` wrote."""
    match = _MARKED.fullmatch(text)
    if match is None:
        return ViewText(text)
    catalog, namespace, temporary = json.loads(match[2])
    return ViewText(match[1], (catalog, tuple(namespace)), frozenset(temporary))


class ViewParser(DelegatingParser):
    """What Spark's session catalog sees as its parser: views are the only queries that it asks for."""

    def __init__(self, plan: Callable[[str, Callable[[str], Any]], Any], sparks: Any) -> None:
        super().__init__(sparks)
        self._plan = plan

    def parseQuery(self, text: str) -> Any:  # noqa: N802 - a name of the interface
        return self._returned(self._plan(text, self._sparks.parseQuery))


def install_view_parser(gateway: Gateway, plan: Callable[[str, Callable[[str], Any]], Any]) -> None:
    """Let the session's catalog ask us for the plans of views."""
    catalog = gateway.spark._jsparkSession.sessionState().catalog()
    field = gateway.load_class("org.apache.spark.sql.catalyst.catalog.SessionCatalog").getDeclaredField("parser")
    field.setAccessible(True)
    field.set(catalog, ViewParser(plan, catalog.parser()))
