"""The one tree of exceptions: broad classes to catch, narrow ones to act on.

    IcefloeError
    ├── InvalidInputError (ValueError)      bad in itself, whatever the table holds
    │   ├── InvalidTypeError                a type that does not exist, or has wrong parameters
    │   ├── InvalidSchemaError              duplicate ids or names, illegal identifier fields, bad defaults
    │   ├── InvalidValueError               a value or its encoding does not fit its type
    │   ├── InvalidTransformError           unknown parameters, or a source type that the transform refuses
    │   ├── InvalidPartitionSpecError
    │   ├── InvalidSortOrderError
    │   ├── InvalidExpressionError          a predicate that cannot be parsed or bound
    │   ├── InvalidMetadataError            a metadata document that the spec refuses; names the field
    │   ├── InvalidLocationError            a location that is not one, or of an unknown scheme
    │   ├── InvalidPropertyError            a setting with a value that means nothing
    │   ├── UnsupportedVersionError         a format version, or a feature that the table's version lacks
    │   └── UnsupportedOperationError       what this catalog or service does not do, whatever is asked with it
    ├── CorruptFileError                    bytes that are not what the format says; carries the location
    ├── CorruptTableError                   the parts of a table do not fit together; says which
    ├── StateError                          good input, wrong against the state of table or catalog
    │   ├── NoSuchObjectError (LookupError)
    │   │   ├── NoSuchTableError, NoSuchViewError, NoSuchNamespaceError
    │   │   ├── NoSuchWarehouseError        a warehouse of a REST catalog
    │   │   ├── NoSuchPlanError             a plan of a REST catalog; it may have expired
    │   │   │   └── NoSuchPlanTaskError     a part of one
    │   │   ├── NoSuchColumnError
    │   │   └── NoSuchSnapshotError         a snapshot or a ref
    │   ├── AlreadyExistsError
    │   │   ├── TableAlreadyExistsError, ViewAlreadyExistsError, NamespaceAlreadyExistsError
    │   ├── NamespaceNotEmptyError
    │   ├── IncompatibleChangeError         an evolution of schema, spec or order that the spec forbids
    │   ├── ValidationError                 a concurrent commit changed what this one relied on; not retried
    │   ├── EncryptionError                 a key is missing or refused, or something would be left in clear
    │   ├── AlreadyCommittedError           a batch of a stream is in the table already; nothing was done again
    │   └── IncompleteRewriteError          too many commits of a rewrite failed; others stay; carries the result
    ├── CommitFailed                        lost the race; nothing happened; retry on refreshed metadata
    │   └── StaleBaseError                  the table is not what the commit was prepared on; nothing was tried
    ├── CommitStateUnknown                  the outcome is not known: never delete files on it
    ├── StorageError (OSError)              a store refused or failed; carries the location, never credentials
    │   ├── LocationNotFoundError (FileNotFoundError)
    │   ├── LocationExistsError (FileExistsError)   the file of an exclusive create exists
    │   └── NothingStoredError          a write that failed, and for certain left nothing, as on a full disk
    ├── NotAuthorizedError                  a service does not know who asks: credentials missing, wrong or expired
    ├── ForbiddenError                      a service knows who asks, and does not allow it
    ├── ServiceUnavailableError             a service does not answer for now: overloaded, down or out of reach
    └── NotInstalledError                   an optional package or program is missing; says how to get it

A message says what was wrong, with which value, and what would be right. Whatever it quotes, it never holds credentials:
users, passwords and signatures in locations are struck out where the error is made.
"""

import re

_USER_INFO = re.compile(
    r"""([A-Za-z][\w+.\-]*)://
        (?: [^\s/:@'"<>]+ : (?!\d+(?:[/\s'"]|$)) [^\s'"<>]*   # user and password, in which slashes come, too; not a port
          | [^\s/:@'"<>]+ )@""",
    re.VERBOSE,
)
_SECRETS = re.compile(
    r"""([?&;](?:[\w\-]*(?:signature|credential|token|password|secret)|sig|sas|pwd|passwd|[\w\-]*key(?:-?id)?)=)[^&;\s'"<>]+""",
    re.IGNORECASE,
)
_CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")
"""Schemes that have a container where others have a user."""
_EXAMPLE = "://user:password@"


def without_credentials(text: str) -> str:
    """The text with users and passwords of its locations struck out, and values of parameters that are secret by name."""
    if "@" in text:
        text = _USER_INFO.sub(_without_user, text)
    return _SECRETS.sub(r"\1***", text) if "=" in text else text


def _without_user(match: re.Match[str]) -> str:
    whole, scheme = match[0], match[1]
    is_container = scheme.lower() in _CONTAINERS and ":" not in whole[len(scheme) + 1 :]
    return whole if is_container or whole.endswith(_EXAMPLE) else f"{scheme}://***@"


class IcefloeError(Exception):
    """Root of every error that icefloe raises on purpose."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(without_credentials(part) if isinstance(part, str) else part for part in args))


class InvalidInputError(IcefloeError, ValueError):
    """The input is wrong in itself."""


class InvalidTypeError(InvalidInputError):
    """No such type, or a type with wrong parameters."""


class InvalidSchemaError(InvalidInputError):
    """A schema that breaks a rule of the spec."""


class InvalidValueError(InvalidInputError):
    """A value, or its encoding, does not fit its type."""


class InvalidTransformError(InvalidInputError):
    """A transform with bad parameters, or on a source type that it refuses."""


class InvalidPartitionSpecError(InvalidInputError):
    """A partition spec that breaks a rule of the spec."""


class InvalidSortOrderError(InvalidInputError):
    """A sort order that breaks a rule of the spec."""


class InvalidExpressionError(InvalidInputError):
    """A predicate that cannot be parsed, or does not fit the schema."""


class InvalidMetadataError(InvalidInputError):
    """A metadata document that the spec refuses."""


class InvalidLocationError(InvalidInputError):
    """A location that is malformed or of an unknown scheme."""


class InvalidPropertyError(InvalidInputError):
    """A property whose value means nothing."""


class UnsupportedVersionError(InvalidInputError):
    """A format version that does not exist here, or lacks the feature asked for."""


class UnsupportedOperationError(InvalidInputError):
    """An operation that the catalog or service does not have."""


class CorruptFileError(IcefloeError):
    """Bytes that are not what the format says."""

    def __init__(self, location: str, problem: str) -> None:
        super().__init__(location, problem)
        self.location = location
        self.problem = problem

    def __str__(self) -> str:
        return without_credentials(f"{self.location}: {self.problem}")


class CorruptTableError(IcefloeError):
    """The parts of a table do not fit together."""


class StateError(IcefloeError):
    """Good input that does not fit the state of the table or catalog."""


class NoSuchObjectError(StateError, LookupError):
    """The thing that was named is not there."""


class NoSuchTableError(NoSuchObjectError):
    """No table of that name."""


class NoSuchViewError(NoSuchObjectError):
    """No view of that name."""


class NoSuchNamespaceError(NoSuchObjectError):
    """No namespace of that name."""


class NoSuchWarehouseError(NoSuchObjectError):
    """No warehouse of that name."""


class NoSuchPlanError(NoSuchObjectError):
    """No plan of that id, or no such task of a plan."""


class NoSuchPlanTaskError(NoSuchPlanError):
    """No such task of a plan."""


class NoSuchColumnError(NoSuchObjectError):
    """No column of that name or id."""


class NoSuchSnapshotError(NoSuchObjectError):
    """No snapshot of that id, or no such branch or tag."""


class AlreadyExistsError(StateError):
    """The name is taken."""


class TableAlreadyExistsError(AlreadyExistsError):
    """A table of that name exists."""


class ViewAlreadyExistsError(AlreadyExistsError):
    """A view of that name exists."""


class NamespaceAlreadyExistsError(AlreadyExistsError):
    """A namespace of that name exists."""


class NamespaceNotEmptyError(StateError):
    """A namespace that still holds something cannot be dropped."""


class IncompatibleChangeError(StateError):
    """An evolution of schema, spec or sort order that the spec forbids."""


class ValidationError(StateError):
    """A concurrent commit changed what this one relied on."""


class EncryptionError(StateError):
    """A key is missing, refused or not that of the table, or what was asked would leave something in clear."""


class AlreadyCommittedError(StateError):
    """A batch of a streaming query is in the table already, so that it was not committed again."""


class IncompleteRewriteError(StateError):
    """Some groups of a rewrite are committed, and more commits failed than the caller allows."""

    def __init__(self, message: str, result: object = None) -> None:
        super().__init__(message)
        self.result = result
        """What was done, and what was not (`icefloe.maintenance.RewriteResult`)."""


class CommitFailed(IcefloeError):
    """The commit lost a race: nothing happened, and it may be tried again on refreshed metadata."""


class StaleBaseError(CommitFailed):
    """The table moved on since the state that the commit was prepared on, so that it was not even tried."""


class CommitStateUnknown(IcefloeError):
    """Whether the commit happened is not known, so none of its files may be deleted."""


class StorageError(IcefloeError, OSError):
    """A store refused or failed."""

    def __init__(self, location: str, problem: str) -> None:
        super().__init__(location, problem)
        self.location = location
        self.problem = problem

    def __str__(self) -> str:
        return without_credentials(f"{self.location}: {self.problem}")


class LocationNotFoundError(StorageError, FileNotFoundError):
    """Nothing is stored at the location."""


class LocationExistsError(StorageError, FileExistsError):
    """The location of an exclusive create is taken."""


class NothingStoredError(StorageError):
    """A write failed, and for certain nothing is stored at the location that was not there before."""


class NotAuthorizedError(IcefloeError):
    """A service does not know who asks: credentials are missing, wrong or expired."""


class ForbiddenError(IcefloeError):
    """A service knows who asks, and does not allow what was asked."""


class ServiceUnavailableError(IcefloeError):
    """A service does not answer for now; of a commit, see `CommitStateUnknown`."""


class NotInstalledError(IcefloeError):
    """An optional package or program is missing."""
