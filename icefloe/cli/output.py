"""Printing of results, rows or a single record, to standard output in the selected format."""

import csv
import io
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
from rich.cells import cell_len, set_cell_size

from icefloe.cli.exits import OutputClosedError
from icefloe.cli.options import Options, is_terminal
from icefloe.cli.values import json_value
from icefloe.shown import NULL, cell

JSON_VERSION = 1
"""Version of the JSON output; incremented when a key is removed or changes its meaning."""
_MEASURED_ROWS = 1000
"""Number of rows used to determine column widths; later rows may be wider."""
_MOST_SHOWN = 60
"""Maximum width of a cell on a terminal that is too narrow for the rows."""
_BATCH_ROWS = 1024

Record = Mapping[str, Any]
"""A row or a single result, by field name."""


class Output:
    """Prints results."""

    def __init__(self, options: Options, command: str) -> None:
        self._options = options
        self._command = command

    def record(self, record: Record, text: Callable[[], Iterable[str]] | None = None) -> None:
        """Print one result; in text format as the given lines, or one name and value per line."""
        match self._options.output:
            case "json":
                self._json(self._wrapped(json_value(record)))
            case "jsonl":
                self._json(json_value(record), indent=None)
            case "text":
                self.lines(text() if text is not None else _pairs(record))
            case "arrow":
                self.table(_arrow_table([record]))
            case _:
                self._listed([{"name": name, "value": value} for name, value in record.items()])

    def rows(self, rows: Sequence[Record], columns: Sequence[str] = (), shown: Sequence[Record] | None = None) -> None:
        """Print a list of results; `shown` replaces them in text format with more readable values."""
        match self._options.output:
            case "json":
                self._json(self._wrapped([json_value(row) for row in rows]))
            case "arrow":
                self.table(_arrow_table(rows))
            case "jsonl":
                for row in rows:
                    self._json(json_value(row), indent=None)
            case "text":
                self._aligned(iter(rows if shown is None else shown), columns)
            case _:
                self._listed(rows, columns)

    def table(self, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Print Arrow rows; a stream is printed in bounded memory."""
        reader = rows.to_reader(_BATCH_ROWS) if isinstance(rows, pa.Table) else rows
        try:
            self._stream(reader)
        finally:
            reader.close()

    def _stream(self, reader: pa.RecordBatchReader) -> None:
        names = reader.schema.names
        match self._options.output:
            case "arrow":
                self._arrow(reader)
            case "json":
                self._json_rows(_records(reader))
            case "jsonl":
                for row in _records(reader):
                    self._json(json_value(row), indent=None)
            case "text":
                self._aligned(_records(reader), names)
            case form:
                self._separated(form, _records(reader), names)

    def lines(self, lines: Iterable[str]) -> None:
        """Print lines of text."""
        for line in lines:
            self._write(f"{line}\n")

    def heading(self, text: str) -> str:
        """Return the text as a heading, if color is on."""
        return f"\x1b[1m{text}\x1b[0m" if self._options.is_colored(sys.stdout) else text

    def colored(self, text: str, color: str) -> str:
        """Return the text in a color, if color is on."""
        code = {"red": 31, "green": 32, "yellow": 33, "cyan": 36}[color]
        return f"\x1b[{code}m{text}\x1b[0m" if self._options.is_colored(sys.stdout) else text

    # -- formats

    def _wrapped(self, result: object) -> dict[str, object]:
        return {"version": JSON_VERSION, "command": self._command, "result": result}

    def _json(self, document: object, indent: int | None = 2) -> None:
        self._write(json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False) + "\n")

    def _json_rows(self, rows: Iterator[Record]) -> None:
        """Write one JSON object, row by row."""
        head = json.dumps({"version": JSON_VERSION, "command": self._command})[:-1]
        self._write(f'{head}, "result": [')
        for number, row in enumerate(rows):
            text = json.dumps(json_value(row), ensure_ascii=False, allow_nan=False)
            self._write(f"{',' if number else ''}\n  {text}")
        self._write("\n]}\n")

    def _listed(self, rows: Sequence[Record], columns: Sequence[str] = ()) -> None:
        names = list(columns) or list(dict.fromkeys(chain.from_iterable(rows)))
        self._separated(self._options.output, iter(rows), names)

    def _separated(self, form: str, rows: Iterator[Record], names: Sequence[str]) -> None:
        if form == "csv":
            self._csv(rows, names)
        else:
            self._markdown(rows, names)

    def _csv(self, rows: Iterator[Record], names: Sequence[str]) -> None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for row in chain([names], ([_plain(row.get(name), name) for name in names] for row in rows)):
            writer.writerow(row)
            self._write(text.getvalue())
            text.seek(0)
            text.truncate()

    def _markdown(self, rows: Iterator[Record], names: Sequence[str]) -> None:
        self._write(f"| {' | '.join(map(_markdown_cell, names))} |\n|{'---|' * len(names)}\n")
        for row in rows:
            self._write(f"| {' | '.join(_markdown_cell(cell(row.get(name))) for name in names)} |\n")

    def _arrow(self, reader: pa.RecordBatchReader) -> None:
        sys.stdout.flush()
        try:
            with pa.ipc.new_stream(sys.stdout.buffer, reader.schema) as stream:
                for batch in reader:
                    stream.write_batch(batch)
        except BrokenPipeError as error:
            raise OutputClosedError from error

    def _aligned(self, rows: Iterator[Record], columns: Sequence[str]) -> None:
        """Write aligned columns: numbers on the right, long cells truncated on terminals."""
        first = [row for _, row in zip(range(_MEASURED_ROWS), rows, strict=False)]
        names = list(columns) or list(dict.fromkeys(chain.from_iterable(first)))
        texts = [[_one_line(cell(row.get(name))) for name in names] for row in first]
        widths = [max([cell_len(name), *(cell_len(row[number]) for row in texts)]) for number, name in enumerate(names)]
        if is_terminal(sys.stdout):
            widths = _fitting(widths, shutil.get_terminal_size().columns)
        right = [any(_is_number(row.get(name)) for row in first) for name in names]
        if names:
            self.lines([self.heading(_padded(names, widths, [False] * len(names)))])
        for row in chain(texts, ([_one_line(cell(row.get(name))) for name in names] for row in rows)):
            self.lines([_padded(row, widths, right)])

    def _write(self, text: str) -> None:
        try:
            sys.stdout.write(text)
        except BrokenPipeError as error:
            raise OutputClosedError from error


def _records(reader: pa.RecordBatchReader) -> Iterator[Record]:
    for batch in reader:
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            yield from batch.slice(start, _BATCH_ROWS).to_pylist()


def _arrow_table(rows: Sequence[Record]) -> pa.Table:
    """Convert rows to an Arrow table; a column with values of several types becomes strings."""
    names = dict.fromkeys(chain.from_iterable(rows))
    columns = {name: [json_value(row.get(name), name) for row in rows] for name in names}
    return pa.table({name: _arrow_column(values) for name, values in columns.items()})


def _arrow_column(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else cell(value) for value in values], pa.string())


def _pairs(record: Record) -> Iterator[str]:
    width = max((len(name) for name in record), default=0)
    for name, value in record.items():
        yield f"{name:<{width}}  {cell(value)}".rstrip()


def _plain(value: Any, name: str) -> object:
    """Return a value for CSV: empty for null, JSON for nested values."""
    if value is None:
        return ""
    plain = json_value(value, name)
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, dict | list) else cell(value)


def _markdown_cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "<br>")


def _one_line(text: str) -> str:
    return (
        text if text.isprintable() else "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fitting(widths: list[int], total: int) -> list[int]:
    """Shrink columns, the widest first, until rows fit the terminal."""
    excess = sum(widths) + 2 * (len(widths) - 1) - total
    if excess <= 0:
        return widths
    return [min(width, max(_MOST_SHOWN, width - excess)) if width > _MOST_SHOWN else width for width in widths]


def _padded(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = []
    for text, width, is_right in zip(cells, widths, right, strict=True):
        length = cell_len(text)
        if is_terminal(sys.stdout) and length > width:
            text, length = set_cell_size(text, width - 1) + "…", width
        pad = " " * max(0, width - length)
        parts.append(pad + text if is_right and text != NULL else text + pad)
    return "  ".join(parts).rstrip()
