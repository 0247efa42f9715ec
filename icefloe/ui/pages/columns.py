"""The page of columns: the schema, its history, and metrics of a column."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from icefloe import errors
from icefloe.schema import NestedField, Schema, types
from icefloe.shown import size
from icefloe.ui.asking import Page, TablePage
from icefloe.ui.charts import overlap_chart
from icefloe.ui.digests import ColumnDigest, digest_column


@dataclass(frozen=True, slots=True)
class Line:
    """A column with its nesting depth."""

    field: NestedField
    name: str
    depth: int
    is_identifier: bool


@dataclass(frozen=True, slots=True)
class Step:
    """Change of a column in a schema version."""

    schema_id: int
    kind: str
    """added, changed or dropped."""
    name: str
    before: str
    after: str


def columns(page: Page) -> Response:
    """Show all columns with their history, and metrics of the selected one."""
    subject = TablePage.of(page, "columns")
    schema = subject.table.scan(**subject.at).schema
    chosen = page.query("column")
    shared: dict[str, Any] = {"lines": _lines(schema), "steps": _steps(subject), "chosen": chosen, "schema": schema}
    if not chosen:
        return subject.render("columns.html", digest=None, chart=None, **shared)
    if chosen not in schema.names_by_id.values():
        raise errors.NoSuchColumnError(f"no column {chosen!r:.200}")
    job = subject.ask(
        "column",
        f"Metrics of {chosen}",
        lambda listener: digest_column(subject.table, subject.at, chosen, listener),
        chosen,
    )

    def make(digest: ColumnDigest) -> dict[str, object]:
        chart = None if digest.overlap is None else overlap_chart(f"Bounds of {chosen}", digest.overlap)
        return {"digest": digest, "chart": chart, "facts": _facts(digest), **shared}

    return subject.render_job("columns.html", job, make)


def _facts(digest: ColumnDigest) -> list[tuple[str, object]]:
    nulls = None if digest.nulls is None or not digest.values else digest.nulls / digest.values
    return [
        ("Least", digest.low),
        ("Greatest", digest.high),
        ("Values", digest.values),
        ("Nulls", None if digest.nulls is None else f"{digest.nulls:,}" + (f" ({nulls:.1%})" if nulls else "")),
        ("Size in files", None if digest.bytes is None else size(digest.bytes)),
        ("Files without bounds", digest.without_bounds),
    ]


def _lines(schema: Schema) -> list[Line]:
    return [line for field in schema.fields for line in _with_inner(schema, field, field.name, 0)]


def _with_inner(schema: Schema, field: NestedField, name: str, depth: int) -> Iterator[Line]:
    yield Line(field, name, depth, field.field_id in schema.identifier_field_ids)
    inner = field.field_type.fields if isinstance(field.field_type, types.NestedType) else ()
    for part in inner:
        yield from _with_inner(schema, part, part.name, depth + 1)


def _steps(subject: TablePage) -> Sequence[Step]:
    """Return the changes of each schema version, newest first."""
    steps, before = list[Step](), dict[int, NestedField]()
    for schema_id, schema in sorted(subject.table.schemas().items()):
        after = {field.field_id: field for field in schema.fields}
        for field_id in sorted(before.keys() | after.keys()):
            old, new = before.get(field_id), after.get(field_id)
            if old == new:
                continue
            kind = "added" if old is None else "dropped" if new is None else "changed"
            steps.append(Step(schema_id, kind, (new or old).name, _text(old), _text(new)))  # type: ignore[union-attr]  # one of them is not None
        before = after
    return steps[::-1]


def _text(field: NestedField | None) -> str:
    return "" if field is None else f"{field.name} {field.field_type}{' required' if field.required else ''}"
