"""What the server does with namespaces."""

from icefloe.errors import InvalidInputError
from icefloe.rest import namespaces_codec as codec
from icefloe.rest.errors_codec import UnprocessableError
from icefloe.rest.paths_codec import PARENT, split_levels
from icefloe.server.auth.protocols import Privilege
from icefloe.server.calls import NOTHING, Answer, Call
from icefloe.server.pages_codec import page_of
from icefloe.server.places import require_namespace_place
from icefloe.server.words import require_namespace


def list_namespaces(call: Call) -> Answer:
    """The namespaces directly in another, or at the top."""
    parent = split_levels(call.query.get(PARENT, ""))
    if parent:
        call.namespace = parent
        call.check(Privilege.LIST, parent)
        require_namespace(call.served, parent)
    with call.watch.part("names"):
        names = call.visible(call.served.catalog.list_namespaces(parent))
    return Answer(body=codec.encode_namespaces(page_of(names, call.query, call.settings.page_size)))


def create_namespace(call: Call) -> Answer:
    """A new namespace; the privilege is one on the namespace that it is in."""
    namespace = codec.decode_namespace_properties(call.body)
    if not namespace.namespace:
        raise InvalidInputError("the namespace to create has no levels")
    call.check(Privilege.CREATE, namespace.namespace[:-1])
    require_namespace_place(call, namespace.namespace, namespace.properties)
    call.namespace = namespace.namespace
    call.replay_body = codec.encode_namespace_properties(namespace)
    call.served.catalog.create_namespace(namespace.namespace, namespace.properties)
    return Answer(body=call.replay_body)


def load_namespace(call: Call) -> Answer:
    """The properties of a namespace."""
    properties = call.served.catalog.load_namespace_properties(call.namespace)
    return Answer(body=codec.encode_namespace_properties(codec.NamespaceProperties(call.namespace, properties)))


def namespace_exists(call: Call) -> Answer:
    """Whether there is such a namespace."""
    require_namespace(call.served, call.namespace)
    return NOTHING


def drop_namespace(call: Call) -> Answer:
    """An empty namespace goes."""
    if call.holds is not None:
        call.notes["protection"] = call.holds.check_unprotected(call.namespace, None)
    call.served.catalog.drop_namespace(call.namespace)
    call.authorizer.dropped(call.target(call.namespace))
    return NOTHING


def update_namespace(call: Call) -> Answer:
    """Properties are set and removed."""
    change = codec.decode_properties_change(call.body)
    if both := sorted(set(change.removals) & change.updates.keys()):
        raise UnprocessableError(f"Invalid namespace update: cannot both set and remove {both[0]}")
    require_namespace_place(call, call.namespace, change.updates)
    catalog = call.served.catalog
    before = catalog.load_namespace_properties(call.namespace).keys()
    removed, missing = set(change.removals) & before, set(change.removals) - before
    call.replay_body = codec.encode_properties_changed(
        codec.PropertiesChanged(tuple(sorted(change.updates)), tuple(sorted(removed)), tuple(sorted(missing)))
    )
    done = catalog.update_namespace_properties(call.namespace, change.removals, change.updates)
    return Answer(
        body=codec.encode_properties_changed(codec.PropertiesChanged(done.updated, done.removed, done.missing))
    )
