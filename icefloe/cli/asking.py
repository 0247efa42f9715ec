"""Decides when something may be removed: after a yes at a terminal, or with `--yes`; otherwise nothing is done."""

import sys

from icefloe.cli.exits import RefusedError
from icefloe.cli.invocation import Invocation
from icefloe.cli.options import is_terminal


def confirm(run: Invocation, question: str) -> None:
    """Go on only if the user wants it."""
    if run.options.yes:
        return
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise RefusedError(f"{question} Nobody can be asked here: say --yes if it is meant, or --dry-run to look first")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise RefusedError("nothing was done")
