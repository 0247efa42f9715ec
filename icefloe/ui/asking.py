"""Request and response of a page: visitor, names in the path, links to other pages, and templates."""

import datetime as dt
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from icefloe import __version__, errors, metadata as md
from icefloe.catalog import At, Identifier, choose_version, show, show_table
from icefloe.planning import choose_snapshot
from icefloe.rest.paths_codec import decode_name, decode_namespace, encode_name, encode_namespace
from icefloe.shown import cell, counted, minute, shown_time, size, utc
from icefloe.table import Table
from icefloe.ui.jobs import Job, Work
from icefloe.ui.site import Site
from icefloe.ui.visitors import Visitor

COOKIE, THEME = "icefloe-page", "icefloe-theme"
_CELL = 120


_STATUSES: tuple[tuple[type[Exception], int, str], ...] = (
    (errors.NoSuchObjectError, 404, "Not found"),
    (errors.ForbiddenError, 403, "Not allowed"),
    (errors.InvalidInputError, 400, "Invalid request"),
    (errors.StateError, 409, "Not possible in the current state"),
    (errors.StorageError, 502, "Storage error"),
    (errors.ServiceUnavailableError, 503, "Service unavailable"),
    (errors.IcefloeError, 500, "Error"),
)


def told(error: BaseException) -> tuple[int, str, str]:
    """Return status, title and message of the page for an error."""
    for kind, status, title in _STATUSES:
        if isinstance(error, kind):
            return status, title, str(error)
    return 500, "Internal error", "See the server log for details."


def _ago(timestamp_ms: int | None) -> str:
    if timestamp_ms is None:
        return "never"
    seconds = max(0.0, time.time() - timestamp_ms / 1000)
    for unit, length in (("year", 31_557_600), ("month", 2_629_800), ("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return f"{counted(int(seconds // length), unit)} ago"
    return "just now"


def _moment(timestamp_ms: int | None) -> Markup:
    if timestamp_ms is None:
        return Markup("never")
    moment = utc(timestamp_ms)
    assert moment is not None
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        moment.isoformat(), f"{moment:%Y-%m-%d %H:%M:%S}", _ago(timestamp_ms)
    )


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}"


def _cut(value: object) -> str:
    text = _shown(value)
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"


def _shown(value: object) -> str:
    return shown_time(value) if isinstance(value, dt.datetime) else cell(value)


_TEMPLATES = Environment(
    loader=PackageLoader("icefloe.ui"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_TEMPLATES.filters |= {
    "size": lambda value: "unknown" if value is None else size(value),
    "number": _number,
    "ago": _moment,
    "minute": minute,
    "cell": _shown,
    "cut": _cut,
    "counted": counted,
    "dotted": show,
}
_TEMPLATES.globals["version"] = __version__


@dataclass
class Page:
    """A parsed page request."""

    site: Site
    request: Request
    visitor: Visitor
    form_key: str
    form: Mapping[str, str]

    @property
    def root(self) -> str:
        """The root path of the pages."""
        return str(self.request.scope.get("root_path", "")).rstrip("/")

    def name(self, parameter: str) -> str:
        """Return a name in the path."""
        return decode_name(self.request.path_params[parameter])

    @property
    def namespace(self) -> Identifier:
        """Return the namespace in the path."""
        return decode_namespace(self.request.path_params["namespace"])

    def query(self, name: str, default: str = "") -> str:
        """Return a query parameter, stripped of surrounding spaces."""
        return self.request.query_params.get(name, default).strip()

    def number(self, name: str, default: int = 0, most: int = 1_000_000) -> int:
        """Return a query parameter that is a non-negative integer."""
        text = self.query(name)
        if not text:
            return default
        if not (text.isascii() and text.isdigit()) or int(text) > most:
            raise errors.InvalidInputError(f"{name} must be an integer between 0 and {most}, not {text!r:.40}")
        return int(text)

    def link(self, *segments: str, **query: object) -> str:
        """Return a link to a page, from segments that are already URL-encoded."""
        given = {key: value for key, value in query.items() if value not in (None, "", 0)}
        return "/".join([self.root, *segments]) + (f"?{urlencode(given)}" if given else "")

    def to_catalog(self, catalog: str) -> str:
        """Return the link to a catalog."""
        return self.link("c", encode_name(catalog))

    def to_namespace(self, catalog: str, namespace: Identifier) -> str:
        """Return the link to a namespace."""
        return self.link("c", encode_name(catalog), encode_namespace(namespace))

    def to_table(self, catalog: str, identifier: Identifier, page: str = "", **query: object) -> str:
        """Return the link to a page of a table."""
        segments = ["t", encode_name(catalog), encode_namespace(identifier[:-1]), encode_name(identifier[-1])]
        return self.link(*segments, *([page] if page else []), **query)

    def to_view(self, catalog: str, identifier: Identifier) -> str:
        """Return the link to a view."""
        return self.link("v", encode_name(catalog), encode_namespace(identifier[:-1]), encode_name(identifier[-1]))

    def render(self, template: str, /, status: int = 200, **context: Any) -> Response:
        """Render a template."""
        context = {"page": self, "site": self.site, "visitor": self.visitor, "theme": theme_of(self.request), **context}
        return HTMLResponse(_TEMPLATES.get_template(template).render(context), status)

    def go(self, link: str) -> Response:
        """Redirect to another page."""
        return RedirectResponse(link, 303)


@dataclass(frozen=True, slots=True)
class Pager:
    """The current page of a long list, with links to the previous and next one."""

    text: str
    before: str | None
    after: str | None


def pager(first: int, step: int, total: int, link: Callable[[int], str]) -> Pager | None:
    """Return the pager of a list; None if everything fits on one page."""
    if total <= step:
        return None
    text = f"{first + 1:,} – {min(first + step, total):,} of {total:,}"
    return Pager(
        text, link(max(first - step, 0)) if first else None, link(first + step) if first + step < total else None
    )


def theme_of(request: Request) -> str:
    """Return the selected theme: light, dark or auto."""
    chosen = request.cookies.get(THEME, "")
    return chosen if chosen in ("light", "dark") else "auto"


def render_bare(request: Request, template: str, status: int, **context: Any) -> Response:
    """Render a template for a visitor who is not signed in."""
    root = str(request.scope.get("root_path", "")).rstrip("/")
    shown = _TEMPLATES.get_template(template).render(theme=theme_of(request), root=root, **context)
    return HTMLResponse(shown, status)


@dataclass
class TablePage:
    """A request for a page of a table, at the selected snapshot."""

    page: Page
    catalog: str
    identifier: Identifier
    table: Table
    tab: str

    @staticmethod
    def of(page: Page, tab: str) -> "TablePage":
        """Load the table named in the path."""
        catalog = page.name("catalog")
        identifier = (*page.namespace, page.name("table"))
        return TablePage(page, catalog, identifier, page.site.table(page.visitor, catalog, identifier), tab)

    @property
    def metadata(self) -> md.TableMetadata:
        """The table's metadata."""
        return self.table.metadata

    @cached_property
    def version(self) -> str:
        """The selected branch, tag, snapshot or time; empty for the current state."""
        return self.page.query("at")

    @cached_property
    def at(self) -> At:
        """The selected version as arguments of scans."""
        return choose_version(self.metadata, self.version or None)

    @cached_property
    def snapshot(self) -> md.Snapshot | None:
        """The selected snapshot."""
        return choose_snapshot(self.metadata, self.at.get("snapshot_id"), self.at.get("ref"), self.at.get("as_of"))

    @property
    def text(self) -> str:
        """The table name as the command line takes it."""
        name = show_table(self.identifier)
        several = len(self.page.site.catalogs) > 1
        return f"{show_table((self.catalog,))}.{name}" if several else name

    def link(self, page: str = "", **query: object) -> str:
        """Return a link to another page of the table, at the same snapshot unless the query overrides it."""
        return self.page.to_table(self.catalog, self.identifier, page, **{"at": self.version, **query})

    @property
    def state(self) -> tuple[object, ...]:
        """Key that identifies the state of the table, even if its metadata has no file."""
        metadata = self.metadata
        return (
            self.table.metadata_location,
            metadata.table_uuid,
            metadata.last_updated_ms,
            metadata.last_sequence_number,
        )

    def ask(self, what: str, title: str, work: Work, *more: object) -> Job:
        """Run work on the selected, immutable state; it is done once and shared by all requests."""
        snapshot = None if self.snapshot is None else self.snapshot.snapshot_id
        key = (what, self.catalog, self.identifier, *self.state, snapshot, *more)
        return self.page.site.jobs.ask(key, title, (self.catalog, self.identifier), work)

    def render(self, template: str, /, status: int = 200, **context: Any) -> Response:
        """Render a template about this table."""
        return self.page.render(template, status, subject=self, **context)

    def render_job(self, template: str, job: Job, make: Callable[[Any], Mapping[str, Any]], **context: Any) -> Response:
        """Render the result of a job, or its progress while it is running."""
        if not job.done.is_set():
            return self.render("waiting.html", job=job, **context)
        if job.error is not None:
            status, title, message = told(job.error)
            return self.render("failed.html", status, title=title, message=message, **context)
        return self.render(template, job=job, **context, **make(job.result))
