"""The overview page of a table, and the page of its properties."""

from collections.abc import Sequence

from starlette.responses import Response

from icefloe import metadata as md, properties as props
from icefloe.partitioning import shown_order, shown_spec
from icefloe.shown import minute, size
from icefloe.ui.asking import Page, TablePage
from icefloe.ui.charts import Point, growth_chart
from icefloe.ui.figures import Totals, change_of, glance, history_of, refs_of, totals_of
from icefloe.ui.pages.care import known_sign
from icefloe.ui.properties import shown_properties

_LAST = 6


def overview(page: Page) -> Response:
    """Show rows, files, size, health, refs, last change and growth."""
    subject = TablePage.of(page, "")
    table, metadata, snapshot = subject.table, subject.metadata, subject.snapshot
    now = totals_of(snapshot)
    line = history_of(metadata, None if snapshot is None else snapshot.snapshot_id)
    schema = table.scan(**subject.at).schema
    return subject.render(
        "overview.html",
        now=now,
        sign=known_sign(subject) or glance(metadata, now),
        target=props.WRITE_TARGET_FILE_SIZE_BYTES.of(metadata.properties),
        refs=refs_of(metadata),
        changes=[(each, change_of(each)) for each in reversed(line[-_LAST:])],
        charts=_charts(line),
        spec=shown_spec(table.spec(), table.schema()),
        order=shown_order(table.sort_order(), table.schema()),
        fields=schema.fields,
        snippets=_snippets(subject),
    )


def _charts(line: Sequence[md.Snapshot]) -> list[object]:
    known = [(each, totals_of(each)) for each in line]

    def points(of: str, unit: object) -> list[Point]:
        assert callable(unit)
        return [
            Point(each.timestamp_ms, value, f"{minute(each.timestamp_ms)}: {unit(value)} after {each.operation}")
            for each, totals in known
            if (value := _value(totals, of)) is not None
        ]

    return [
        growth_chart("Rows", points("rows", _count), "c1"),
        growth_chart("Data files", points("data_files", _count), "c3"),
        growth_chart("Size", points("bytes", size), "c2", size, base=2),
    ]


def _value(totals: Totals, name: str) -> float | None:
    value: float | None = getattr(totals, name)
    return value


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _snippets(subject: TablePage) -> dict[str, str]:
    """Return code snippets that read the table."""
    name = subject.text
    at = f"@{subject.version}" if subject.version else ""
    return {
        "Shell": f"icefloe head {_quoted(name + at)}",
        "Python": f'icefloe.load_catalog("{subject.catalog}").load_table({subject.identifier!r}).scan(limit=10).to_pandas()',
        "SQL": f"SELECT * FROM {name} LIMIT 10",
    }


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


def properties(page: Page) -> Response:
    """Show the properties of a table, with possible secrets masked."""
    subject = TablePage.of(page, "properties")
    metadata = subject.metadata
    shown = shown_properties(metadata.properties)
    facts = {
        "UUID": metadata.table_uuid,
        "Format version": metadata.format_version,
        "Location": metadata.location,
        "Metadata file": subject.table.metadata_location,
        "Last sequence number": metadata.last_sequence_number,
        "Last column id": metadata.last_column_id,
        "Earlier metadata files": len(metadata.metadata_log),
        "Statistics files": len(metadata.statistics),
    }
    specs = [(spec.spec_id, shown_spec(spec, subject.table.schema())) for spec in metadata.partition_specs]
    return subject.render("properties.html", properties=shown, facts=facts, specs=specs)
