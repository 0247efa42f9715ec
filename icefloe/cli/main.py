"""Entry point of the command line: results go to standard output, everything else to standard error."""

import json
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from typing import Any

import typer

from icefloe.cli import exits
from icefloe.cli.app import root_command
from icefloe.cli.commands import COMMANDS, LOOK, SETUP
from icefloe.cli.options import is_json_asked
from icefloe.errors import IcefloeError, without_credentials

PROGRAM = "icefloe"
COMPLETE = "_ICEFLOE_COMPLETE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if COMPLETE in os.environ:
        from typer.completion import completion_init

        completion_init()
    try:
        ended = root_command().main(given, prog_name=PROGRAM, complete_var=COMPLETE, standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _usage(error, given)
    except (typer.Abort, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
        return exits.INTERRUPTED
    except IcefloeError as error:
        return _fail(error, given)
    except (exits.OutputClosedError, BrokenPipeError) as error:
        return _closed() if _is_closed() or isinstance(error, exits.OutputClosedError) else _fail(error, given)
    except Exception as error:  # noqa: BLE001 - top level: every error is printed and sets the exit code
        return _fail(error, given)
    return ended if isinstance(ended, int) else exits.DONE


def run() -> None:
    """Run the console script."""
    _leave_out_pandas(sys.argv[1:])
    sys.exit(main())


def _leave_out_pandas(given: list[str]) -> None:
    """Hide pandas from commands that only show or set up: where it is installed, pyarrow imports it to inspect Python lists."""
    if given and given[0] in COMMANDS and COMMANDS[given[0]].panel in (LOOK, SETUP):
        sys.meta_path.insert(0, _NoPandas())


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> None:
        """Report pandas as not installed; leave all other modules to the usual finders."""
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden from this command, for a quick start", name=fullname)


def _is_closed() -> bool:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return True
    return False


def _closed() -> int:
    """Exit silently: the reader closed the pipe, which is not an error."""
    try:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
    except OSError as error:
        logging.getLogger("icefloe.cli").debug("standard output could not be redirected: %s", error)
    return exits.DONE


def _usage(error: Any, given: list[str]) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        # The help is either printed already (with boxes) or is the message itself.
        if text := error.format_message():
            sys.stderr.write(f"{text}\n")
        return exits.USAGE
    message = without_credentials(error.format_message())
    if is_json_asked(given):
        _write_json(exits.problem(error, message, exits.USAGE))
        return exits.USAGE
    context = getattr(error, "ctx", None)
    if context is not None:
        sys.stderr.write(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n")
    sys.stderr.write(f"Error: {message}\n")
    return exits.USAGE


def _fail(error: BaseException, given: list[str]) -> int:
    code = exits.exit_code(error)
    if "-v" in given or "--verbose" in given:
        traceback.print_exception(error)
    if is_json_asked(given):
        _write_json(exits.problem(error))
        return code
    text = without_credentials(str(error)) or type(error).__name__
    kind = f"{type(error).__name__}: " if code == exits.BUG else ""
    sys.stderr.write(f"Error: {kind}{text}\n")
    if hint := exits.hint_of(code):
        sys.stderr.write(f"Hint: {hint}\n")
    return code


def _write_json(document: object) -> None:
    sys.stderr.write(json.dumps(document, ensure_ascii=False) + "\n")
