"""What every status and every broken connection means: done, certainly not done, or unknown."""

import pytest

from icefloe import errors
from icefloe.catalog.rest.http import NoAnswerError, NotSentError, Response
from icefloe.catalog.rest.outcomes import Request, asked, changed, committed, dropped, is_there
from icefloe.rest import Context

COMMITS = (Context.TABLE_COMMIT, Context.VIEW_COMMIT, Context.CREATE_COMMIT, Context.TRANSACTION)
SUCCESSES = (200, 202, 204)
UNKNOWN = (408, 500, 501, 502, 503, 504, 505, 520, 599)
"""A request may have taken effect although this is the answer."""
MISSING = {
    Context.TABLE_COMMIT: errors.NoSuchTableError,
    Context.VIEW_COMMIT: errors.NoSuchViewError,
    Context.CREATE_COMMIT: errors.NoSuchNamespaceError,
    Context.TRANSACTION: errors.NoSuchTableError,
}
CERTAIN: dict[int, type[errors.IcefloeError]] = {
    400: errors.InvalidInputError,
    401: errors.NotAuthorizedError,
    403: errors.ForbiddenError,
    405: errors.UnsupportedOperationError,
    406: errors.UnsupportedOperationError,
    419: errors.NotAuthorizedError,
    422: errors.InvalidInputError,
    429: errors.CommitFailed,
}
"""What certainly did not happen, and why."""


def request(status: int, context: Context, *, repeated: bool = False, has_key: bool = False) -> Request:
    return Request(lambda: Response(status, {}, b"", repeated), context, "table a.b", has_key)


def failing(error: Exception, context: Context) -> Request:
    def call() -> Response:
        raise error

    return Request(call, context, "table a.b")


@pytest.mark.parametrize("context", COMMITS)
def test_what_a_status_says_of_a_commit(context: Context) -> None:
    for status in SUCCESSES:
        assert committed(request(status, context)).status == status
    for status in UNKNOWN:
        with pytest.raises(errors.CommitStateUnknown):
            committed(request(status, context))
    for status, expected in CERTAIN.items():
        with pytest.raises(expected):
            committed(request(status, context))
    with pytest.raises(MISSING[context]):
        committed(request(404, context))
    taken = errors.TableAlreadyExistsError if context is Context.CREATE_COMMIT else errors.CommitFailed
    with pytest.raises(taken):
        committed(request(409, context))


@pytest.mark.parametrize("context", COMMITS)
def test_what_a_broken_connection_says_of_a_commit(context: Context) -> None:
    with pytest.raises(errors.CommitFailed, match="was not changed: no connection"):
        committed(failing(NotSentError("no connection"), context))
    with pytest.raises(errors.CommitStateUnknown, match=r"unknown whether table a\.b was changed: cut"):
        committed(failing(NoAnswerError("cut"), context))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 406, 422, 429])
@pytest.mark.parametrize("context", COMMITS)
def test_a_refusal_of_the_second_sending_says_nothing_of_the_first(context: Context, status: int) -> None:
    with pytest.raises(errors.CommitStateUnknown, match="earlier attempt"):
        committed(request(status, context, repeated=True))


@pytest.mark.parametrize("status", [400, 404, 409, 422])
@pytest.mark.parametrize("context", COMMITS)
def test_a_server_that_knows_the_key_answers_for_the_first_sending(context: Context, status: int) -> None:
    with pytest.raises(errors.IcefloeError) as caught:
        committed(request(status, context, repeated=True, has_key=True))
    assert not isinstance(caught.value, errors.CommitStateUnknown)


@pytest.mark.parametrize("status", [401, 403, 429])
def test_whoever_is_not_let_in_learns_nothing_of_the_first_sending(status: int) -> None:
    with pytest.raises(errors.CommitStateUnknown):
        committed(request(status, Context.TABLE_COMMIT, repeated=True, has_key=True))


def test_a_conflict_of_a_second_sending_is_settled_by_whoever_commits() -> None:
    with pytest.raises(errors.CommitFailed):
        committed(request(409, Context.TABLE_COMMIT, repeated=True))
    # Nobody looks whose table it is that a second request to create one meets.
    with pytest.raises(errors.CommitStateUnknown):
        changed(request(409, Context.TABLE, repeated=True))
    with pytest.raises(errors.TableAlreadyExistsError):
        changed(request(409, Context.TABLE, repeated=True, has_key=True))


@pytest.mark.parametrize("context", [Context.NAMESPACE, Context.DROP_NAMESPACE, Context.TABLE, Context.VIEW])
def test_changes_that_are_no_commits_are_unknown_in_the_same_cases(context: Context) -> None:
    for status in UNKNOWN:
        with pytest.raises(errors.CommitStateUnknown):
            changed(request(status, context))
    with pytest.raises(errors.ServiceUnavailableError):
        changed(request(429, context))
    with pytest.raises(NotSentError):
        changed(failing(NotSentError("no connection"), context))
    with pytest.raises(errors.CommitStateUnknown):
        changed(failing(NoAnswerError("cut"), context))


def test_what_is_gone_at_the_second_sending_was_dropped_by_the_first() -> None:
    assert dropped(request(204, Context.TABLE))
    assert not dropped(request(404, Context.TABLE))
    assert dropped(request(404, Context.TABLE, repeated=True))
    with pytest.raises(errors.CommitStateUnknown):
        dropped(request(503, Context.TABLE))
    with pytest.raises(errors.ForbiddenError):
        dropped(request(403, Context.TABLE))


def test_a_question_has_an_answer_or_an_error() -> None:
    assert is_there(request(204, Context.TABLE))
    assert not is_there(request(404, Context.TABLE))
    with pytest.raises(errors.ServiceUnavailableError):
        is_there(request(503, Context.TABLE))
    with pytest.raises(errors.NoSuchTableError):
        asked(request(404, Context.TABLE))
    with pytest.raises(errors.ServiceUnavailableError):
        asked(request(500, Context.TABLE))
    with pytest.raises(NoAnswerError):
        asked(failing(NoAnswerError("cut"), Context.TABLE))
