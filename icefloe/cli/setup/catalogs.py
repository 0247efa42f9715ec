"""`icefloe catalog`: list, add, test and remove configured catalogs."""

import os
import re
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from icefloe import errors
from icefloe.catalog import (
    HOME_FILE,
    PROJECT_FILE,
    Catalog,
    configured_catalog,
    is_trusted,
    redacted_value,
    same_name,
    trust,
)
from icefloe.cli.arguments import Properties, pairs
from icefloe.cli.asking import confirm
from icefloe.cli.invocation import Invocation, invocation

app = typer.Typer(help="List, add, test and remove configured catalogs.", no_args_is_help=True)

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
File = Annotated[str | None, typer.Option("--file", help=f"Configuration file to change; ./{PROJECT_FILE} by default.")]


@app.command("list")
def list_catalogs(ctx: typer.Context) -> None:
    """List the configured catalogs."""
    with invocation(ctx) as run:
        rows = []
        for name in run.configuration.names():
            settings = run.configuration.settings(name)
            row: dict[str, object] = {"name": name, "default": same_name(name, run.catalog_name)}
            for key in ("type", "uri", "warehouse"):
                row[key] = redacted_value(key, settings[key].value) if key in settings else None
            row["source"] = next(iter(settings.values())).source if settings else run.configuration.path
            rows.append(row)
        run.out.rows(rows, ("name", "default", "type", "uri", "warehouse", "source"))


@app.command("add")
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    uri: Annotated[str | None, typer.Option(help="URI of the catalog.")] = None,
    warehouse: Annotated[str | None, typer.Option(help="Warehouse location.")] = None,
    kind: Annotated[
        str | None, typer.Option("--type", help="rest, sql, hadoop or memory; inferred from the URI by default.")
    ] = None,
    properties: Properties = None,
    file: File = None,
) -> None:
    """Add a catalog to a configuration file; set secrets as environment variables instead."""
    with invocation(ctx) as run:
        given = {"type": kind, "uri": uri, "warehouse": warehouse, **pairs(properties)}
        settings = {key: value for key, value in given.items() if value is not None}
        if not settings:
            raise errors.InvalidInputError(f"catalog {name!r} has no settings; give --uri, --warehouse or --type")
        place = _file(run, file)
        known = _content(place)
        catalogs = known.get("catalog", {})
        if isinstance(catalogs, dict) and any(same_name(name, each) for each in catalogs):
            raise errors.AlreadyExistsError(f"{place} already has a catalog {name!r}")
        text = place.read_text(encoding="utf-8") if place.exists() else ""
        place.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"[catalog.{_key(name)}]", *(f"{_key(key)} = {_text(value)}" for key, value in settings.items())]
        _replace(place, (text.rstrip("\n") + "\n\n" if text.strip() else "") + "\n".join(lines) + "\n")
        run.out.record({"catalog": name, "file": str(place)}, lambda: [f"Added catalog {name} to {place}"])


@app.command("remove")
def remove(ctx: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME")], file: File = None) -> None:
    """Remove a catalog from a configuration file; its tables are kept."""
    with invocation(ctx) as run:
        place = _file(run, file)
        kept, removed = _without(place, name)
        if not removed:
            raise errors.NoSuchObjectError(f"{place} has no section [catalog.{name}]")
        confirm(run, f"Remove catalog {name} from {place}?")
        _replace(place, kept)
        run.out.record({"catalog": name, "file": str(place)}, lambda: [f"Removed catalog {name} from {place}"])


@app.command("test")
def check_catalog(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]")] = None,
    write: Annotated[bool, typer.Option("--write", help="Also write and delete a test file in the warehouse.")] = False,
) -> None:
    """Test a catalog: list namespaces, read a metadata file and, with --write, write and delete a file."""
    with invocation(ctx) as run:
        chosen = name or run.catalog_name
        given = run.options.properties if chosen == run.catalog_name else {}
        with configured_catalog(run.configuration, chosen, given) as catalog:
            rows = list(_checks(catalog, write))
        run.out.rows(rows, ("check", "result"))


def _checks(catalog: Catalog, is_writing: bool) -> Iterator[dict[str, object]]:
    namespaces = catalog.list_namespaces()
    yield {"check": "list namespaces", "result": f"{len(namespaces)} namespaces"}
    tables = (identifier for namespace in namespaces for identifier in catalog.list_tables(namespace))
    first = next(tables, None)
    if first is None:
        yield {"check": "read a table", "result": "no tables"}
    else:
        table = catalog.load_table(first)
        yield {"check": "read a table", "result": f"{'.'.join(first)}: format v{table.format_version}"}
    if is_writing:
        if catalog.warehouse is None:
            raise errors.InvalidLocationError(f"catalog {catalog.name!r} has no warehouse to write to")
        probe = f"{catalog.warehouse}/.icefloe-probe-{uuid.uuid4().hex}"
        catalog.storage.write(probe, b"test file of `icefloe catalog test`, deleted immediately")
        catalog.storage.delete([probe])
        yield {"check": "write and delete a file", "result": "done"}


# -- the file


def _file(run: Invocation, file: str | None) -> Path:
    if file is not None:
        return Path(file).expanduser()
    named = run.options.config or run.configuration.path
    if named is not None and named.endswith(".toml"):
        return Path(os.path.expanduser(named))
    return Path(PROJECT_FILE)


def _content(place: Path) -> dict[str, object]:
    try:
        return tomllib.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise errors.InvalidPropertyError(
            f"{place} cannot be read: {error}; fix it, or pass --file {HOME_FILE}"
        ) from error


def _without(place: Path, name: str) -> tuple[str, bool]:
    """Return the text of a file without the sections of a catalog, and whether there were any."""
    _content(place)
    text = place.read_text(encoding="utf-8") if place.exists() else ""
    kept, is_inside, was_there = [], False, False
    for line in text.splitlines(keepends=True):
        header = re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line)
        if header is not None:
            parts = [part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", header[1])]
            is_inside = len(parts) > 1 and parts[0] == "catalog" and same_name(parts[1], name)
            was_there |= is_inside
        if not is_inside:
            kept.append(line)
    return "".join(kept), was_there


def _replace(place: Path, text: str) -> None:
    """Replace the file atomically; text that cannot be parsed is not written, and a trusted file stays trusted."""
    tomllib.loads(text)
    stays_trusted = place.exists() and is_trusted(str(place))
    beside = place.with_name(f".{place.name}.{uuid.uuid4().hex}")
    beside.write_text(text, encoding="utf-8")
    if place.exists():
        beside.chmod(place.stat().st_mode)
    else:
        beside.chmod(0o600)
    beside.replace(place)
    if stays_trusted:
        trust(str(place))


def _key(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else _text(text)


def _text(value: str) -> str:
    escaped = "".join(
        f"\\u{ord(each):04x}" if ord(each) < 32 or ord(each) == 127 else f"\\{each}" if each in '"\\' else each
        for each in value
    )
    return f'"{escaped}"'
