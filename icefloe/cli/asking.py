"""Confirmation before anything is removed: an answer at a terminal, or `--yes`; otherwise nothing is done."""

import sys

from icefloe.cli.exits import RefusedError
from icefloe.cli.invocation import Invocation
from icefloe.cli.options import is_terminal


def confirm(run: Invocation, question: str) -> None:
    """Raise `RefusedError` unless the user confirms."""
    if run.options.yes:
        return
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise RefusedError(
            f"{question} Cannot ask for confirmation without a terminal: pass --yes to confirm, or --dry-run to preview"
        )
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise RefusedError("cancelled; nothing was done")
