"""Decides what an operator can set: the table `[server]` of a configuration file, then variables `ICEFLOE_SERVER__<KEY>`."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, get_type_hints

from icefloe.errors import InvalidPropertyError
from icefloe.rest.config_codec import parse_duration

_VARIABLE = "ICEFLOE_SERVER__"
_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How a server behaves; keys in files have dashes in place of underscores."""

    host: str = "127.0.0.1"
    port: int = 8181
    default_warehouse: str | None = None
    """The warehouse of clients that name none; needed if there are several."""
    read_only: bool = False
    """Whether every change is refused."""
    workers: int = 0
    """How many processes serve, each on a core of its own; 0: as many as there are cores, if the catalogs are for that."""
    threads: int = 16
    """How many requests a process works on at a time; a database must allow for so many connections."""
    max_body_bytes: int = 64 << 20
    """The largest request."""
    body_timeout: timedelta = timedelta(seconds=30)
    """How long a client may take to send one."""
    stop_timeout: timedelta = timedelta(seconds=30)
    """How long a server that is stopped waits for requests under way."""
    slow_request: timedelta = timedelta(seconds=1)
    """What takes longer is logged with its parts."""
    cache_bytes: int = 256 << 20
    """How many bytes of metadata are kept in memory."""
    commit_attempts: int = 5
    """How often a commit whose requirements still hold is tried when others are faster."""
    page_size: int = 1000
    """The largest page of a list."""
    plan_page_files: int = 2000
    """How many files one answer of a plan has at most."""
    plan_wait: timedelta = timedelta(seconds=5)
    """How long a client waits for its plan before it goes on in the background."""
    plan_threads: int = 4
    """How many plans are made at a time."""
    idempotency_key_lifetime: timedelta = timedelta(hours=1)
    """How long answers to requests with an Idempotency-Key are remembered."""
    undrop_hold: timedelta = timedelta(0)
    """How long a dropped table can be had back; 0: not at all."""
    webhook: str | None = None
    """Where events go, as CloudEvents."""
    webhook_secret: str | None = field(default=None, repr=False)
    """What they are signed with."""
    ui: bool = False
    """Whether the web page is served, at `/ui`."""
    tls_certificate: str | None = None
    """A PEM file with the certificate chain."""
    tls_key: str | None = None
    """A PEM file with its key."""


def read_settings(content: Mapping[str, object], environment: Mapping[str, str] | None = None) -> ServerSettings:
    """The settings of a file's content and of the environment, which wins; an unknown key is an error."""
    table = content.get("server", {})
    if not isinstance(table, Mapping):
        raise InvalidPropertyError("`server` of the configuration is not a table like [server]")
    values = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    for variable, text in (os.environ if environment is None else environment).items():
        if variable.upper().startswith(_VARIABLE) and "__" not in variable[len(_VARIABLE) :]:
            values[variable[len(_VARIABLE) :].lower().replace("_", "-")] = text
    types = get_type_hints(ServerSettings)
    known = {each.name.replace("_", "-"): each.name for each in fields(ServerSettings)}
    for key in values:
        if key not in known:
            raise InvalidPropertyError(f"[server] has the key {key!r}; known are {', '.join(known)}")
    given: dict[str, Any] = {known[key]: _value(key, value, types[known[key]]) for key, value in values.items()}
    return ServerSettings(**given)


def read_configuration(path: str | None) -> Mapping[str, object]:
    """The content of a configuration file; nothing without a path."""
    if path is None:
        return {}
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidPropertyError(f"the configuration {path} cannot be read: {error}") from error


def _value(key: str, value: object, wanted: object) -> object:
    text = str(value)
    try:
        if wanted is bool:
            return value if isinstance(value, bool) else _TRUTHS[text.lower()]
        if wanted is int:
            return int(text)
        if wanted is timedelta:
            return timedelta(seconds=float(text)) if _is_number(text) else parse_duration(text)
    except (ValueError, KeyError):
        what = {bool: "true or false", int: "a whole number", timedelta: "seconds, or a text like 'PT30M'"}
        raise InvalidPropertyError(f"[server] has {key} = {text!r:.100}; it must be {what[wanted]}") from None  # type: ignore[index]  # one of these
    return text


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()
