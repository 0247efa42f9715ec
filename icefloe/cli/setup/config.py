"""`icefloe config show`: which configuration counts here, and where each value comes from."""

import typer

from icefloe.catalog import redacted_value
from icefloe.cli.invocation import invocation

app = typer.Typer(help="Show which configuration counts here.", no_args_is_help=True)


@app.callback()
def _config() -> None:
    """Show which configuration counts here."""


@app.command("show")
def show(ctx: typer.Context) -> None:
    """Show the configuration: which file, and each value with where it comes from; what may be secret as ***."""
    with invocation(ctx) as run:
        names = run.configuration.names()
        if run.options.properties and run.catalog_name not in names:
            names.append(run.catalog_name)
        rows = []
        for name in names:
            given = run.options.properties if name == run.catalog_name else {}
            for key, setting in sorted(run.configuration.settings(name, given).items()):
                value = redacted_value(key, setting.value)
                rows.append({"catalog": name, "key": key, "value": value, "source": setting.source})
        if run.options.output in ("json", "jsonl"):
            run.out.record({"file": run.configuration.path, "default_catalog": run.catalog_name, "settings": rows})
            return
        run.say(f"file: {run.configuration.path or 'none'}; catalog in use: {run.catalog_name}")
        run.out.rows(rows, ("catalog", "key", "value", "source"))
