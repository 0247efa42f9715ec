"""`icefloe init`: create an SQLite catalog, a warehouse and an icefloe.toml in a directory; existing files are kept."""

import os
from pathlib import Path
from typing import Annotated

import typer

from icefloe.catalog import EMBEDDED_CATALOG, EMBEDDED_WAREHOUSE, PROJECT_FILE, configured_catalog, find_configuration
from icefloe.cli.invocation import invocation
from icefloe.shown import counted

_CONTENT = f"""default-catalog = "{EMBEDDED_CATALOG}"

[catalog.{EMBEDDED_CATALOG}]
type = "sql"
uri = "sqlite:///{EMBEDDED_WAREHOUSE}/catalog.db"
warehouse = "{EMBEDDED_WAREHOUSE}"
"""


def init(
    ctx: typer.Context,
    folder: Annotated[str, typer.Argument(metavar="[DIR]", help="Directory; created if missing.")] = ".",
) -> None:
    """Create a catalog and a warehouse in a directory, and an icefloe.toml that points to them."""
    with invocation(ctx) as run:
        home = Path(folder)
        (home / EMBEDDED_WAREHOUSE).mkdir(parents=True, exist_ok=True)
        file = home / PROJECT_FILE
        is_new = not file.exists()
        if is_new:
            file.write_text(_CONTENT, encoding="utf-8")
        configuration = find_configuration(file)
        name = configuration.default_catalog or EMBEDDED_CATALOG
        with configured_catalog(configuration, name, {}) as catalog:
            namespaces = len(catalog.list_namespaces())
        record = {"file": os.fspath(file), "catalog": name, "created": is_new, "namespaces": namespaces}

        def lines() -> list[str]:
            state = "created" if is_new else "already exists and was not changed"
            return [f"{file} {state}; catalog {name!r} has {counted(namespaces, 'namespace')}"]

        run.out.record(record, lines)
        run.say("next: icefloe create namespace shop, or icefloe import shop.orders FILE --create")
