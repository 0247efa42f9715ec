"""Decides how the errors of catalogs are told to clients: in the words of the Java library, by what a call is about."""

from icefloe import errors
from icefloe.catalog import Identifier, ServedCatalog
from icefloe.rest import errors_codec as words
from icefloe.server.calls import TABLE, VIEW, Call


def require_namespace(served: ServedCatalog, namespace: Identifier) -> None:
    """Fail if there is no such namespace."""
    if not served.namespace_exists(namespace):
        raise words.no_namespace(namespace)


def retold(error: Exception, call: Call) -> Exception:
    """The error of a catalog in the words that clients look for; others as they are."""
    noun = call.operation.noun or TABLE
    match error:
        case _ if call.operation.has_own_words:
            return error
        case errors.NoSuchNamespaceError():
            return words.no_namespace(call.namespace)
        case errors.NoSuchTableError():
            return words.no_table(call.identifier)
        case errors.NoSuchViewError():
            return words.no_view(call.identifier)
        case errors.NamespaceAlreadyExistsError():
            return words.namespace_exists(call.namespace)
        case errors.NamespaceNotEmptyError():
            return words.namespace_not_empty(call.namespace)
        case errors.TableAlreadyExistsError():
            return words.name_taken(call.identifier, noun, TABLE)
        case errors.ViewAlreadyExistsError():
            return words.name_taken(call.identifier, noun, VIEW)
        case _:
            return error
