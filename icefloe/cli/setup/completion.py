"""`icefloe completion`: shell completion of commands, options and table names."""

from typing import Annotated

import typer
from typer.completion import get_completion_script, install

from icefloe.cli.invocation import invocation
from icefloe.errors import InvalidInputError

app = typer.Typer(help="Install or print shell completion.", no_args_is_help=True)

_SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
_VARIABLE = "_ICEFLOE_COMPLETE"
Shell = Annotated[
    str | None, typer.Argument(metavar="[SHELL]", help=f"Shell: {', '.join(_SHELLS)}; the current one by default.")
]


@app.command("install")
def install_script(ctx: typer.Context, shell: Shell = None) -> None:
    """Install completion for a shell; it takes effect in new shells."""
    with invocation(ctx) as run:
        chosen, path = install(shell=_checked(shell), prog_name="icefloe", complete_var=_VARIABLE)
        run.out.record({"shell": chosen, "file": str(path)}, lambda: [f"Installed completion for {chosen} in {path}"])


@app.command("show")
def show_script(ctx: typer.Context, shell: Shell = None) -> None:
    """Print the completion script, to be saved where the shell reads it."""
    with invocation(ctx) as run:
        chosen = _checked(shell) or _own_shell()
        run.out.lines([get_completion_script(prog_name="icefloe", complete_var=_VARIABLE, shell=chosen)])


def _checked(shell: str | None) -> str | None:
    if shell is not None and shell not in _SHELLS:
        raise InvalidInputError(f"completion is not available for {shell!r}; choose one of {', '.join(_SHELLS)}")
    return shell


def _own_shell() -> str:
    import shellingham

    try:
        return str(shellingham.detect_shell()[0])
    except shellingham.ShellDetectionFailure:
        raise InvalidInputError(f"cannot detect your shell; name one of {', '.join(_SHELLS)}") from None
