"""All exceptions, as one tree: broad classes to catch, narrow ones to act on.

    IcefloeError
    ├── InvalidInputError (ValueError)      invalid input, regardless of the table's state
    │   ├── InvalidTypeError                an unknown type, or wrong type parameters
    │   ├── InvalidSchemaError              duplicate ids or names, illegal identifier fields, bad defaults
    │   ├── InvalidValueError               a value or its encoding does not fit its type
    │   ├── InvalidTransformError           wrong parameters, or a source type that the transform does not support
    │   ├── InvalidPartitionSpecError
    │   ├── InvalidSortOrderError
    │   ├── InvalidExpressionError          a predicate that cannot be parsed or bound
    │   ├── InvalidMetadataError            a metadata document that violates the spec; names the field
    │   ├── InvalidLocationError            a malformed location, or one with an unknown scheme
    │   ├── InvalidPropertyError            a property with an invalid value
    │   ├── UnsupportedVersionError         an unknown format version, or a feature that it lacks
    │   └── UnsupportedOperationError       an operation that this catalog or service does not support
    ├── CorruptFileError                    a file that violates its format; carries the location
    ├── CorruptTableError                   inconsistent parts of a table; says which
    ├── StateError                          valid input that conflicts with the state of table or catalog
    │   ├── NoSuchObjectError (LookupError)
    │   │   ├── NoSuchTableError, NoSuchViewError, NoSuchNamespaceError
    │   │   ├── NoSuchWarehouseError        in a REST catalog
    │   │   ├── NoSuchPlanError             a scan plan of a REST catalog; it may have expired
    │   │   │   └── NoSuchPlanTaskError     a task of a scan plan
    │   │   ├── NoSuchColumnError
    │   │   └── NoSuchSnapshotError         a snapshot or a ref
    │   ├── AlreadyExistsError
    │   │   ├── TableAlreadyExistsError, ViewAlreadyExistsError, NamespaceAlreadyExistsError
    │   ├── NamespaceNotEmptyError
    │   ├── IncompatibleChangeError         a schema, partition or sort order evolution that the spec forbids
    │   ├── ValidationError                 a concurrent commit changed what this one relied on; not retried
    │   ├── EncryptionError                 a key is missing or rejected, or data would be stored unencrypted
    │   ├── AlreadyCommittedError           a streaming batch is already in the table; not committed again
    │   └── IncompleteRewriteError          too many commits of a rewrite failed; others are kept; carries the result
    ├── CommitFailed                        a concurrent commit won; nothing changed; retry on refreshed metadata
    │   └── StaleBaseError                  the table changed since the commit was prepared; not attempted
    ├── CommitStateUnknown                  the outcome is unknown: its files must not be deleted
    ├── StorageError (OSError)              a storage failure; carries the location, never credentials
    │   ├── LocationNotFoundError (FileNotFoundError)
    │   ├── LocationExistsError (FileExistsError)   the file of an exclusive create already exists
    │   └── NothingStoredError          a failed write that certainly stored nothing, as on a full disk
    ├── NotAuthorizedError                  authentication failed: credentials missing, wrong or expired
    ├── ForbiddenError                      authenticated, but not permitted
    ├── ServiceUnavailableError             a service is overloaded, down or unreachable
    └── NotInstalledError                   an optional package or program is missing; says how to install it

A message says what is wrong, with which value, and what would be right. It never contains credentials: users, passwords
and signatures in locations are masked when the error is created.
"""

import re

_USER_INFO = re.compile(
    r"""([A-Za-z][\w+.\-]*)://
        (?: [^\s/:@'"<>]+ : (?!\d+(?:[/\s'"]|$)) [^\s'"<>]*   # user and password, which may contain slashes; not a port
          | [^\s/:@'"<>]+ )@""",
    re.VERBOSE,
)
_SECRETS = re.compile(
    r"""([?&;](?:[\w\-]*(?:signature|credential|token|password|secret)|sig|sas|pwd|passwd|[\w\-]*key(?:-?id)?)=)[^&;\s'"<>]+""",
    re.IGNORECASE,
)
_CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")
"""Schemes with a container in place of the user."""
_EXAMPLE = "://user:password@"


def without_credentials(text: str) -> str:
    """Mask users and passwords in locations, and values of parameters with secret names."""
    if "@" in text:
        text = _USER_INFO.sub(_without_user, text)
    return _SECRETS.sub(r"\1***", text) if "=" in text else text


def _without_user(match: re.Match[str]) -> str:
    whole, scheme = match[0], match[1]
    is_container = scheme.lower() in _CONTAINERS and ":" not in whole[len(scheme) + 1 :]
    return whole if is_container or whole.endswith(_EXAMPLE) else f"{scheme}://***@"


class IcefloeError(Exception):
    """Base class of all errors that icefloe raises deliberately."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(without_credentials(part) if isinstance(part, str) else part for part in args))


class InvalidInputError(IcefloeError, ValueError):
    """Invalid input, regardless of the table's state."""


class InvalidTypeError(InvalidInputError):
    """An unknown type, or a type with wrong parameters."""


class InvalidSchemaError(InvalidInputError):
    """A schema that violates the spec."""


class InvalidValueError(InvalidInputError):
    """A value, or its encoding, does not fit its type."""


class InvalidTransformError(InvalidInputError):
    """A transform with wrong parameters, or on a source type that it does not support."""


class InvalidPartitionSpecError(InvalidInputError):
    """A partition spec that violates the Iceberg spec."""


class InvalidSortOrderError(InvalidInputError):
    """A sort order that violates the spec."""


class InvalidExpressionError(InvalidInputError):
    """A predicate that cannot be parsed or bound to the schema."""


class InvalidMetadataError(InvalidInputError):
    """A metadata document that violates the spec."""


class InvalidLocationError(InvalidInputError):
    """A malformed location, or one with an unknown scheme."""


class InvalidPropertyError(InvalidInputError):
    """A property with an invalid value."""


class UnsupportedVersionError(InvalidInputError):
    """A format version that is not supported, or that lacks the requested feature."""


class UnsupportedOperationError(InvalidInputError):
    """An operation that the catalog or service does not support."""


class CorruptFileError(IcefloeError):
    """A file that violates its format."""

    def __init__(self, location: str, problem: str) -> None:
        super().__init__(location, problem)
        self.location = location
        self.problem = problem

    def __str__(self) -> str:
        return without_credentials(f"{self.location}: {self.problem}")


class CorruptTableError(IcefloeError):
    """Inconsistent parts of a table."""


class StateError(IcefloeError):
    """Valid input that conflicts with the state of the table or catalog."""


class NoSuchObjectError(StateError, LookupError):
    """The named object does not exist."""


class NoSuchTableError(NoSuchObjectError):
    """No table with this name."""


class NoSuchViewError(NoSuchObjectError):
    """No view with this name."""


class NoSuchNamespaceError(NoSuchObjectError):
    """No namespace with this name."""


class NoSuchWarehouseError(NoSuchObjectError):
    """No warehouse with this name."""


class NoSuchPlanError(NoSuchObjectError):
    """No scan plan with this id, or no such task of a plan."""


class NoSuchPlanTaskError(NoSuchPlanError):
    """No such task of a scan plan."""


class NoSuchColumnError(NoSuchObjectError):
    """No column with this name or id."""


class NoSuchSnapshotError(NoSuchObjectError):
    """No snapshot with this id, or no such branch or tag."""


class AlreadyExistsError(StateError):
    """The name is already in use."""


class TableAlreadyExistsError(AlreadyExistsError):
    """A table with this name already exists."""


class ViewAlreadyExistsError(AlreadyExistsError):
    """A view with this name already exists."""


class NamespaceAlreadyExistsError(AlreadyExistsError):
    """A namespace with this name already exists."""


class NamespaceNotEmptyError(StateError):
    """The namespace is not empty and cannot be dropped."""


class IncompatibleChangeError(StateError):
    """A schema, partition or sort order evolution that the spec forbids."""


class ValidationError(StateError):
    """A concurrent commit changed what this one relied on."""


class EncryptionError(StateError):
    """A key is missing, rejected or not the table's, or data would be stored unencrypted."""


class AlreadyCommittedError(StateError):
    """A batch of a streaming query is already in the table and was not committed again."""


class IncompleteRewriteError(StateError):
    """A rewrite was committed in part, as more commits failed than the caller allows."""

    def __init__(self, message: str, result: object = None) -> None:
        super().__init__(message)
        self.result = result
        """The partial result (`icefloe.maintenance.RewriteResult`)."""


class CommitFailed(IcefloeError):
    """A concurrent commit won: nothing changed, and the commit can be retried on refreshed metadata."""


class StaleBaseError(CommitFailed):
    """The table changed since the commit was prepared, so the commit was not attempted."""


class CommitStateUnknown(IcefloeError):
    """The outcome of the commit is unknown, so none of its files may be deleted."""


class StorageError(IcefloeError, OSError):
    """A storage failure."""

    def __init__(self, location: str, problem: str) -> None:
        super().__init__(location, problem)
        self.location = location
        self.problem = problem

    def __str__(self) -> str:
        return without_credentials(f"{self.location}: {self.problem}")


class LocationNotFoundError(StorageError, FileNotFoundError):
    """The location does not exist."""


class LocationExistsError(StorageError, FileExistsError):
    """The location of an exclusive create already exists."""


class NothingStoredError(StorageError):
    """A write failed and certainly did not change what is stored at the location."""


class NotAuthorizedError(IcefloeError):
    """Authentication failed: credentials are missing, wrong or expired."""


class ForbiddenError(IcefloeError):
    """The authenticated user is not permitted to do this."""


class ServiceUnavailableError(IcefloeError):
    """A service is overloaded, down or unreachable; for commits, see `CommitStateUnknown`."""


class NotInstalledError(IcefloeError):
    """An optional package or program is missing."""
