"""Writes docs/api.md from the signatures and docstrings of the public classes: `make docs`."""

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("api.md")
HEAD = """# API

The public interface, made by `make docs` from the docstrings in the code. Types are written by their last name; `help(icefloe.Table.scan)` has the parameters and
examples of a call. What is not named here, nor returned by what is, may change in any release: see `icefloe/__init__.py`.
"""
FUNCTIONS = ("icefloe.load_catalog", "icefloe.connect", "icefloe.register_format", "icefloe.col")
CLASSES = {
    "icefloe.Catalog": "`icefloe.load_catalog(...)`",
    "icefloe.catalog.Views": "`catalog.views`",
    "icefloe.catalog.View": "`catalog.views.load(...)`",
    "icefloe.Table": "`catalog.load_table(...)`",
    "icefloe.DataScan": "`table.scan(...)`",
    "icefloe.table.ChangesScan": "`table.scan_changes(...)`",
    "icefloe.Transaction": "`table.transaction()`",
    "icefloe.schema.SchemaUpdate": "`table.update_schema()`",
    "icefloe.partitioning.PartitionSpecUpdate": "`table.update_spec()`",
    "icefloe.partitioning.SortOrderUpdate": "`table.update_sort_order()`",
    "icefloe.table.manage_snapshots.ManageSnapshots": "`table.manage_snapshots()`",
    "icefloe.table.update_snapshot.UpdateSnapshot": "`table.update_snapshot()`",
    "icefloe.inspect.Inspect": "`table.inspect`",
    "icefloe.maintenance.Maintenance": "`table.maintenance`",
    "icefloe.Session": "`icefloe.connect(...)`",
    "icefloe.spark.writing.FrameWriter": "`ice.write(frame)`",
    "icefloe.spark.writing.TableWrite": "`ice.write(frame).to(...)`",
    "icefloe.spark.merging.MergeBuilder": "`ice.merge(...)`",
}
"""Public classes, and how one comes by them."""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


def page() -> str:
    """The whole page."""
    functions = "\n".join(_entry(path.rpartition(".")[2], _named(path), 0) for path in FUNCTIONS)
    classes = "\n".join(_section(_named(path), source) for path, source in CLASSES.items())
    return f"{HEAD}\n## Functions\n\n{functions}\n\n{classes}\n{_errors()}"


def _section(cls: type, source: str) -> str:
    members = "\n".join(_entry(name, member, 1) for name, member in _members(cls))
    return f"## {cls.__name__}\n\n{source}: {_first_sentence(cls)}\n\n{members}\n"


def _errors() -> str:
    root = _named("icefloe.IcefloeError")
    tree = "\n".join(_error_lines(root, 0))
    return f"## Errors\n\nIn `icefloe.errors`, one tree:\n\n{tree}\n"


def _error_lines(error: type[Exception], depth: int) -> Iterator[str]:
    yield f"{'  ' * depth}- `{error.__name__}`: {_first_sentence(error)}"
    for inner in error.__subclasses__():
        if inner.__module__ == error.__module__:
            yield from _error_lines(inner, depth + 1)


def _named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties with docstrings, those of the class itself first."""
    seen = set()
    for base in cls.__mro__[:-1]:
        for name, member in vars(base).items():
            if not name.startswith("_") and name not in seen and _is_entry(member):
                seen.add(name)
                yield name, getattr(cls, name) if inspect.isroutine(member) else member


def _is_entry(member: object) -> bool:
    return inspect.isroutine(member) or isinstance(member, property | cached_property)


def _entry(name: str, member: Any, own: int) -> str:
    """A call or property with its first sentence; `own` says how many parameters are the object itself."""
    if isinstance(member, property | cached_property):
        function: Callable[..., object] = member.func if isinstance(member, cached_property) else member.fget or _entry
        returned = inspect.signature(function).return_annotation
        shown = returned if isinstance(returned, str) else inspect.formatannotation(returned)
        return f"- `{name}` -> `{_short(shown)}`: {_first_sentence(function)}"
    signature = inspect.signature(member)
    shown = _short(str(signature.replace(parameters=list(signature.parameters.values())[own:])))
    if member.__code__.co_filename == contextlib.__file__:
        shown = shown.replace("-> Iterator[", "-> AbstractContextManager[")
    return f"- `{name}{shown}`: {_first_sentence(member)}"


def _short(text: str) -> str:
    """A signature without the modules of its types, except for other data libraries."""
    text = re.sub(r"<([\w.]+): [^>]+>", r"\1", text.replace("pyarrow.lib.", "pa."))
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?<!\bpa\.)(?<!\bpd\.)(?<!\bpl\.)(?<!duckdb\.)(?=[A-Za-z_])", "", text)
    text = re.sub(r"\*<class '[\w.]*?(\w+)'>", r"Unpack[\1]", text)
    return re.sub(r"(: |-> )'([^']+)'", r"\1\2", text).replace("~", "")


def _first_sentence(documented: object) -> str:
    paragraph = " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())
    match = re.match(r".*?\.(?= [A-Z`]|$)", paragraph)
    return match[0] if match else paragraph


if __name__ == "__main__":
    main()
