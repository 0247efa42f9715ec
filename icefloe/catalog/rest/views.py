"""Decides how views of a REST server are created, changed and looked up."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from icefloe import commit as cm, errors, metadata as md, rest
from icefloe.catalog.identifiers import Identifier, show
from icefloe.catalog.rest.outcomes import Request, asked, changed, committed, dropped, is_there
from icefloe.catalog.views import ATTEMPTS, View, ViewDescription, Views
from icefloe.metadata import requirements as req, updates as up
from icefloe.rest import paths

if TYPE_CHECKING:
    from icefloe.catalog.rest.catalog import RestCatalog

_DEFAULT, _OVERRIDE = "view-default.", "view-override."


class RestViews(Views):
    """The views of a REST catalog."""

    def __init__(self, catalog: "RestCatalog") -> None:
        super().__init__(catalog)
        self._rest = catalog
        self._session = catalog._tables.session

    def _create(self, view: ViewDescription) -> View:
        identifier = self._rest._new_name(view.identifier, "view")
        location = None if view.location is None else self._rest._given_location(identifier, view.location)
        body = rest.encode_new_view(self._new_view(identifier, view, location))
        request = self._request(paths.CREATE_VIEW, identifier[:-1], identifier, body)
        try:
            return _read(identifier, changed(request).body)
        except errors.AlreadyExistsError as error:
            raise self._rest._taken(identifier) from error
        except errors.NoSuchNamespaceError as error:
            raise self._rest._no_namespace(identifier[:-1]) from error

    def _new_view(self, identifier: Identifier, view: ViewDescription, location: str | None) -> rest.NewView:
        updates = view.updates(identifier, None)
        (schema,) = (update.schema for update in updates if isinstance(update, up.AddSchemaUpdate))
        (version,) = (update.view_version for update in updates if isinstance(update, up.AddViewVersionUpdate))
        properties = self._rest._prefixed(_DEFAULT)
        for update in updates:
            properties |= update.updates if isinstance(update, up.SetPropertiesUpdate) else {}
        properties |= self._rest._prefixed(_OVERRIDE)
        return rest.NewView(identifier[-1], schema, replace(version, schema_id=schema.schema_id), location, properties)

    def _change(
        self, identifier: Identifier, updates: Sequence[up.ViewUpdate], check: Callable[[View], None] = lambda _: None
    ) -> View:
        for attempt in range(1, ATTEMPTS + 1):
            base = self._existing(identifier)
            check(base)
            if md.apply_view_all(base.metadata, updates, cm.now_ms()) is base.metadata:
                return base
            try:
                return self._commit(base, updates)
            except (errors.CommitFailed, errors.CommitStateUnknown) as error:
                with suppress(errors.IcefloeError):
                    current = self._existing(identifier)
                    if md.apply_view_all(current.metadata, updates, cm.now_ms()) is current.metadata:
                        return current
                if isinstance(error, errors.CommitStateUnknown) or attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _commit(self, base: View, updates: Sequence[up.ViewUpdate]) -> View:
        sent = tuple(_numbered(update, base.metadata) for update in updates)
        commit = rest.ViewCommit(sent, (req.AssertViewUUID(base.metadata.view_uuid),), base.identifier)
        request = self._one(
            paths.UPDATE_VIEW, base.identifier, rest.Context.VIEW_COMMIT, rest.encode_view_commit(commit)
        )
        return _read(base.identifier, committed(request).body)

    def _has(self, identifier: Identifier) -> bool:
        endpoint = paths.VIEW_EXISTS if self._session.has(paths.VIEW_EXISTS) else paths.LOAD_VIEW
        return self._session.has(endpoint) and is_there(self._one(endpoint, identifier))

    def _find(self, identifier: Identifier) -> View | None:
        if not self._session.has(paths.LOAD_VIEW):
            return None
        try:
            return _read(identifier, asked(self._one(paths.LOAD_VIEW, identifier)).body)
        except errors.NoSuchObjectError:
            return None

    def _names(self, namespace: Identifier) -> set[Identifier]:
        about = f"the views of {show(namespace)}"
        with self._rest._known_namespace(namespace):
            return set(
                self._session.names(paths.LIST_VIEWS, rest.Context.NAMESPACE, about, rest.decode_identifiers, namespace)
            )

    def _move(self, source: Identifier, target: Identifier) -> bool:
        body = rest.encode_rename(rest.Rename(source, target))
        request = self._session.request(
            paths.RENAME_VIEW, rest.Context.VIEW, f"view {show(source)} to {show(target)}", body=body
        )
        try:
            changed(request)
        except errors.AlreadyExistsError as error:
            raise self._rest._taken(target) from error
        except errors.NoSuchViewError:
            return False
        return True

    def _remove(self, identifier: Identifier) -> bool:
        return self._session.has(paths.DROP_VIEW) and dropped(self._one(paths.DROP_VIEW, identifier))

    def _one(
        self,
        endpoint: paths.Endpoint,
        identifier: Identifier,
        context: rest.Context = rest.Context.VIEW,
        body: bytes | None = None,
    ) -> Request:
        *namespace, name = identifier
        return self._session.request(
            endpoint, context, f"view {show(identifier)}", tuple(namespace), body=body, names={"view": name}
        )

    def _request(self, endpoint: paths.Endpoint, namespace: Identifier, identifier: Identifier, body: bytes) -> Request:
        return self._session.request(endpoint, rest.Context.VIEW, f"view {show(identifier)}", namespace, body=body)


def _read(identifier: Identifier, body: bytes) -> View:
    loaded = rest.decode_loaded_view(body)
    return View(identifier, loaded.metadata, loaded.metadata_location)


def _numbered(update: up.ViewUpdate, view: md.ViewMetadata) -> up.ViewUpdate:
    """A new version with a number that no other has; the server gives it another one if it must."""
    if not isinstance(update, up.AddViewVersionUpdate):
        return update
    number = 1 + max(known.version_id for known in view.versions)
    return up.AddViewVersionUpdate(replace(update.view_version, version_id=number))
