"""The settings of storage access for one warehouse: how its clients get at files, and with whose identity that is arranged."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from icefloe.errors import InvalidPropertyError

_SHORTEST, _LONGEST = 900, 43_200
"""Lifetimes that Amazon's token service takes, in seconds."""


class Mode(StrEnum):
    """How clients get at the files of a table."""

    NONE = "none"
    """By means of their own; the server says nothing."""
    STATIC = "static"
    """With properties of the configuration, the same for every table."""
    VENDED = "vended"
    """With credentials of Amazon's token service, good for the table alone, and for a while."""
    SIGNED = "signed"
    """Without credentials: the server signs each request that is about the table."""


DELEGATIONS = {Mode.STATIC: "vended-credentials", Mode.VENDED: "vended-credentials", Mode.SIGNED: "remote-signing"}
"""What a client must understand for each of them, as it says in `X-Iceberg-Access-Delegation`."""


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """How the clients of a warehouse get at files."""

    modes: tuple[Mode, ...] = (Mode.NONE,)
    """Those that the operator allows; of those that a client understands, the first one is used."""
    client: Mapping[str, str] = field(default_factory=dict)
    """Properties for clients that are no secrets, over those that the server itself has: another endpoint, for example."""
    static: Mapping[str, str] = field(default_factory=dict, repr=False)
    locations: tuple[str, ...] = ()
    """Locations beneath which any table may have its files; besides those, the folder of its namespace."""
    role_arn: str | None = None
    external_id: str | None = field(default=None, repr=False)
    sts_endpoint: str | None = None
    lifetime_seconds: int = 3600
    kms_keys: tuple[str, ...] = ()
    """ARNs of keys that the files are encrypted with."""
    identity: Mapping[str, str] = field(default_factory=dict, repr=False)
    """`s3.access-key-id` and its fellows, by which the server itself signs and assumes the role; else Amazon's chain."""


def access_settings(section: Mapping[str, Any], place: str = "access") -> AccessSettings:
    """The settings that a section of the configuration says; `place` is its name for messages."""
    known = set(AccessSettings.__dataclass_fields__)
    given = {key.replace("-", "_"): value for key, value in section.items()}
    if "mode" in given:
        given.setdefault("modes", [given.pop("mode")])
    if unknown := sorted(set(given) - known):
        raise InvalidPropertyError(f"{place} has the key {unknown[0].replace('_', '-')!r}, which means nothing")
    texts = {
        key: _text(given[key], f"{place}.{key}") for key in ("role_arn", "external_id", "sts_endpoint") if key in given
    }
    settings = AccessSettings(
        modes=tuple(_mode(value, place) for value in _list(given.get("modes", ["none"]), f"{place}.modes")),
        client=_map(given.get("client", {}), f"{place}.client"),
        static=_map(given.get("static", {}), f"{place}.static"),
        identity=_map(given.get("identity", {}), f"{place}.identity"),
        locations=tuple(_list(given.get("locations", []), f"{place}.locations")),
        kms_keys=tuple(_list(given.get("kms_keys", []), f"{place}.kms-keys")),
        lifetime_seconds=_lifetime(given.get("lifetime_seconds", 3600), place),
        **texts,
    )
    if Mode.VENDED in settings.modes and not settings.role_arn:
        raise InvalidPropertyError(f"{place}.modes has `vended`, which needs {place}.role-arn, the role to assume")
    if Mode.STATIC in settings.modes and not settings.static:
        raise InvalidPropertyError(f"{place}.modes has `static`, which needs properties in {place}.static")
    return settings


def _mode(value: str, place: str) -> Mode:
    if value not in set(Mode):
        raise InvalidPropertyError(f"{place}.modes has {value!r}; known are {', '.join(Mode)}")
    return Mode(value)


def _lifetime(value: object, place: str) -> int:
    text = str(value)
    if not text.isdigit() or not _SHORTEST <= int(text) <= _LONGEST:
        raise InvalidPropertyError(f"{place}.lifetime-seconds is {value!r}; {_SHORTEST} to {_LONGEST} are possible")
    return int(text)


def _text(value: object, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidPropertyError(f"{place} has a value of type {type(value).__name__}; a text is expected")
    return value


def _list(value: object, place: str) -> list[str]:
    values = value.split(",") if isinstance(value, str) else value
    if not isinstance(values, list):
        raise InvalidPropertyError(f"{place} has a value of type {type(value).__name__}; a list of texts is expected")
    return [_text(one, place).strip() for one in values]


def _map(value: object, place: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidPropertyError(f"{place} has a value of type {type(value).__name__}; a table of texts is expected")
    flat: dict[str, str] = {}
    for key, inner in value.items():
        # In TOML, a dot in a key makes a table of it.
        nested = _map(inner, f"{place}.{key}") if isinstance(inner, Mapping) else None
        flat |= (
            {key: _text(inner, f"{place}.{key}")} if nested is None else {f"{key}.{k}": v for k, v in nested.items()}
        )
    return flat
