"""Command dispatch and global options, which may precede or follow the command name."""

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from icefloe.cli.commands import COMMANDS, EXTRAS, GROUP, HIDDEN_POINTS, OWN_POINTS, SERVE, Command
from icefloe.cli.completing import complete_catalog
from icefloe.cli.options import COLORS, FORMS, Options, is_terminal

_GLOBAL = "Global options"
_MARKUP = "rich"


def root_command() -> TyperGroup:
    """Return the `icefloe` command."""
    app = typer.Typer(cls=RootGroup, add_completion=False, rich_markup_mode=_markup())
    app.callback(invoke_without_command=True)(_root)
    command = get_command(app)
    assert isinstance(command, TyperGroup)
    return command


def _markup() -> Any:
    # Draw panels on a terminal only: piped output has no boxes.
    return _MARKUP if is_terminal(sys.stdout) else None


class RootGroup(TyperGroup):
    """Command group that imports a command only when it is used; the one-line help needs no import."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - theirs
        """Return all command names, grouped by panel."""
        return [*COMMANDS, *_points()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - theirs
        """Return a placeholder with the command's name and help, enough for help and completion."""
        if cmd_name in COMMANDS:
            known = COMMANDS[cmd_name]
            return TyperCommand(cmd_name, help=known.help, hidden=known.is_hidden, rich_help_panel=known.panel)
        if cmd_name in _points():
            text = _SERVE_HELP.get(cmd_name, "See --help for this command.")
            return TyperCommand(cmd_name, help=text, hidden=cmd_name in HIDDEN_POINTS, rich_help_panel=SERVE)
        return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import and return the actual command."""
        if args[0] in COMMANDS:
            return args[0], load_command(args[0], COMMANDS[args[0]]), args[1:]
        if args[0] in _points():
            return args[0], PointCommand(args[0]), args[1:]
        self.commands = {name: TyperCommand(name) for name in self.list_commands(ctx)}
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands grouped by panel, for help without boxes."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if not command.hidden:
                panels.setdefault(command.rich_help_panel, []).append((name, command.help))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)


_SERVE_HELP = {
    "serve": "Serve catalogs over the Iceberg REST protocol.",
    "server": "Manage users, tokens, roles and grants of a server; migrate and check its database.",
    "ui": "Browse catalogs and tables in a web page, served to this machine only.",
}


def load_command(name: str, command: Command) -> Any:
    """Import a command, ready to run."""
    module, _, attribute = command.place.partition(":")
    loaded = getattr(import_module(module), attribute)
    if not isinstance(loaded, typer.Typer):
        app = typer.Typer(add_completion=False, rich_markup_mode=_markup())
        app.command(name)(loaded)
    else:
        app = loaded
        app.rich_markup_mode = _markup()
    runnable = get_command(app)
    runnable.name = name
    for leaf in _leaves(runnable):
        known = {option for parameter in leaf.params for option in parameter.opts}
        leaf.params += [each for each in _late_options() if not known.intersection(each.opts)]
    return runnable


def _leaves(command: Any) -> Iterator[Any]:
    if isinstance(command, TyperGroup):
        for inner in command.commands.values():
            yield from _leaves(inner)
    else:
        yield command


# -- commands from entry points


@cache
def _points() -> dict[str, str]:
    return OWN_POINTS | {point.name: point.value for point in entry_points(group=GROUP)}


class PointCommand(TyperCommand):
    """Command of an entry point, which parses its own arguments."""

    def __init__(self, name: str) -> None:
        settings = {"ignore_unknown_options": True, "allow_extra_args": True}
        super().__init__(name, context_settings=settings, add_help_option=False)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Pass all arguments on to the entry point."""
        ctx.args = args
        return args

    def invoke(self, ctx: Any) -> int:
        """Run the entry point and return its exit code."""
        name = str(self.name)
        try:
            module = import_module(_points()[name].partition(":")[0])
        except ModuleNotFoundError as error:
            if (error.name or "icefloe").startswith("icefloe"):
                raise
            sys.exit(
                f"icefloe {name}: the package {error.name!r} is missing: pip install 'icefloe[{EXTRAS.get(name, name)}]'"
            )
        parser = argparse.ArgumentParser(f"icefloe {name}")
        module.add_arguments(parser)
        options = ctx.find_root().obj
        given = {"config": options.config, "catalog": [options.catalog] if options.catalog else None}
        # Options before the command name apply as if they followed it.
        parser.set_defaults(**{name: value for name, value in given.items() if value is not None})
        return int(module.run(parser.parse_args(ctx.args)) or 0)


# -- options


def _chosen(options: tuple[str, ...]) -> Callable[[str | None], str | None]:
    def check(value: str | None) -> str | None:
        if value is not None and value not in options:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(options)}")
        return value

    return check


OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help=f"Output format: {', '.join(FORMS)}.",
        callback=_chosen(FORMS),
        metavar="FORM",
        autocompletion=lambda: list(FORMS),
    ),
]
ColorOption = Annotated[
    str | None,
    typer.Option("--color", help="Use color: auto, always or never.", callback=_chosen(COLORS), metavar="WHEN"),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only results and errors.")]
CatalogOption = Annotated[
    str | None,
    typer.Option("--catalog", "-c", help="Name of the configured catalog to use.", autocompletion=complete_catalog),
]


def _root(
    ctx: typer.Context,
    catalog: CatalogOption = None,
    uri: Annotated[str | None, typer.Option(help="URI of a catalog to use instead of a configured one.")] = None,
    warehouse: Annotated[str | None, typer.Option(help="Warehouse location of the catalog.")] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", "-p", help="Catalog property; may be repeated.", metavar="KEY=VALUE"),
    ] = None,
    config: Annotated[str | None, typer.Option(help="Configuration file to use.", metavar="FILE")] = None,
    output: OutputOption = None,
    color: ColorOption = None,
    quiet: QuietOption = False,
    verbose: Annotated[bool, typer.Option("-v", help="Print more details, and tracebacks of errors.")] = False,
    yes: YesOption = False,
    credential: Annotated[str | None, typer.Option(hidden=True)] = None,
    ugi: Annotated[str | None, typer.Option(hidden=True)] = None,
    talkative: Annotated[str | None, typer.Option("--verbose", hidden=True, metavar="BOOL")] = None,
    log_level: Annotated[str, typer.Option("--log-level", hidden=True)] = "WARNING",
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Inspect, query, change and maintain Apache Iceberg tables."""
    given = dict(_property(text) for text in properties or ())
    named = {"uri": uri, "warehouse": warehouse, "credential": credential, "ugi": ugi}
    given |= {key: value for key, value in named.items() if value is not None}
    is_verbose = verbose or (talkative or "").lower() in ("1", "true", "yes", "on", "t", "y")
    options = Options(catalog, given, config, output or "text", color or "auto", quiet, is_verbose, yes)
    ctx.obj = options
    _set_up_logs(log_level, is_verbose)
    if ctx.invoked_subcommand is None:
        if version:
            from icefloe import __version__

            typer.echo(__version__)
        else:
            typer.echo(ctx.get_help())
        raise typer.Exit


def _property(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise typer.BadParameter(f"{text!r} is not of the form KEY=VALUE", param_hint="--property")
    return key, value


def _set_up_logs(level: str, is_verbose: bool) -> None:
    import logging

    known = logging.getLevelNamesMapping()
    if level.upper() not in known:
        raise typer.BadParameter(f"{level!r} is not a log level", param_hint="--log-level")
    logging.basicConfig(
        level=logging.INFO if is_verbose else known[level.upper()],
        format="%(asctime)s:%(levelname)s:%(name)s:%(message)s",
        stream=sys.stderr,
    )


def _late_options() -> list[Any]:
    """Return the global options that may also follow the command name."""

    def late(
        catalog: CatalogOption = None,
        output: OutputOption = None,
        color: ColorOption = None,
        quiet: QuietOption = False,
        yes: YesOption = False,
    ) -> None:
        """Do nothing: only the parameters of this function are used."""

    app = typer.Typer(add_completion=False)
    app.command()(late)
    parameters = [each for each in get_command(app).params if each.name != "help"]
    for each in parameters:
        each.expose_value = False
        each.callback = _recorded(each.callback)
        setattr(each, "rich_help_panel", _GLOBAL)  # noqa: B010 - options have it, and parameters in general do not
    return parameters


def _recorded(check: Callable[..., Any] | None) -> Callable[[Any, Any, Any], Any]:
    def record(ctx: Any, parameter: Any, value: Any) -> Any:
        checked = value if check is None else check(ctx, parameter, value)
        if checked not in (None, False):
            setattr(ctx.find_root().obj, parameter.name, checked)
        return checked

    return record
