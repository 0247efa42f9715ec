"""`icefloe version`: versions of icefloe and its main dependencies."""

import platform
from importlib.metadata import PackageNotFoundError, version as installed

import typer

from icefloe import __version__
from icefloe.cli.output import Output

_PARTS = ("pyarrow", "pyspark", "duckdb", "sqlglot")


def version(ctx: typer.Context) -> None:
    """Print the version."""
    record = {"icefloe": __version__, "python": platform.python_version()}
    record |= {name: number for name in _PARTS if (number := _version(name)) is not None}
    Output(ctx.obj, "version").record(record, (lambda: [__version__]) if not ctx.obj.verbose else None)


def _version(package: str) -> str | None:
    try:
        return installed(package)
    except PackageNotFoundError:
        return None
