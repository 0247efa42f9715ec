"""The data page: the first rows of a snapshot, with a filter and selected columns."""

from starlette.responses import Response

from icefloe.ui.asking import Page, TablePage
from icefloe.ui.reading import first_rows

_MOST = 500


def data(page: Page) -> Response:
    """Show the first rows."""
    subject = TablePage.of(page, "data")
    page.site.check_rows()
    where, limit = page.query("where"), page.number("limit", 50, _MOST)
    names = [field.name for field in subject.table.scan(**subject.at).schema.fields]
    chosen = [name for name in page.request.query_params.getlist("column") if name in names]
    selected = tuple(_quoted(name) for name in chosen) or ("*",)

    def read(_: object) -> object:
        scan = subject.table.scan(where or None, selected, limit=limit + 1, **subject.at)
        return first_rows(scan.to_arrow_batch_reader(), limit)

    job = subject.ask("rows", "Reading rows", read, where, limit, selected)
    return subject.render_job(
        "data.html", job, lambda rows: {"rows": rows}, where=where, limit=limit, names=names, chosen=chosen
    )


def _quoted(name: str) -> str:
    """Quote a name: names with dots are top-level columns here."""
    return name
