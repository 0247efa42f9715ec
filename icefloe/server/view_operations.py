"""What the server does with views."""

import uuid
from dataclasses import replace

from icefloe import errors
from icefloe.catalog import View
from icefloe.metadata import updates as up
from icefloe.rest import errors_codec as words, namespaces_codec, tables_codec, views_codec as codec
from icefloe.server.auth.protocols import Privilege
from icefloe.server.calls import NOTHING, VIEW, Answer, Call
from icefloe.server.commits import check_requirements
from icefloe.server.pages_codec import page_of
from icefloe.server.places import require_content, require_folder, require_place, require_updates
from icefloe.server.table_operations import check_rename, follow, taken_by
from icefloe.server.words import require_namespace
from icefloe.storage import absolute_location


def list_views(call: Call) -> Answer:
    """The views in a namespace."""
    with call.watch.part("names"):
        names = call.visible(call.served.catalog.list_views(call.namespace), VIEW)
    return Answer(namespaces_codec.encode_identifiers(page_of(names, call.query, call.settings.page_size)))


def create_view(call: Call) -> Answer:
    """A new view; its version has the schema that comes along."""
    with call.watch.part("decode"):
        view = codec.decode_new_view(call.body)
    call.name = view.name
    if view.location is not None:
        require_place(call, call.identifier, view.location)
    updates: list[up.ViewUpdate] = [up.AssignUUIDUpdate(str(uuid.uuid4()))]
    if view.properties:
        updates.append(up.SetPropertiesUpdate(view.properties))
    version = replace(view.version, schema_id=up.LAST_ADDED)
    updates += [
        up.AddSchemaUpdate(view.schema),
        up.AddViewVersionUpdate(version),
        up.SetCurrentViewVersionUpdate(),
    ]
    with call.watch.part("create"):
        created = call.served.create_view(call.identifier, updates, view.location)
    return loaded_at(call, created.metadata_location)


def load_view(call: Call) -> Answer:
    """A view as it is now."""
    return loaded_at(call, _pointer(call))


def loaded_at(call: Call, location: str) -> Answer:
    """The answer with the view at a metadata location."""
    with call.watch.part("metadata"):
        text = call.warehouse.view_text(location)
    return Answer(tables_codec.join_loaded(text, location, tables_codec.Surplus()))


def view_exists(call: Call) -> Answer:
    """Whether there is such a view."""
    _pointer(call)
    return NOTHING


def commit_view(call: Call) -> Answer:
    """Updates of a view; versions that come at the same time are numbered one after the other."""
    with call.watch.part("decode"):
        commit = codec.decode_view_commit(call.body)
    if commit.identifier is not None and commit.identifier != call.identifier:
        raise errors.InvalidInputError(
            f"the path names the view {words.dotted(call.identifier)}, and the commit {words.dotted(commit.identifier)}"
        )
    require_updates(call, call.identifier, commit.updates)

    def check(view: View) -> None:
        check_requirements(commit.requirements, view.metadata)

    with call.watch.part("commit"):
        view = call.served.change_view(call.identifier, commit.updates, check)
    return loaded_at(call, view.metadata_location)


def drop_view(call: Call) -> Answer:
    """A view goes; its files stay."""
    if call.holds is not None:
        call.notes["protection"] = call.holds.check_unprotected(call.identifier, VIEW)
    call.served.catalog.drop_view(call.identifier)
    call.authorizer.dropped(call.target(call.identifier, VIEW))
    return NOTHING


def rename_view(call: Call) -> Answer:
    """Another name for a view."""
    rename = tables_codec.decode_rename(call.body)
    check_rename(call, rename, VIEW)
    if call.served.view_location(rename.source) is None:
        raise words.no_view(rename.source)
    require_namespace(call.served, rename.destination[:-1])
    follow(call, rename, VIEW)
    try:
        call.served.catalog.views.rename(rename.source, rename.destination)
    except errors.AlreadyExistsError:
        raise taken_by(call, rename) from None
    call.authorizer.renamed(call.target(rename.source, VIEW), call.target(rename.destination, VIEW))
    return NOTHING


def register_view(call: Call) -> Answer:
    """A name for a view that exists as a metadata file."""
    registration = tables_codec.decode_registration(call.body)
    call.name = registration.name
    call.check(Privilege.MANAGE, call.namespace)
    require_namespace(call.served, call.namespace)
    location = absolute_location(registration.metadata_location)
    require_folder(call, call.namespace, location)
    require_content(call, call.identifier, call.served.read_view(location))
    view = call.served.register_view(call.identifier, registration.metadata_location)
    return loaded_at(call, view.metadata_location)


def _pointer(call: Call) -> str:
    with call.watch.part("pointer"):
        location = call.served.view_location(call.identifier)
    if location is None:
        raise words.no_view(call.identifier)
    return location
