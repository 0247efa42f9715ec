"""Writes the pages of the reference that the code knows: commands, properties of tables, errors, and what `verify` finds."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from docs.property_meanings import GROUPS, MEANINGS
from icefloe import errors, properties as props
from icefloe.cli import exits
from icefloe.cli.app import load_command
from icefloe.cli.commands import COMMANDS
from icefloe.verification import Code

_FOLDER = Path(__file__).parent


def main() -> None:
    """Write all of them."""
    for name, page in PAGES.items():
        (_FOLDER / name).write_text(page(), encoding="utf-8")


# -- commands


def commands_page() -> str:
    """Every command with its arguments and options."""
    head = """# Commands

Every command of `icefloe`, as `icefloe COMMAND --help` says it. [The command line](cli.md) has the rules for names, output and exit codes; the global options are at the end.
"""
    parts: list[str] = [head]
    panel = ""
    for name, command in COMMANDS.items():
        if command.is_hidden:
            continue
        if command.panel != panel:
            panel = command.panel
            parts.append(f"## {panel}\n")
        parts += list(_command(f"icefloe {name}", load_command(name, command)))
    parts.append("## Global options\n")
    parts.append(_options(_shared(load_command("list", COMMANDS["list"]))))
    return "\n".join(parts).rstrip() + "\n"


def _command(path: str, command: Any) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner is not None:
        for name, each in inner.items():
            yield from _command(f"{path} {name}", each)
        return
    own = [each for each in command.params if each not in _shared(command) and each.name != "help"]
    arguments = [each for each in own if each.param_type_name == "argument"]
    words = " ".join(_argument(each) for each in arguments)
    yield f"### {path.removeprefix('icefloe ')}\n"
    yield f"`{path} {words}`".replace(" `", "`") + "\n"
    yield _escaped(" ".join((command.help or "").split())) + "\n"
    rows = [f"| `{_argument(each)}` | {_escaped(each.help)} |" for each in arguments if getattr(each, "help", None)]
    options = [each for each in own if each.param_type_name == "option" and not each.hidden]
    if rows or options:
        yield "\n".join(["| | |", "|---|---|", *rows, *_option_rows(options)]) + "\n"


def _argument(argument: Any) -> str:
    text = (argument.metavar or argument.name.upper()).strip("[]")
    if argument.nargs == -1:
        text += "..."
    return text if argument.required else f"[{text}]"


def _shared(command: Any) -> list[Any]:
    return [each for each in command.params if getattr(each, "rich_help_panel", None) == "Global options"]


def _options(options: list[Any]) -> str:
    return "\n".join(["| | |", "|---|---|", *_option_rows(options)]) + "\n"


def _option_rows(options: list[Any]) -> Iterator[str]:
    for option in options:
        value = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
        names = ", ".join(sorted(option.opts, key=len, reverse=True))
        yield f"| `{_escaped(names + value)}` | {_escaped(option.help or '')} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


# -- properties


def known_properties() -> dict[str, object]:
    """Every property of tables and views that the library reads, with its default."""
    values = vars(props).values()
    known = {each.key: each.default for each in values if isinstance(each, props.Property)}
    prefixes = {
        value + "NAME": None
        for name, value in vars(props).items()
        if name.endswith("_PREFIX") and isinstance(value, str)
    }
    return {props.FORMAT_VERSION: props.DEFAULT_VERSION, **known, **prefixes}


def properties_page() -> str:
    """Properties by what they are about."""
    head = """# Table properties

Properties that icefloe reads, with Iceberg's keys and Java's defaults. Others are kept and ignored. `table.set_properties({...})`, `ALTER TABLE ... SET TBLPROPERTIES` and `icefloe properties set table` set them; a value that makes no sense is an error where it is used. Properties of catalogs are in [catalogs](catalogs.md).
"""
    parts = [head]
    known = known_properties()
    for title, prefixes in GROUPS.items():
        keys = [key for key in known if key.startswith(prefixes)]
        rows = [f"| `{key}` | {_default(known[key])} | {MEANINGS[key]} |" for key in keys]
        parts.append("\n".join([f"## {title}\n", "| Key | Default | |", "|---|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def _default(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int() if value == props.MAX_LONG:
            return "no limit"
        case int() if value >= 1 << 20 and value % (1 << 20) == 0:
            return f"{value >> 20} MiB"
        case _:
            return str(value)


# -- errors


def errors_page() -> str:
    """The tree of errors with exit codes."""
    head = """# Errors

All errors are of one tree, in `icefloe.errors`. Catch the broad ones, and act on the narrow ones: `CommitFailed` says that nothing changed and the change may be tried again, `CommitStateUnknown` that nobody knows, so that no file may be deleted and nothing tried again before somebody looks ([how a commit can end](commits.md)).
The number is [the exit code](cli.md#exit-codes) of the command line.

"""
    return head + "\n".join(_errors(errors.IcefloeError, 0)) + "\n"


def _errors(error: type[errors.IcefloeError], depth: int) -> Iterator[str]:
    yield f"{'    ' * depth}- `{error.__name__}`{_code(error)}: {_first_sentence(error)}"
    for inner in error.__subclasses__():
        if inner.__module__ == errors.__name__:
            yield from _errors(inner, depth + 1)


def _code(error: type[errors.IcefloeError]) -> str:
    made = error.__new__(error)
    code = exits.exit_code(made)
    return "" if code == exits.BUG else f" ({code})"


def _first_sentence(documented: object) -> str:
    paragraph = " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())
    match = re.match(r".*?\.(?= [A-Z`]|$)", paragraph)
    return match[0] if match else paragraph


# -- findings


def findings_page() -> str:
    """What `verify` finds."""
    head = """# What verify finds

The codes of `table.verify()` and `icefloe verify`: [checking a table](verify.md) says how to look, and [repair](maintenance.md) what can be done.

| Code | Severity | What it means |
|---|---|---|
"""
    rows = [f"| `{code.name.lower().replace('_', '-')}` | {code.value[0]} | {code.value[1]} |" for code in Code]
    return head + "\n".join(rows) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "reference-cli.md": commands_page,
    "reference-properties.md": properties_page,
    "reference-errors.md": errors_page,
    "reference-verify.md": findings_page,
}


if __name__ == "__main__":
    main()
