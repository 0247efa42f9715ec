"""`icefloe version`: which versions of icefloe and of what it stands on are in use."""

import platform
from importlib.metadata import PackageNotFoundError, version as installed

import typer

from icefloe import __version__
from icefloe.cli.invocation import invocation

_PARTS = ("pyarrow", "pyspark", "duckdb", "sqlglot")


def version(ctx: typer.Context) -> None:
    """Print the version."""
    with invocation(ctx) as run:
        record = {"icefloe": __version__, "python": platform.python_version()}
        record |= {name: found for name in _PARTS if (found := _version(name)) is not None}
        run.out.record(record, (lambda: [__version__]) if not run.options.verbose else None)


def _version(package: str) -> str | None:
    try:
        return installed(package)
    except PackageNotFoundError:
        return None
