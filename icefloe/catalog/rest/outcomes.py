"""Decides what became of a request: done, certainly not done, or unknown.

A question is asked with `asked`, a change with `changed`, a commit with `committed`. The last two tell a request that may
have taken effect from one that certainly did not.
"""

from collections.abc import Callable
from dataclasses import dataclass

from icefloe import errors
from icefloe.catalog.rest import http_codec as wire
from icefloe.catalog.rest.http import NoAnswerError, NotSentError, Response
from icefloe.rest import Context, error_for

_SETTLED_BY_READING = (Context.TABLE_COMMIT, Context.VIEW_COMMIT, Context.CREATE_COMMIT, Context.TRANSACTION)
"""After a conflict of these, whoever commits looks for the own commit in the table first."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request, what it is about, and how it is sent."""

    call: Callable[[], Response]
    context: Context
    about: str
    """What is asked for, or changed, in words."""
    has_key: bool = False
    """Whether the server remembers it by an idempotency key, and answers a second sending like the first."""


def asked(request: Request) -> Response:
    """The answer to a question, if it is one."""
    answer = request.call()
    error = _error_of(answer, request)
    if error is not None:
        raise error
    return answer


def is_there(request: Request) -> bool:
    """The answer to the question whether something exists; it does even if a file of its metadata is missing."""
    try:
        asked(request)
    except errors.NoSuchObjectError:
        return False
    except errors.LocationNotFoundError:
        return True
    return True


def changed(request: Request) -> Response:
    """The answer to a request for a change that was made. CommitStateUnknown if nobody knows whether it was."""
    return _judged(_sent(request), request)


def dropped(request: Request) -> bool:
    """Whether something was dropped. If it is gone when the request is sent again, that was the first sending."""
    answer = _sent(request)
    if isinstance(_error_of(answer, request), errors.NoSuchObjectError):
        return answer.repeated
    return wire.is_success(_judged(answer, request).status)


def committed(request: Request) -> Response:
    """The same for a commit, in the words of `Committer.commit`."""
    try:
        return changed(request)
    except NotSentError as error:
        raise errors.CommitFailed(f"{request.about} was not changed: {error}") from error
    except errors.ServiceUnavailableError as error:
        raise errors.CommitFailed(f"{request.about} was not changed because the server is too busy: {error}") from error


def _error_of(answer: Response, request: Request) -> errors.IcefloeError | None:
    """What is wrong, by the answer; None if all is well."""
    if wire.is_success(answer.status):
        return None
    return error_for(answer.status, answer.body, request.context, request.about)


def _sent(request: Request) -> Response:
    try:
        return request.call()
    except NoAnswerError as error:
        raise _unknown(request, str(error)) from error


def _judged(answer: Response, request: Request) -> Response:
    error = _error_of(answer, request)
    if error is None:
        return answer
    if isinstance(error, errors.CommitStateUnknown):
        raise error
    if wire.leaves_outcome_open(answer.status):
        raise _unknown(request, str(error)) from error
    if answer.repeated and not _is_settled(answer, request):
        raise _unknown(
            request, f"an earlier attempt of the request may have succeeded; the last one failed: {error}"
        ) from error
    raise error


def _is_settled(answer: Response, request: Request) -> bool:
    """Whether the answer to a second sending says what became of the first."""
    if request.has_key:
        return wire.is_final(answer.status)
    return wire.is_conflict(answer.status) and request.context in _SETTLED_BY_READING


def _unknown(request: Request, problem: str) -> errors.CommitStateUnknown:
    return errors.CommitStateUnknown(f"it is unknown whether {request.about} was changed: {problem}")
