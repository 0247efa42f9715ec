"""An error keeps its meaning on its way through an answer, and no answer makes an open outcome a certain one."""

import msgspec
import pytest

from icefloe import errors
from icefloe.metadata import requirements as req
from icefloe.metadata.creation import new_table_metadata
from icefloe.rest import Context, decode_error, error_for, error_response, errors_codec as words
from icefloe.schema import parse_ddl

NAME = ("ns", "t")
COMMITS = (Context.TABLE_COMMIT, Context.VIEW_COMMIT, Context.CREATE_COMMIT, Context.TRANSACTION)


@pytest.mark.parametrize(
    ("error", "status", "java_type"),
    [
        (words.no_namespace(("a", "b")), 404, "NoSuchNamespaceException"),
        (words.no_table(NAME), 404, "NoSuchTableException"),
        (words.no_view(NAME), 404, "NoSuchViewException"),
        (words.name_taken(NAME, "table", "view"), 409, "AlreadyExistsException"),
        (words.namespace_not_empty(("a",)), 409, "NamespaceNotEmptyException"),
        (errors.CommitFailed("lost"), 409, "CommitFailedException"),
        (errors.CommitStateUnknown("open"), 500, "CommitStateUnknownException"),
        (errors.NotAuthorizedError("who"), 401, "NotAuthorizedException"),
        (errors.ForbiddenError("no"), 403, "ForbiddenException"),
        (errors.InvalidPropertyError("bad"), 400, "IllegalArgumentException"),
        (errors.ValidationError("bad"), 400, "ValidationException"),
        (errors.LocationNotFoundError("file:/m", "gone"), 404, "NotFoundException"),
        (errors.UnsupportedOperationError("never"), 406, "UnsupportedOperationException"),
        (KeyError("secret"), 500, "InternalServerError"),
    ],
)
def test_errors_on_the_wire(error: Exception, status: int, java_type: str) -> None:
    answered, body = error_response(error)
    model = msgspec.json.decode(body)["error"]
    assert (answered, model["code"], model["type"]) == (status, status, java_type)
    assert "secret" not in model["message"]


@pytest.mark.parametrize(
    ("error", "context"),
    [
        (words.no_namespace(("a",)), Context.NAMESPACE),
        (words.no_namespace(("a",)), Context.TABLE),
        (words.no_table(NAME), Context.TABLE),
        (words.no_table(NAME), Context.TABLE_COMMIT),
        (words.no_view(NAME), Context.VIEW),
        (words.namespace_exists(("a",)), Context.NAMESPACE),
        (words.namespace_not_empty(("a",)), Context.DROP_NAMESPACE),
        (errors.TableAlreadyExistsError("t"), Context.TABLE),
        (errors.TableAlreadyExistsError("t"), Context.CREATE_COMMIT),
        (errors.ViewAlreadyExistsError("t"), Context.VIEW),
        (errors.CommitFailed("lost"), Context.TABLE_COMMIT),
        (errors.CommitFailed("lost"), Context.TRANSACTION),
        (errors.CommitStateUnknown("open"), Context.VIEW_COMMIT),
        (errors.NotAuthorizedError("who"), Context.CONFIG),
        (errors.ForbiddenError("no"), Context.TABLE),
        (errors.InvalidInputError("bad"), Context.TABLE_COMMIT),
        (errors.NoSuchPlanError("p"), Context.PLAN),
        (errors.NoSuchPlanTaskError("p"), Context.PLAN),
        (errors.NoSuchWarehouseError("w"), Context.CONFIG),
        (errors.ServiceUnavailableError("busy"), Context.TABLE),
    ],
)
def test_a_client_gets_the_error_of_the_server(error: errors.IcefloeError, context: Context) -> None:
    received = error_for(*error_response(error), context, "lake.ns.t")
    assert type(received) is type(error)
    assert str(error) in str(received)
    assert str(received).startswith("lake.ns.t: ") or isinstance(error, errors.CommitStateUnknown)


@pytest.mark.parametrize("context", COMMITS)
@pytest.mark.parametrize("status", [200, 302, 408, 500, 502, 503, 504, 520, 599])
def test_no_doubtful_status_is_taken_for_a_failed_commit(status: int, context: Context) -> None:
    assert isinstance(error_for(status, b"<html>bad gateway</html>", context), errors.CommitStateUnknown)


@pytest.mark.parametrize("context", COMMITS)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429])
def test_refusals_of_commits_are_certain(status: int, context: Context) -> None:
    assert not isinstance(error_for(status, b"", context), errors.CommitStateUnknown)


def test_only_a_conflict_is_tried_again() -> None:
    for status in (400, 404, 422, 429):
        assert not isinstance(error_for(status, b"", Context.TABLE_COMMIT), errors.CommitFailed)


def test_bodies_that_are_not_of_the_protocol() -> None:
    assert decode_error(404, b"<html>") == words.Problem(404, "", "<html>")
    assert decode_error(503, b"").message == "Service Unavailable"
    assert decode_error(400, b'{"error": {"message": "m", "type": "T", "code": 400}}') == words.Problem(400, "T", "m")
    assert isinstance(error_for(404, b"<html>", Context.CONFIG), errors.ServiceUnavailableError)


def test_a_client_that_is_not_known_is_not_authorized() -> None:
    body = b'{"error": "invalid_client", "error_description": "no such id"}'
    assert isinstance(error_for(401, body, Context.OAUTH), errors.NotAuthorizedError)
    assert "no such id" in str(error_for(400, body, Context.OAUTH))


def test_requirements_in_the_words_of_java() -> None:
    metadata = new_table_metadata(parse_ddl("a int"), location="file:///t", uuid="U", timestamp_ms=1)
    for requirement, text in (
        (req.AssertCreate(), "table already exists"),
        (req.AssertTableUUID("V"), "UUID does not match: expected U != V"),
        (req.AssertRefSnapshotId("main", 3), "branch or tag main is missing, expected 3"),
        (req.AssertLastAssignedFieldId(7), "last assigned field id changed: expected id 7 != 1"),
        (req.AssertCurrentSchemaId(7), "current schema changed: expected id 7 != 0"),
        (req.AssertLastAssignedPartitionId(7), "last assigned partition id changed: expected id 7 != 999"),
        (req.AssertDefaultSpecId(7), "default partition spec changed: expected id 7 != 0"),
        (req.AssertDefaultSortOrderId(7), "default sort order changed: expected id 7 != 0"),
    ):
        assert words.requirement_text(requirement, metadata) == f"Requirement failed: {text}"


def test_names_in_the_words_of_java() -> None:
    assert str(words.name_taken(NAME, "view", "table")) == "Table with same name already exists: ns.t"
    assert str(words.name_taken(NAME, "table", "table")) == "Table already exists: ns.t"
    assert str(words.rename_taken(NAME, ("ns", "u"), "view")) == "Cannot rename ns.t to ns.u. View already exists"
