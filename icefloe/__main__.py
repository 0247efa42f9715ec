"""`python -m icefloe COMMAND`: commands are found by the entry points `icefloe.commands`, which other packages may add to."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType

from icefloe.errors import IcefloeError

GROUP = "icefloe.commands"
"""Entry points of this group are modules with `add_arguments(parser)` and `run(arguments)`, named as their commands."""
OWN = {"serve": "icefloe.server.serve", "serve-admin": "icefloe.server.admin"}
"""The commands of this package, whether its entry points are installed or not."""
_EXTRAS = {"serve": "server", "serve-admin": "server"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what it returns is the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    commands = OWN | {point.name: point.value for point in entry_points(group=GROUP)}
    parser = argparse.ArgumentParser("icefloe", description="The Apache Iceberg table format in Python.")
    choices = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in sorted(commands.items()):
        own = choices.add_parser(name, help=f"see: icefloe {name} --help")
        # Only the command that is meant is imported: others may need packages that are not installed.
        if given and given[0] == name:
            command = _loaded(name, module)
            command.add_arguments(own)
            own.set_defaults(run=command.run)
    parsed = parser.parse_args(given)
    try:
        return int(parsed.run(parsed) or 0)
    except IcefloeError as error:
        print(f"icefloe {parsed.command}: {error}", file=sys.stderr)  # noqa: T201 - what a command says to its user
        return 2


def _loaded(name: str, module: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "icefloe").startswith("icefloe"):
            raise
        sys.exit(
            f"icefloe {name}: the package {error.name!r} is missing: pip install 'icefloe[{_EXTRAS.get(name, name)}]'"
        )


if __name__ == "__main__":
    sys.exit(main())
