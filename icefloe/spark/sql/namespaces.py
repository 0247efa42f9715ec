"""Statements about catalogs and namespaces: USE, SHOW, CREATE, DROP and the like."""

import fnmatch
from typing import Any

from icefloe.catalog import show
from icefloe.errors import NoSuchNamespaceError
from icefloe.spark.sql.context import SqlContext, whole_location
from icefloe.spark.sql.nodes import items, kind_of, mapping, option, parts


def run_namespaces(node: Any, context: SqlContext) -> Any | None:
    """The result plan of a statement about namespaces; None if it is none, or not about ours."""
    match kind_of(node):
        case "SetCatalogAndNamespace" | "SetCatalogCommand" | "SetNamespaceCommand":
            return _use(node, context)
        case "ShowCurrentNamespaceCommand":
            return _show_current(context)
        case "CreateNamespace" | "DropNamespace" | "SetNamespaceProperties" | "UnsetNamespaceProperties":
            return _change(node, context)
        case "CommentOnNamespace" | "SetNamespaceLocation" | "DescribeNamespace":
            return _change(node, context)
        case "ShowNamespaces" | "ShowNamespacesCommand":
            return _show_namespaces(node, context)
        case "ShowTables" | "ShowViews":
            return _show_tables(node, context)
        case _:
            return None


def matches(pattern: str | None, name: str) -> bool:
    """Whether a name matches a pattern of SHOW, in any case: `*` is any text, and `|` separates alternatives."""
    choices = (pattern or "*").lower().split("|")
    return any(fnmatch.fnmatchcase(name.lower(), choice.strip()) for choice in choices)


def _use(node: Any, context: SqlContext) -> Any | None:
    names, wanted = context.names, _wanted(node)
    home = names.home(context.default)
    names_catalog = kind_of(node) == "SetCatalogCommand"
    if wanted and wanted[0] in names.catalogs:
        catalog, namespace = wanted[0], wanted[1:]
        if not namespace and names.current is not None and names.current[0] == catalog:
            # As in Spark, the namespace stays where the catalog does.
            return context.result()
    elif home is not None and not names_catalog and _is_of_home(wanted, home[0], context):
        catalog, namespace = home[0], wanted
    else:
        # A catalog of Spark's is to be current again; where there is none of the name, Spark says so, and all stays as it is.
        if not wanted or names.is_foreign(wanted[0]):
            names.current = None
        return None
    if namespace and not names.catalogs[catalog].namespace_exists(namespace):
        raise NoSuchNamespaceError(f"no namespace {show(namespace)} in catalog {catalog!r}")
    names.current = (catalog, namespace)
    return context.result()


def _is_of_home(wanted: tuple[str, ...], catalog: str, context: SqlContext) -> bool:
    """Whether a namespace without a catalog is in ours; after USE, it is unless it begins with a catalog of Spark's."""
    names = context.names
    if names.is_foreign(wanted[0]):
        return False
    return names.current is not None or names.catalogs[catalog].namespace_exists(wanted)


def _wanted(node: Any) -> tuple[str, ...]:
    match kind_of(node):
        case "SetCatalogCommand":
            return (str(node.productElement(0)).strip("'`"),)
        case "SetNamespaceCommand":
            return tuple(items(node.namespace()))
        case _:
            return parts(node.child())


def _show_current(context: SqlContext) -> Any | None:
    home = context.names.home(context.default)
    if home is None:
        return None
    return context.result([(home[0], show(home[1]) if home[1] else "")], "catalog string, namespace string")


def _change(node: Any, context: SqlContext) -> Any | None:
    place = context.place(node.child())
    if place is None:
        return None
    catalog, namespace = place.catalog, place.parts
    match kind_of(node):
        case "CreateNamespace":
            properties = mapping(context.gateway, node.properties())
            if "location" in properties:
                whole_location(properties["location"])
            if not (node.ifNotExists() and catalog.namespace_exists(namespace)):
                catalog.create_namespace(namespace, properties)
        case "DropNamespace":
            if node.ifExists() and not catalog.namespace_exists(namespace):
                return context.result()
            if node.cascade():
                _drop_contents(catalog, namespace)
            catalog.drop_namespace(namespace)
        case "SetNamespaceProperties":
            catalog.update_namespace_properties(namespace, updates=mapping(context.gateway, node.properties()))
        case "UnsetNamespaceProperties":
            catalog.update_namespace_properties(namespace, removals=set(items(node.propKeys())))
        case "CommentOnNamespace":
            catalog.update_namespace_properties(namespace, updates={"comment": node.comment()})
        case "SetNamespaceLocation":
            catalog.update_namespace_properties(namespace, updates={"location": whole_location(node.location())})
        case _:
            return _describe(catalog, namespace, node.extended(), context)
    return context.result()


def _drop_contents(catalog: Any, namespace: tuple[str, ...]) -> None:
    for child in catalog.list_namespaces(namespace):
        _drop_contents(catalog, child)
        catalog.drop_namespace(child)
    for table in catalog.list_tables(namespace):
        catalog.drop_table(table)
    for view in catalog.list_views(namespace):
        catalog.drop_view(view)


def _describe(catalog: Any, namespace: tuple[str, ...], extended: bool, context: SqlContext) -> Any:
    properties = catalog.load_namespace_properties(namespace)
    rows = [("Catalog Name", catalog.name), ("Namespace Name", show(namespace))]
    rows += [
        (name, properties.pop(key))
        for name, key in (("Comment", "comment"), ("Location", "location"))
        if key in properties
    ]
    if extended:
        shown = ", ".join(f"({key},{value})" for key, value in sorted(properties.items()))
        rows.append(("Properties", f"({shown})" if shown else ""))
    return context.result(rows, "info_name string, info_value string")


def _show_namespaces(node: Any, context: SqlContext) -> Any | None:
    place = context.place(node.child())
    if place is None:
        return None
    parent = place.parts if place.parts and place.catalog.namespace_exists(place.parts) else ()
    names = [show(namespace) for namespace in place.catalog.list_namespaces(parent)]
    return context.result([(name,) for name in names if matches(option(node.pattern()), name)], "namespace string")


def _show_tables(node: Any, context: SqlContext) -> Any | None:
    place = context.place(node.child())
    if place is None:
        return None
    is_views = kind_of(node) == "ShowViews"
    listed = place.catalog.list_views if is_views else place.catalog.list_tables
    # A catalog has nothing but namespaces at its root.
    identifiers = listed(place.parts) if place.parts else []
    rows = [
        (show(place.parts), identifier[-1], False)
        for identifier in identifiers
        if matches(option(node.pattern()), identifier[-1])
    ]
    column = "viewName" if is_views else "tableName"
    return context.result(rows, f"namespace string, {column} string, isTemporary boolean")
