"""What operators do beside the REST protocol: tables that were dropped come back, and what matters is protected from drops."""

from icefloe import errors
from icefloe.catalog import RefusedAlongsideError
from icefloe.rest import dropped_codec as dropped, errors_codec as words
from icefloe.server import management_codec as codec
from icefloe.server.auth.protocols import Privilege
from icefloe.server.calls import NOTHING, TABLE, VIEW, Answer, Call, Operation
from icefloe.server.holds import Holds
from icefloe.server.words import require_namespace


def management_operations() -> tuple[Operation, ...]:
    """All of them."""
    operations = list(undropping_operations())
    for noun in (TABLE, VIEW, None):
        ask, protect, unprotect = codec.protection_endpoints(noun)
        operations += [
            Operation(ask, _is_protected, Privilege.LIST, noun),
            Operation(protect, _protect, Privilege.MANAGE, noun, changes=True),
            Operation(unprotect, _unprotect, Privilege.MANAGE, noun, changes=True),
        ]
    return tuple(operations)


def undropping_operations() -> tuple[Operation, ...]:
    """Those that clients are told of, as they are for users, too."""
    return (
        Operation(dropped.LIST_DROPPED, _list_dropped),
        Operation(dropped.UNDROP, _undrop, changes=True, has_own_words=True),
    )


def _holds(call: Call) -> Holds:
    if call.holds is None:
        raise errors.UnsupportedOperationError(
            f"warehouse {call.warehouse.name!r} has no database to remember dropped or protected tables in"
        )
    return call.holds


def _list_dropped(call: Call) -> Answer:
    """The dropped tables of those namespaces that the caller may see."""
    holds = _holds(call)
    tables = {table.identifier: table for table in reversed(holds.dropped())}
    visible = set(call.visible(list(tables), TABLE))
    shown = [holds.shown(table) for table in holds.dropped() if table.identifier in visible]
    return Answer(dropped.encode_dropped(shown))


def _undrop(call: Call) -> Answer:
    """A dropped table comes back, under its own name or another one."""
    holds = _holds(call)
    number, name = dropped.decode_undrop(call.body)
    table = holds.find(number)
    identifier = name or table.identifier
    call.check(Privilege.MANAGE, table.identifier[:-1])
    call.check(Privilege.CREATE, identifier[:-1])
    require_namespace(call.served, identifier[:-1])
    call.notes["undrop"] = holds.ending(table)
    try:
        call.served.register_again(identifier, table.location)
    except errors.AlreadyExistsError:
        raise words.name_taken(identifier, TABLE, TABLE) from None
    except RefusedAlongsideError:
        raise errors.NoSuchObjectError(f"the dropped table {number} is gone, or has a name again") from None
    return NOTHING


def _is_protected(call: Call) -> Answer:
    return Answer(codec.encode_protection(_holds(call).is_protected(*_subject(call))))


def _protect(call: Call) -> Answer:
    identifier, noun = _subject(call)
    _require(call, noun)
    _holds(call).protect(identifier, noun)
    return NOTHING


def _unprotect(call: Call) -> Answer:
    _holds(call).unprotect(*_subject(call))
    return NOTHING


def _subject(call: Call) -> tuple[tuple[str, ...], str | None]:
    noun = call.operation.noun
    return (call.namespace if noun is None else call.identifier), noun


def _require(call: Call, noun: str | None) -> None:
    """Fail if what is to be protected does not exist."""
    if noun == TABLE and call.served.table_location(call.identifier) is None:
        raise words.no_table(call.identifier)
    if noun == VIEW and call.served.view_location(call.identifier) is None:
        raise words.no_view(call.identifier)
    if noun is None:
        require_namespace(call.served, call.namespace)
