"""Values of the global options: catalog, output format and confirmation.

This module has no heavy imports, as `icefloe --help` loads it.
"""

import os
import sys
from dataclasses import dataclass, field
from typing import TextIO

FORMS = ("text", "json", "jsonl", "csv", "markdown", "arrow")
"""Output formats."""
COLORS = ("auto", "always", "never")


@dataclass(slots=True)
class Options:
    """Options of one run; those after the command name override those before it."""

    catalog: str | None = None
    properties: dict[str, str] = field(default_factory=dict, repr=False)
    config: str | None = None
    output: str = "text"
    color: str = "auto"
    quiet: bool = False
    verbose: bool = False
    yes: bool = False

    def is_colored(self, stream: TextIO) -> bool:
        """Whether to use color on a stream: on terminals, unless `NO_COLOR` or an option says otherwise."""
        if self.color != "auto":
            return self.color == "always"
        return not os.environ.get("NO_COLOR") and is_terminal(stream)

    @property
    def is_json(self) -> bool:
        """Whether results are JSON, in which case errors are JSON, too."""
        return self.output in ("json", "jsonl")


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal."""
    return stream is not None and stream.isatty()


def is_json_asked(arguments: list[str]) -> bool:
    """Whether arguments that could not be parsed ask for JSON."""
    for number, argument in enumerate(arguments):
        if argument in ("-o", "--output"):
            return number + 1 < len(arguments) and arguments[number + 1] in ("json", "jsonl")
        if argument.startswith(("--output=", "-ojson")):
            return argument.removeprefix("--output=").removeprefix("-o") in ("json", "jsonl")
    return False


def say(text: str, options: Options) -> None:
    """Print a message that is not a result."""
    if not options.quiet:
        sys.stderr.write(f"{text}\n")
