"""Queries in SQL over tables without Java: DuckDB answers them over streams that our scans have narrowed.

The modules need packages of the extra `query`: whoever imports one asks `check_installed` before.
"""

from importlib.util import find_spec

from icefloe.errors import NotInstalledError


def check_installed() -> None:
    """Fail, with what to do, unless all that queries need is there."""
    for package in ("duckdb", "sqlglot"):
        if find_spec(package) is None:
            raise NotInstalledError(f"queries need {package}: pip install 'icefloe[query]'")
