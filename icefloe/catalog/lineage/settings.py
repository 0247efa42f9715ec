"""Decides how lineage is configured: properties of the catalog, OpenLineage's own variables, and what the run is called."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icefloe.errors import InvalidPropertyError

PREFIX = "openlineage."
_TRANSPORT = f"{PREFIX}transport."
_JOB_NAMESPACE, _JOB_NAME, _RUN = f"{PREFIX}job-namespace", f"{PREFIX}job-name", f"{PREFIX}run"
_KNOWN = (_JOB_NAMESPACE, _JOB_NAME, _RUN)
PROCESS, OPERATION = "process", "operation"
_LOCAL_FILE = "openlineage.yml"


@dataclass(frozen=True, slots=True)
class LineageSettings:
    """Whose run it is, and where its events go."""

    job_namespace: str
    job_name: str
    run: str
    """`process`: one run for the whole program; `operation`: one for each scan and commit."""
    transport: tuple[tuple[str, str], ...]
    """The keys of the client's transport and their texts; without any, the client's own configuration says it."""


def lineage_settings(properties: Mapping[str, str]) -> LineageSettings:
    """The settings that the properties of a catalog ask for."""
    own = {key: value for key, value in properties.items() if key.startswith(PREFIX)}
    transport = {key.removeprefix(_TRANSPORT): value for key, value in own.items() if key.startswith(_TRANSPORT)}
    unknown = sorted(key for key in own if key not in _KNOWN and not key.startswith(_TRANSPORT))
    if unknown:
        raise InvalidPropertyError(
            f"{unknown[0]!r} is not an OpenLineage property; known ones are {', '.join(_KNOWN)} and {_TRANSPORT}*"
        )
    run = own.get(_RUN, PROCESS)
    if run not in (PROCESS, OPERATION):
        raise InvalidPropertyError(f"{_RUN!r} is {run!r}; it must be {PROCESS!r} or {OPERATION!r}")
    if transport and "type" not in transport:
        raise InvalidPropertyError(
            f"{_TRANSPORT}type is missing; set it to an OpenLineage transport, such as http or file"
        )
    return LineageSettings(
        own.get(_JOB_NAMESPACE) or os.environ.get("OPENLINEAGE_NAMESPACE") or "default",
        own.get(_JOB_NAME) or _program(),
        run,
        tuple(sorted(transport.items())),
    )


def client_config(settings: LineageSettings) -> dict[str, Any] | None:
    """What OpenLineage's client takes: `auth.apiKey` becomes a key inside of a key, `true` and numbers what they say."""
    _refuse_local_file()
    nested: dict[str, Any] = {}
    for key, text in settings.transport:
        *outer, last = key.split(".")
        inner = nested
        for name in outer:
            inner = inner.setdefault(name, {})
            if not isinstance(inner, dict):
                raise InvalidPropertyError(f"{_TRANSPORT}{key} is nested in {name!r}, which already has a value")
        inner[last] = _value(text)
    return {"transport": nested} if nested else None


def _refuse_local_file() -> None:
    """The client would read a file of the working directory, which could name code to run."""
    if Path(_LOCAL_FILE).is_file() and not Path(os.environ.get("OPENLINEAGE_CONFIG") or "/").is_file():
        raise InvalidPropertyError(
            f"{_LOCAL_FILE} is in the working directory and could name code to run or send your events elsewhere;"
            f" if you trust the file, set OPENLINEAGE_CONFIG={Path(_LOCAL_FILE).resolve()}"
        )


def _value(text: str) -> Any:
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    return int(text) if text.isascii() and text.isdecimal() else text


def _program() -> str:
    """The name of the program that runs, as a job that nobody named is called."""
    script = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path()
    name = script.parent.name if script.stem == "__main__" else script.stem
    return name if name and not name.startswith("-") else "icefloe"
