"""Errors of the REST protocol: which status, type and text an error has in an answer, and what an answer means to a client.

Types and texts are those of the Java library, since its clients and its compatibility kit look at them. What a status says
about the outcome of a commit is told by `error_for`: an answer that does not say for certain that nothing happened leaves the
outcome unknown.
"""

from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus

import msgspec

from icefloe import errors
from icefloe.metadata import TableMetadata, ViewMetadata, requirements as req
from icefloe.metadata.wire_codec import Int, WireStruct, read_wire
from icefloe.rest.oauth_codec import INVALID_CLIENT, decode_problem
from icefloe.rest.paths_codec import Levels


class UnprocessableError(errors.InvalidInputError):
    """A request that is well formed and contradicts itself, or an earlier one."""


_TYPES: tuple[tuple[type[errors.IcefloeError], int, str], ...] = (
    (errors.NoSuchNamespaceError, 404, "NoSuchNamespaceException"),
    (errors.NoSuchTableError, 404, "NoSuchTableException"),
    (errors.NoSuchViewError, 404, "NoSuchViewException"),
    (errors.NoSuchWarehouseError, 404, "NoSuchWarehouseException"),
    (errors.NoSuchPlanTaskError, 404, "NoSuchPlanTaskException"),
    (errors.NoSuchPlanError, 404, "NoSuchPlanIdException"),
    (errors.LocationNotFoundError, 404, "NotFoundException"),
    (errors.AlreadyExistsError, 409, "AlreadyExistsException"),
    (errors.NamespaceNotEmptyError, 409, "NamespaceNotEmptyException"),
    (errors.CommitFailed, 409, "CommitFailedException"),
    (errors.CommitStateUnknown, 500, "CommitStateUnknownException"),
    (errors.NotAuthorizedError, 401, "NotAuthorizedException"),
    (errors.ForbiddenError, 403, "ForbiddenException"),
    (errors.ServiceUnavailableError, 503, "ServiceUnavailableException"),
    (errors.UnsupportedOperationError, 406, "UnsupportedOperationException"),
    (UnprocessableError, 422, "UnprocessableEntityException"),
    (errors.UnsupportedVersionError, 400, "ValidationException"),
    (errors.InvalidInputError, 400, "IllegalArgumentException"),
    (errors.StateError, 400, "ValidationException"),
    (errors.StorageError, 500, "RuntimeIOException"),
)
"""The first that an error is one of says what it is on the wire."""
_INTERNAL = "InternalServerError"
_NO_PLAN, _NO_TASK = "NoSuchPlanIdException", "NoSuchPlanTaskException"
_MISSING_FILE = "Failed to open input stream for file: "
_UNKNOWN_OUTCOME = (408, 500, 502, 503, 504)


class Context(Enum):
    """What a request was about, which decides what a status means."""

    CONFIG = "the configuration"
    OAUTH = "a token"
    NAMESPACE = "a namespace"
    DROP_NAMESPACE = "the drop of a namespace"
    TABLE = "a table"
    VIEW = "a view"
    TABLE_COMMIT = "a commit to a table"
    VIEW_COMMIT = "a commit to a view"
    CREATE_COMMIT = "the commit that creates a table"
    TRANSACTION = "a commit to several tables"
    PLAN = "a plan"


_COMMITS = (Context.TABLE_COMMIT, Context.VIEW_COMMIT, Context.CREATE_COMMIT, Context.TRANSACTION)
_NOT_THERE: dict[Context, type[errors.NoSuchObjectError]] = {
    Context.NAMESPACE: errors.NoSuchNamespaceError,
    Context.DROP_NAMESPACE: errors.NoSuchNamespaceError,
    Context.TABLE: errors.NoSuchTableError,
    Context.VIEW: errors.NoSuchViewError,
    Context.TABLE_COMMIT: errors.NoSuchTableError,
    Context.TRANSACTION: errors.NoSuchTableError,
    Context.VIEW_COMMIT: errors.NoSuchViewError,
    Context.CREATE_COMMIT: errors.NoSuchNamespaceError,
    Context.PLAN: errors.NoSuchTableError,
    Context.CONFIG: errors.NoSuchWarehouseError,
}
_NOT_THERE_BY_TYPE: dict[str, type[errors.NoSuchObjectError]] = {
    "NoSuchNamespaceException": errors.NoSuchNamespaceError,
    "NoSuchTableException": errors.NoSuchTableError,
    "NoSuchViewException": errors.NoSuchViewError,
    "NoSuchWarehouseException": errors.NoSuchWarehouseError,
    _NO_PLAN: errors.NoSuchPlanError,
    _NO_TASK: errors.NoSuchPlanTaskError,
}
_TAKEN: dict[Context, type[errors.IcefloeError]] = {
    Context.NAMESPACE: errors.NamespaceAlreadyExistsError,
    Context.DROP_NAMESPACE: errors.NamespaceNotEmptyError,
    Context.TABLE: errors.TableAlreadyExistsError,
    Context.VIEW: errors.ViewAlreadyExistsError,
    Context.TABLE_COMMIT: errors.CommitFailed,
    Context.VIEW_COMMIT: errors.CommitFailed,
    Context.TRANSACTION: errors.CommitFailed,
    Context.CREATE_COMMIT: errors.TableAlreadyExistsError,
}


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as it is written in an answer."""

    status: int
    error_type: str
    message: str


class ErrorWire(WireStruct):
    """An error in itself."""

    message: str | None = None
    type: str | None = None
    code: Int | None = None
    stack: list[str] | None = None


class _ErrorWire(WireStruct):
    error: ErrorWire


def error_response(error: BaseException) -> tuple[int, bytes]:
    """The status and body of an answer that tells of an error; of one that nobody foresaw it tells nothing but that."""
    problem = problem_of(error)
    return problem.status, encode_error(problem)


def problem_of(error: BaseException) -> Problem:
    """The status, type and text of an error."""
    if isinstance(error, errors.LocationNotFoundError):
        return Problem(404, "NotFoundException", f"{_MISSING_FILE}{error.location}")
    for error_class, status, error_type in _TYPES:
        if isinstance(error, error_class):
            return Problem(status, error_type, str(error))
    return Problem(500, _INTERNAL, "the server failed; its log says why, under the id of this request")


def encode_error(problem: Problem) -> bytes:
    """The body of an answer that tells of an error."""
    return msgspec.json.encode({"error": error_to_json(problem)})


def error_to_json(problem: Problem) -> dict[str, str | int]:
    """The error itself, as answers to plans embed it."""
    return {"message": problem.message, "type": problem.error_type, "code": problem.status}


def problem_from_wire(wire: ErrorWire) -> Problem:
    """An error that an answer embeds; without a code it is one of the server."""
    return Problem(wire.code or 500, wire.type or "", wire.message or _reason(wire.code or 500))


def decode_error(status: int, body: bytes) -> Problem:
    """The error that an answer tells of; a body that is not of the protocol is its text."""
    try:
        model = read_wire(body, _ErrorWire, "the error").error
    except errors.InvalidInputError:
        return Problem(status, "", _text(status, body))
    return Problem(status, model.type or "", model.message or _reason(status))


def error_for(status: int, body: bytes, context: Context, about: str = "") -> errors.IcefloeError:
    """What an answer that is not a success means to a client; `about` names what was asked for."""
    problem = _oauth_problem(status, body) if context is Context.OAUTH else decode_error(status, body)
    said = f"{problem.message} (status {status}{f', {problem.error_type}' if problem.error_type else ''})"
    text = f"{about}: {said}" if about else said
    match status:
        case 401 | 419:
            return errors.NotAuthorizedError(text)
        case 403:
            return errors.ForbiddenError(text)
        case 404:
            return _not_there(problem, context, text)
        case 409:
            return _conflict(problem, context, text)
        case 405 | 406 | 501:
            return errors.UnsupportedOperationError(text)
        case _ if status in _UNKNOWN_OUTCOME and context in _COMMITS:
            return errors.CommitStateUnknown(f"it is unknown whether the commit succeeded: {text}")
        case 408 | 429:
            return errors.ServiceUnavailableError(text)
        case _ if 400 <= status < 500:
            return _refused(problem, text)
        case _ if context in _COMMITS:
            return errors.CommitStateUnknown(f"the answer does not say whether the commit happened: {text}")
        case _:
            return errors.ServiceUnavailableError(text)


def _not_there(problem: Problem, context: Context, text: str) -> errors.IcefloeError:
    if problem.error_type == "NotFoundException" and context not in _COMMITS:
        _, said, location = problem.message.partition(_MISSING_FILE)
        return errors.LocationNotFoundError(location if said else "a metadata file", f"it is missing; {text}")
    if context in _COMMITS and problem.error_type not in _NOT_THERE_BY_TYPE:
        return _NOT_THERE[context](text)
    by_type = _NOT_THERE_BY_TYPE.get(problem.error_type)
    if context is Context.CONFIG and by_type is None:
        # A server that is not one of the protocol answers so, too.
        return errors.ServiceUnavailableError(text)
    return (by_type or _NOT_THERE.get(context, errors.NoSuchObjectError))(text)


def _conflict(problem: Problem, context: Context, text: str) -> errors.IcefloeError:
    if problem.error_type == "NamespaceNotEmptyException":
        return errors.NamespaceNotEmptyError(text)
    if problem.error_type == "CommitFailedException" and context is not Context.CREATE_COMMIT:
        return errors.CommitFailed(text)
    return _TAKEN.get(context, errors.StateError)(text)


def _refused(problem: Problem, text: str) -> errors.IcefloeError:
    match problem.error_type:
        case "NamespaceNotEmptyException":
            return errors.NamespaceNotEmptyError(text)
        case "ValidationException":
            return errors.StateError(text)
        case _:
            return errors.InvalidInputError(text)


def _oauth_problem(status: int, body: bytes) -> Problem:
    problem = decode_problem(body)
    if problem is None:
        return decode_error(status, body)
    is_unknown_client = problem.error == INVALID_CLIENT
    message = problem.description or problem.error
    return Problem(status, "NotAuthorizedException" if is_unknown_client else "BadRequestException", message)


def _text(status: int, body: bytes) -> str:
    return body[:500].decode("utf-8", "replace").strip() or _reason(status)


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no reason was given"


# The words of the Java library, which its kit looks for


def dotted(name: Levels) -> str:
    """A name as the Java library shows it."""
    return ".".join(name)


def no_namespace(namespace: Levels) -> errors.NoSuchNamespaceError:
    """There is no such namespace."""
    return errors.NoSuchNamespaceError(f"Namespace does not exist: {dotted(namespace)}")


def no_table(name: Levels) -> errors.NoSuchTableError:
    """There is no such table."""
    return errors.NoSuchTableError(f"Table does not exist: {dotted(name)}")


def no_view(name: Levels) -> errors.NoSuchViewError:
    """There is no such view."""
    return errors.NoSuchViewError(f"View does not exist: {dotted(name)}")


def namespace_exists(namespace: Levels) -> errors.NamespaceAlreadyExistsError:
    """The namespace is there already."""
    return errors.NamespaceAlreadyExistsError(f"Namespace already exists: {dotted(namespace)}")


def namespace_not_empty(namespace: Levels) -> errors.NamespaceNotEmptyError:
    """The namespace holds something."""
    return errors.NamespaceNotEmptyError(f"Namespace {dotted(namespace)} is not empty")


def name_taken(name: Levels, wanted: str, holder: str) -> errors.AlreadyExistsError:
    """The name of a new `wanted`, a table or view, is that of a `holder`, a table or view."""
    error_class = errors.ViewAlreadyExistsError if holder == "view" else errors.TableAlreadyExistsError
    same = "" if wanted == holder else "with same name "
    return error_class(f"{holder.capitalize()} {same}already exists: {dotted(name)}")


def rename_taken(source: Levels, target: Levels, holder: str) -> errors.AlreadyExistsError:
    """The target of a rename is that of a `holder`, a table or view."""
    error_class = errors.ViewAlreadyExistsError if holder == "view" else errors.TableAlreadyExistsError
    return error_class(f"Cannot rename {dotted(source)} to {dotted(target)}. {holder.capitalize()} already exists")


def requirement_text(requirement: req.Requirement, state: TableMetadata | ViewMetadata | None) -> str:
    """Why a requirement does not hold."""
    match requirement, state:
        case req.AssertCreate(), ViewMetadata():
            problem = "view already exists"
        case req.AssertCreate(), _:
            problem = "table already exists"
        case req.AssertTableUUID(uuid), TableMetadata():
            problem = f"UUID does not match: expected {state.table_uuid} != {uuid}"
        case req.AssertViewUUID(uuid), ViewMetadata():
            problem = f"view UUID does not match: expected {state.view_uuid} != {uuid}"
        case req.AssertRefSnapshotId(), TableMetadata():
            problem = _ref_text(requirement, state)
        case req.AssertLastAssignedFieldId(expected), TableMetadata():
            problem = _changed("last assigned field id", expected, state.last_column_id)
        case req.AssertCurrentSchemaId(expected), TableMetadata():
            problem = _changed("current schema", expected, state.current_schema_id)
        case req.AssertLastAssignedPartitionId(expected), TableMetadata():
            problem = _changed("last assigned partition id", expected, state.last_partition_id)
        case req.AssertDefaultSpecId(expected), TableMetadata():
            problem = _changed("default partition spec", expected, state.default_spec_id)
        case req.AssertDefaultSortOrderId(expected), TableMetadata():
            problem = _changed("default sort order", expected, state.default_sort_order_id)
        case _:
            problem = f"{requirement} on what is not there"
    return f"Requirement failed: {problem}"


def _ref_text(requirement: req.AssertRefSnapshotId, state: TableMetadata) -> str:
    ref, expected = state.refs.get(requirement.ref), requirement.snapshot_id
    if ref is None:
        return f"branch or tag {requirement.ref} is missing, expected {expected}"
    name = f"{ref.ref_type.value} {requirement.ref}"
    if expected is None:
        return f"{name} was created concurrently"
    return f"{name} has changed: expected id {expected} != {ref.snapshot_id}"


def _changed(what: str, expected: int, actual: int) -> str:
    return f"{what} changed: expected id {expected} != {actual}"
