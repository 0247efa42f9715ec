"""What a server tells a client at first: properties, endpoints, and how long it remembers Idempotency-Keys; both ways."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType

import msgspec

from icefloe.errors import InvalidInputError
from icefloe.metadata.wire_codec import WireStruct, present, read_wire
from icefloe.rest.paths_codec import Endpoint, parse_endpoint

WAREHOUSE = "warehouse"
PREFIX = "prefix"
NAMESPACE_SEPARATOR = "namespace-separator"
SCAN_PLANNING_MODE = "scan-planning-mode"
SNAPSHOT_LOADING_MODE = "snapshot-loading-mode"
VIEW_ENDPOINTS_SUPPORTED = "view-endpoints-supported"

_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


@dataclass(frozen=True, slots=True)
class CatalogConfig:
    """The answer to `GET /v1/config`."""

    defaults: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    overrides: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    endpoints: frozenset[Endpoint] = frozenset()
    """Empty if the server says nothing of them."""
    idempotency_key_lifetime: timedelta | None = None
    """None: the server takes no such keys."""

    def merged(self, properties: Mapping[str, str]) -> dict[str, str]:
        """The properties of a client with the server's defaults below them and its overrides above."""
        return {**self.defaults, **properties, **self.overrides}


class _ConfigWire(WireStruct):
    defaults: dict[str, str | None] | None = None
    overrides: dict[str, str | None] | None = None
    endpoints: list[str] | None = None
    idempotency_key_lifetime: str | None = None


def encode_config(config: CatalogConfig) -> bytes:
    """The body of the answer."""
    lifetime = config.idempotency_key_lifetime
    return msgspec.json.encode(
        {
            "defaults": dict(config.defaults),
            "overrides": dict(config.overrides),
            "endpoints": sorted(map(str, config.endpoints)),
            **present("idempotency-key-lifetime", None if lifetime is None else format_duration(lifetime)),
        }
    )


def decode_config(body: bytes) -> CatalogConfig:
    """What the body of an answer says; keys without a value are left out, as in the Java library."""
    wire = read_wire(body, _ConfigWire, "the configuration of the REST catalog")
    lifetime = wire.idempotency_key_lifetime
    return CatalogConfig(
        _texts(wire.defaults),
        _texts(wire.overrides),
        frozenset(_known(wire.endpoints or ())),
        None if lifetime is None else parse_duration(lifetime),
    )


def _texts(values: Mapping[str, str | None] | None) -> dict[str, str]:
    return {key: value for key, value in (values or {}).items() if value is not None}


def _known(texts: Iterable[str]) -> Iterable[Endpoint]:
    """The endpoints, without those that a later version of the protocol may write in another way."""
    for text in texts:
        try:
            yield parse_endpoint(text)
        except InvalidInputError:
            continue


def format_duration(duration: timedelta) -> str:
    """A duration as ISO 8601 has it, such as `PT30M`."""
    seconds = int(duration.total_seconds())
    hours, minutes = seconds // 3600, seconds // 60 % 60
    parts = ((hours, "H"), (minutes, "M"), (seconds % 60, "S"))
    return "PT" + ("".join(f"{number}{unit}" for number, unit in parts if number) or "0S")


def parse_duration(text: str) -> timedelta:
    """The duration of a text like `PT30M` or `P1DT12H`."""
    match = _DURATION.fullmatch(text.strip().upper())
    if match is None or not any(match.groups()):
        raise InvalidInputError(f"{text!r:.100} is not a duration of ISO 8601, like 'PT30M'")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
