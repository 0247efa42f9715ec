"""What delete files say of themselves in their key-value metadata, for the information of people (as the Java library does)."""

from collections.abc import Iterable, Mapping

_TYPE, _FIELD_IDS = "delete-type", "delete-field-ids"


def position_delete_metadata() -> Mapping[str, str]:
    """The entries of a position delete file."""
    return {_TYPE: "position"}


def equality_delete_metadata(field_ids: Iterable[int]) -> Mapping[str, str]:
    """The entries of an equality delete file with these delete columns."""
    return {_TYPE: "equality", _FIELD_IDS: ", ".join(map(str, field_ids))}
