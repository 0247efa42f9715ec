"""`icefloe config`: the effective configuration, the source of each value, and trust in project files."""

from typing import Annotated

import typer

from icefloe.catalog import PROJECT_FILE, Configuration, distrust, redacted_value, trust
from icefloe.cli.invocation import invocation

File = Annotated[str, typer.Argument(metavar="[FILE]", help=f"Configuration file; ./{PROJECT_FILE} by default.")]

app = typer.Typer(help="Show the effective configuration.", no_args_is_help=True)


@app.callback()
def _config() -> None:
    """Show the effective configuration."""


@app.command("trust")
def trust_file(ctx: typer.Context, file: File = PROJECT_FILE) -> None:
    """Trust a file of the working directory, as it is now, to name code and to use credentials of the environment."""
    with invocation(ctx) as run:
        trust(file)
        run.out.record({"file": file, "trusted": True}, lambda: [f"{file} is trusted until it changes"])


@app.command("distrust")
def distrust_file(ctx: typer.Context, file: File = PROJECT_FILE) -> None:
    """Stop trusting a file."""
    with invocation(ctx) as run:
        was = distrust(file)
        run.out.record({"file": file, "trusted": False}, lambda: [f"{file} is {'no longer' if was else 'not'} trusted"])


@app.command("show")
def show(ctx: typer.Context) -> None:
    """Show the configuration file and each value with its source; possible secrets are shown as ***."""
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
            run.out.record(
                {
                    "file": run.configuration.path,
                    "trusted": not run.configuration.is_foreign,
                    "default_catalog": run.catalog_name,
                    "settings": rows,
                }
            )
            return
        run.say(
            f"file: {run.configuration.path or 'none'}{_trust(run.configuration)}; catalog in use: {run.catalog_name}"
        )
        run.out.rows(rows, ("catalog", "key", "value", "source"))


def _trust(configuration: Configuration) -> str:
    return " (not trusted)" if configuration.is_foreign else ""
