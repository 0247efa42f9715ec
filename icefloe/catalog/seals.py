"""What a catalog keeps of an encrypted table besides its location: the key, and a hash of the metadata file.

Metadata files are not encrypted, and lie where others may write. Who could change one could take the key away, so that rows are
written in clear, or bring an old state back; so the catalog, which they cannot change, says what the file must be.
"""

import hashlib
from base64 import b64encode
from collections import OrderedDict
from dataclasses import dataclass

from icefloe import errors, metadata as md, properties as props

_MOST_SEALS = 4096


@dataclass(frozen=True, slots=True)
class Seal:
    """The key of a table, how long its data keys are, and the SHA-256 of its metadata file, in Base64."""

    key_id: str
    key_length: int
    metadata_hash: str


def seal_of(metadata: md.TableMetadata, data: bytes) -> Seal | None:
    """What a catalog keeps of a table whose metadata file has these bytes; None if the table is not encrypted."""
    key_id = props.ENCRYPTION_KEY_ID.of(metadata.properties)
    if key_id is None:
        return None
    return Seal(key_id, props.ENCRYPTION_DATA_KEY_LENGTH.of(metadata.properties), _hash(data))


def check_seal(metadata: md.TableMetadata, data: bytes, seal: Seal | None, location: str) -> None:
    """Fail unless a metadata file is what the catalog says of it."""
    if seal is None:
        if props.ENCRYPTION_KEY_ID.of(metadata.properties) is not None:
            raise errors.EncryptionError(
                f"{location} is of an encrypted table, and the catalog keeps no hash of it: it was written, or registered, by a"
                " program that does not know encryption; register it again if it can be trusted"
            )
        return
    if _hash(data) != seal.metadata_hash:
        raise errors.CorruptFileError(
            location, "it is not the metadata file that was committed: its hash is not the one that the catalog keeps"
        )
    if seal_of(metadata, data) != seal:
        raise errors.CorruptFileError(
            location, f"its table is encrypted with key {seal.key_id!r} in the catalog, and the file says otherwise"
        )


def _hash(data: bytes) -> str:
    return b64encode(hashlib.sha256(data).digest()).decode()


class KnownSeals:
    """The seals of metadata files by location, as far as they were seen: files never change, and have one seal each."""

    def __init__(self) -> None:
        self._seals: OrderedDict[str, Seal] = OrderedDict()

    def keep(self, location: str, seal: Seal | None) -> None:
        """Remember what the catalog says of a file."""
        if seal is not None:
            self._seals[location] = seal
            while len(self._seals) > _MOST_SEALS:
                self._seals.popitem(last=False)

    def of(self, location: str) -> Seal | None:
        """The seal of a file, if it is known."""
        return self._seals.get(location)


def refuse_unkept(metadata: md.TableMetadata, name: str, kind: str) -> None:
    """Fail if a table is encrypted, in a catalog that has no place to keep a seal in."""
    if props.ENCRYPTION_KEY_ID.of(metadata.properties) is not None or metadata.encryption_keys:
        raise errors.EncryptionError(
            f"table {name} is encrypted, and a catalog of type {kind} can neither keep its key nor vouch for its metadata;"
            " use a catalog of type sql or rest"
        )


def check_has_kms(metadata: md.TableMetadata, has_kms: bool, name: str) -> None:
    """Fail if a new table is to be encrypted, and the catalog has no service that keeps its key."""
    if props.ENCRYPTION_KEY_ID.of(metadata.properties) is not None and not has_kms:
        raise errors.EncryptionError(
            f"table {name} is to be encrypted, and the catalog has no KMS; set encryption.kms-type, or encryption.kms-impl,"
            " where the catalog is loaded"
        )
