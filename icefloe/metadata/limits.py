"""How much memory a metadata file may take: bounds that are checked before the memory is allocated.

They are properties of the catalog or of the storage, never of a table: a table's own properties are part of what is bounded.
"""

from dataclasses import dataclass

from icefloe import properties as props

_ALWAYS_ALLOWED = 64 << 20
"""So much a file may take however small it is."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be read at once, and how much it may expand to."""

    file_bytes: int = props.LIMIT_FILE_BYTES.default
    """The longest file that is read whole: metadata, manifest lists and manifests."""
    metadata_bytes: int = props.LIMIT_METADATA_BYTES.default
    """The most that such a file may take in memory, decompressed or as columns."""
    expansion: int = props.LIMIT_EXPANSION.default
    """How many times its length that may be, beyond the first 64 MiB."""

    @staticmethod
    def of(properties: props.Properties) -> "Limits":
        """The limits that the properties set."""
        return Limits(
            props.LIMIT_FILE_BYTES.of(properties),
            props.LIMIT_METADATA_BYTES.of(properties),
            props.LIMIT_EXPANSION.of(properties),
        )

    def allowed(self, length: int) -> int:
        """How many bytes a file of this length may take in memory."""
        return min(self.metadata_bytes, max(_ALWAYS_ALLOWED, self.expansion * length))

    def refusal(self, length: int) -> str:
        """The error text for a file of this length that would take more."""
        return (
            f"its {length} bytes would take more than {self.allowed(length)} in memory; if that is right, raise"
            f" {props.LIMIT_METADATA_BYTES.key} or {props.LIMIT_EXPANSION.key} of the catalog"
        )


DEFAULT_LIMITS = Limits()
