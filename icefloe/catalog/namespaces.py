"""Decides what properties of a namespace may be, and how a change of them is told."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from icefloe.errors import InvalidPropertyError

EXISTS = "exists"
"""The property by which SQL catalogs note that a namespace is there; never shown, never set by users."""


@dataclass(frozen=True, slots=True)
class PropertiesUpdateSummary:
    """What became of a change of properties."""

    removed: tuple[str, ...]
    updated: tuple[str, ...]
    missing: tuple[str, ...]
    """Keys that were to be removed and were not there."""


def checked_namespace_properties(properties: Mapping[str, object] | None) -> dict[str, str]:
    """Properties as texts."""
    given: object = properties
    if given is not None and not isinstance(given, Mapping):
        raise InvalidPropertyError(f"properties are a mapping from texts to texts, not {type(given).__name__}")
    checked = {}
    for key, value in (given or {}).items():
        if not isinstance(key, str) or not key or not isinstance(value, str | int | float):
            raise InvalidPropertyError(f"property {key!r} is {value!r:.100}; a text, number or truth value is expected")
        if key == EXISTS:
            raise InvalidPropertyError(f"property {EXISTS!r} is reserved: it says that a namespace is there")
        checked[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return checked


def summarize_change(
    before: Mapping[str, str], removals: Collection[str], updates: Mapping[str, str]
) -> PropertiesUpdateSummary:
    """What a change does to these properties."""
    return PropertiesUpdateSummary(
        tuple(sorted(key for key in removals if key in before)),
        tuple(sorted(updates)),
        tuple(sorted(key for key in removals if key not in before)),
    )
