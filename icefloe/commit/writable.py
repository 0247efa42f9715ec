"""Whether a table may get a snapshot from here: v4 changes still, and has what only newer writers can keep right."""

from collections.abc import Sequence

from icefloe import errors, metadata as md, properties as props
from icefloe.metadata import updates as up
from icefloe.versions import V4_PIN, Feature, allows

_CONSTRAINTS = "constraints"


def check_writable(metadata: md.TableMetadata) -> None:
    """Fail if the table was written by a newer text than is known here, or has rules that are not known here."""
    if not allows(metadata.format_version, Feature.RELATIVE_PATHS):
        return
    pin = props.V4_PIN.of(metadata.properties)
    if pin is not None and pin != V4_PIN and not _is_older(pin):
        raise errors.StateError(
            f"the table follows the v4 draft of {pin!r}, but this version of icefloe implements that of {V4_PIN!r}: mixing them"
            f" may damage it. Use a newer icefloe; or set {props.V4_PIN.key!r} to {V4_PIN!r} if you are sure that it is safe"
        )
    if metadata.unknown_fields.get(_CONSTRAINTS):
        raise errors.StateError(
            "the table has constraints (#17822 of the v4 draft), which icefloe does not check, so rows could violate them;"
            " write with an engine that supports them, or remove them first"
        )


def pin_updates(metadata: md.TableMetadata) -> Sequence[up.TableUpdate]:
    """What records in the table by which text its next snapshot is written."""
    if not allows(metadata.format_version, Feature.RELATIVE_PATHS):
        return ()
    if props.V4_PIN.of(metadata.properties) == V4_PIN:
        return ()
    return (up.SetPropertiesUpdate({props.V4_PIN.key: V4_PIN}),)


def _is_older(pin: str) -> bool:
    """Dates compare as texts; what is no date is not known to be older."""
    is_date = len(pin) == len(V4_PIN) and pin.replace("-", "").isdigit()
    return is_date and pin < V4_PIN
