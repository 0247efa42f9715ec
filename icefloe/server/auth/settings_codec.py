"""The `auth` part of the server's configuration: principals, roles, grants, identity providers, tokens, limits.

Keys that mean nothing are errors: a misspelled setting of access control is a hole that nobody sees.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from icefloe.catalog import parse_namespace
from icefloe.errors import IcefloeError, InvalidPropertyError
from icefloe.server.auth.credentials import Credential, check_local_name
from icefloe.server.auth.directory import REFRESH_SECONDS, Directory
from icefloe.server.auth.grants import ROLE, Grant, check_grantee
from icefloe.server.auth.oidc import IssuerSettings
from icefloe.server.auth.protocols import Kind, Privilege, Target
from icefloe.server.auth.rate_limits import RateLimit

_TOKEN_HASH = re.compile(r"([0-9a-f]{16}):([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class AuthSettings:
    """What the configuration says about access."""

    allows_anonymous: bool = False
    """Whether requests without a credential are let in, as `principal:anonymous`, with what is granted to it."""
    directory: Directory = field(default_factory=Directory, repr=False)
    issuers: Sequence[IssuerSettings] = ()
    signing_keys: Sequence[str] = field(default=(), repr=False)
    """Keys of short-lived tokens, the one that signs first; empty: those of the database."""
    token_seconds: int = 3600
    session_seconds: int = 86400
    refresh_seconds: float = REFRESH_SECONDS
    request_limit: RateLimit | None = None
    audit_file: Path | None = None


def auth_settings(section: Mapping[str, Any]) -> AuthSettings:
    """The settings that the section `auth` of a configuration file says."""
    reader = _Section(section, "auth")
    tokens = reader.section("tokens")
    limits = reader.section("limits")
    settings = AuthSettings(
        allows_anonymous=reader.flag("anonymous", False),
        directory=_directory(reader),
        issuers=[_issuer(name, part) for name, part in reader.section("issuers").sections()],
        signing_keys=tokens.texts("signing-keys", ()),
        token_seconds=int(tokens.number("lifetime-seconds", 3600, 60, 86400)),
        session_seconds=int(tokens.number("session-seconds", 86400, 60, 30 * 86400)),
        refresh_seconds=reader.number("refresh-seconds", REFRESH_SECONDS, 0, 3600),
        request_limit=_limit(limits),
        audit_file=Path(file) if (file := reader.text("audit-file", None)) else None,
    )
    for part in (reader, tokens, limits):
        part.check_all_read()
    return settings


def _limit(limits: "_Section") -> RateLimit | None:
    rate = limits.number("requests-per-second", 0, 0, 1e6)
    burst = limits.number("burst", max(1.0, 2 * rate), 1, 1e7)
    return RateLimit(rate, burst) if rate else None


def _directory(reader: "_Section") -> Directory:
    principals, credentials = {}, {}
    for name, part in reader.section("principals").sections():
        principals[check_local_name(name)] = part.flag("enabled", True)
        for credential in (_credential(name, text, part.place) for text in part.texts("tokens", ())):
            credentials[credential.id] = credential
        part.check_all_read()
    roles = reader.section("roles")
    members = frozenset((role, check_grantee(member)) for role in roles.names() for member in roles.texts(role, ()))
    for role, _ in members:
        check_grantee(ROLE + role)
    grants = frozenset(grant for part in reader.list_of_sections("grants") for grant in _grants(part))
    return Directory(principals, credentials, members, grants)


def _credential(principal: str, text: str, place: str) -> Credential:
    match = _TOKEN_HASH.fullmatch(text)
    if match is None:
        raise InvalidPropertyError(f"{place}.tokens has an entry that is not ID:SHA256, as `tokens hash` prints it")
    return Credential(match[1], principal, "of the configuration", match[2])


def _grants(part: "_Section") -> list[Grant]:
    grantee = check_grantee(part.text("to", "") or "")
    privileges = [_privilege(text, part.place) for text in part.texts("privileges", ())]
    if not privileges:
        raise InvalidPropertyError(f"{part.place} has no privileges; some of {', '.join(Privilege)} are expected")
    target = _target(part)
    part.check_all_read()
    return [Grant(grantee, privilege, target) for privilege in privileges]


def _privilege(text: str, place: str) -> Privilege:
    try:
        return Privilege(text)
    except ValueError:
        raise InvalidPropertyError(
            f"{place} has the privilege {text!r}; one of {', '.join(Privilege)} is expected"
        ) from None


def _target(part: "_Section") -> Target:
    warehouse, is_server = part.text("warehouse", ""), part.flag("server", False)
    namespace, table, view = part.text("namespace", ""), part.text("table", None), part.text("view", None)
    if bool(warehouse) == is_server:
        raise InvalidPropertyError(f"{part.place} has to name its warehouse, or to say `server = true` for all of them")
    name = table or view
    if (is_server and (namespace or name)) or (name and not namespace) or (table and view):
        raise InvalidPropertyError(
            f"{part.place} has to name a warehouse, a namespace in it, or a table or view in that"
        )
    levels = parse_namespace(namespace) if namespace else ()
    return Target(warehouse or "", levels, name or None, Kind.VIEW if view else Kind.TABLE)


def _issuer(name: str, part: "_Section") -> IssuerSettings:
    issuer = part.text("issuer", "")
    if not issuer:
        raise InvalidPropertyError(f"{part.place} has no issuer; the `iss` of its tokens is expected")
    settings = IssuerSettings(
        name,
        issuer,
        audiences=part.texts("audience", ()),
        algorithms=frozenset(part.texts("algorithms", ("RS256", "ES256"))),
        subject_claim=part.path("subject-claim", ("sub",)) or ("sub",),
        roles_claim=part.path("roles-claim", None),
        leeway_seconds=part.number("leeway-seconds", 30, 0, 300),
        jwks_uri=part.text("jwks-uri", None),
    )
    part.check_all_read()
    return settings


class _Section:
    """One table of the configuration, of which every key must have been asked for."""

    def __init__(self, values: object, place: str) -> None:
        if not isinstance(values, Mapping):
            raise InvalidPropertyError(f"{place} is not a table of settings")
        self._values = values
        self.place = place
        self._read: set[str] = set()

    def check_all_read(self) -> None:
        if unknown := sorted(str(key) for key in self._values if key not in self._read):
            raise InvalidPropertyError(f"{self.place} has settings that mean nothing: {', '.join(unknown)}")

    def names(self) -> list[str]:
        return [str(key) for key in self._values]

    def section(self, key: str) -> "_Section":
        return _Section(self._value(key, {}), f"{self.place}.{key}")

    def sections(self) -> list[tuple[str, "_Section"]]:
        return [(name, self.section(name)) for name in self.names()]

    def list_of_sections(self, key: str) -> list["_Section"]:
        values = self._value(key, [])
        if not isinstance(values, list):
            raise self._wrong(key, "a list of tables")
        return [_Section(value, f"{self.place}.{key}[{number}]") for number, value in enumerate(values)]

    def text(self, key: str, default: str | None) -> str | None:
        value = self._value(key, default)
        if value is not None and not isinstance(value, str):
            raise self._wrong(key, "a text")
        return value

    def texts(self, key: str, default: Sequence[str]) -> Sequence[str]:
        value = self._value(key, default)
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list | tuple) or not all(isinstance(entry, str) for entry in values):
            raise self._wrong(key, "a text, or a list of texts")
        return values

    def path(self, key: str, default: Sequence[str] | None) -> Sequence[str] | None:
        """The way to a claim: `a.b`, or a list of its parts."""
        value = self._value(key, None)
        if value is None:
            return default
        parts = value.split(".") if isinstance(value, str) else self.texts(key, ())
        if not parts or not all(parts):
            raise self._wrong(key, "a claim, or the way to one")
        return tuple(parts)

    def flag(self, key: str, default: bool) -> bool:
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def number(self, key: str, default: float, least: float, most: float) -> float:
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self._wrong(key, f"a number from {least} to {most}")
        return value

    def _value(self, key: str, default: object) -> Any:
        self._read.add(key)
        return self._values.get(key, default)

    def _wrong(self, key: str, expected: str) -> IcefloeError:
        return InvalidPropertyError(f"{self.place}.{key} is not what is expected: {expected}")
