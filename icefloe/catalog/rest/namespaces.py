"""Decides how a REST server is asked about namespaces."""

from collections.abc import Mapping

from icefloe import rest
from icefloe.catalog.identifiers import Identifier, show
from icefloe.catalog.rest import http_codec as wire
from icefloe.catalog.rest.outcomes import Request, asked, changed, dropped, is_there
from icefloe.catalog.rest.session import RestSession
from icefloe.rest import paths


class RestNamespaces:
    """The namespaces of one server."""

    def __init__(self, session: RestSession) -> None:
        self._session = session

    def exists(self, namespace: Identifier) -> bool:
        """Whether there is such a namespace."""
        has_own = self._session.has(paths.NAMESPACE_EXISTS)
        return is_there(self._one(paths.NAMESPACE_EXISTS if has_own else paths.LOAD_NAMESPACE, namespace))

    def create(self, namespace: Identifier, properties: Mapping[str, str]) -> None:
        """Create a namespace."""
        body = rest.encode_namespace_properties(rest.NamespaceProperties(namespace, properties))
        changed(self._session.request(paths.CREATE_NAMESPACE, rest.Context.NAMESPACE, _about(namespace), body=body))

    def drop(self, namespace: Identifier) -> bool:
        """Drop an empty namespace; whether there was one."""
        return dropped(self._one(paths.DROP_NAMESPACE, namespace, rest.Context.DROP_NAMESPACE))

    def children(self, parent: Identifier) -> set[Identifier]:
        """The namespaces directly in another, or at the top."""
        query = {wire.PARENT: paths.join_levels(parent, self._session.separator)} if parent else None
        about = f"the namespaces in {show(parent)}" if parent else "the namespaces"
        names = self._session.names(
            paths.LIST_NAMESPACES, rest.Context.NAMESPACE, about, rest.decode_namespaces, (), query
        )
        return {name for name in names if len(name) == len(parent) + 1}

    def properties(self, namespace: Identifier) -> dict[str, str]:
        """The properties of a namespace."""
        answer = asked(self._one(paths.LOAD_NAMESPACE, namespace))
        return dict(rest.decode_namespace_properties(answer.body).properties)

    def change(self, namespace: Identifier, change: rest.PropertiesChange) -> rest.PropertiesChanged:
        """Change the properties."""
        body = rest.encode_properties_change(change)
        return rest.decode_properties_changed(changed(self._one(paths.UPDATE_NAMESPACE, namespace, body=body)).body)

    def _one(
        self,
        endpoint: paths.Endpoint,
        namespace: Identifier,
        context: rest.Context = rest.Context.NAMESPACE,
        body: bytes | None = None,
    ) -> Request:
        return self._session.request(endpoint, context, _about(namespace), namespace, body=body)


def _about(namespace: Identifier) -> str:
    return f"namespace {show(namespace)}"
