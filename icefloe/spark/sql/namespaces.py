"""Statements about catalogs and namespaces: USE, SHOW, CREATE, DROP and the like."""

import fnmatch

from py4j.java_gateway import JavaObject

from icefloe.catalog import Catalog, show
from icefloe.spark.sql.context import SqlContext, Statement, about_namespace, whole_location
from icefloe.spark.sql.names import Home, Parts, ResolvedName
from icefloe.spark.sql.nodes import class_of, items, mapping, option, parts


def matches(pattern: str | None, name: str) -> bool:
    """Whether a name matches a pattern of SHOW, in any case: `*` is any text, and `|` separates alternatives."""
    choices = (pattern or "*").lower().split("|")
    return any(fnmatch.fnmatchcase(name.lower(), choice.strip()) for choice in choices)


def shown_namespace(home: Home) -> str:
    """The current namespace as text, empty if there is none."""
    return show(home[1]) if home[1] else ""


def _use(node: JavaObject, context: SqlContext) -> JavaObject | None:
    names, name = context.names, _used_name(node)
    home = names.home(context.default)
    if name and name[0] in names.catalogs:
        catalog, namespace = name[0], name[1:]
        if not namespace and names.current is not None and names.current[0] == catalog:
            # As in Spark, the namespace stays where the catalog does.
            return context.result()
    elif home is not None and class_of(node) != "SetCatalogCommand" and _is_of_home(name, home[0], context):
        catalog, namespace = home[0], name
    else:
        # A catalog of Spark's is to be current again; where there is none of the name, Spark says so, and all stays as it is.
        if not name or names.is_foreign(name[0]):
            names.current = None
        return None
    if namespace:
        ResolvedName(names.catalogs[catalog], namespace).check_namespace()
    names.current = (catalog, namespace)
    return context.result()


def _is_of_home(namespace: Parts, catalog: str, context: SqlContext) -> bool:
    """Whether a namespace without a catalog is in ours; after USE, it is unless it begins with a catalog of Spark's."""
    names = context.names
    if names.is_foreign(namespace[0]):
        return False
    return names.current is not None or names.catalogs[catalog].namespace_exists(namespace)


def _used_name(node: JavaObject) -> Parts:
    match class_of(node):
        case "SetCatalogCommand":
            return (str(node.productElement(0)).strip("'`"),)
        case "SetNamespaceCommand":
            return tuple(items(node.namespace()))
        case _:
            return parts(node.child())


def _show_current(_: JavaObject, context: SqlContext) -> JavaObject | None:
    home = context.names.home(context.default)
    if home is None:
        return None
    return context.result([(home[0], shown_namespace(home))], "catalog string, namespace string")


@about_namespace
def _change(node: JavaObject, namespace: ResolvedName, context: SqlContext) -> None:
    catalog, name = namespace.catalog, namespace.parts
    match class_of(node):
        case "CreateNamespace":
            properties = mapping(context.gateway, node.properties())
            if "location" in properties:
                whole_location(properties["location"])
            if not (node.ifNotExists() and catalog.namespace_exists(name)):
                catalog.create_namespace(name, properties)
        case "DropNamespace" if catalog.namespace_exists(name) or not node.ifExists():
            if node.cascade():
                _drop_contents(catalog, name)
            catalog.drop_namespace(name)
        case "SetNamespaceProperties":
            catalog.update_namespace_properties(name, updates=mapping(context.gateway, node.properties()))
        case "UnsetNamespaceProperties":
            catalog.update_namespace_properties(name, removals=set(items(node.propKeys())))
        case "CommentOnNamespace":
            catalog.update_namespace_properties(name, updates={"comment": node.comment()})
        case "SetNamespaceLocation":
            catalog.update_namespace_properties(name, updates={"location": whole_location(node.location())})


def _drop_contents(catalog: Catalog, namespace: Parts) -> None:
    for child in catalog.list_namespaces(namespace):
        _drop_contents(catalog, child)
        catalog.drop_namespace(child)
    for table in catalog.list_tables(namespace):
        catalog.drop_table(table)
    for view in catalog.list_views(namespace):
        catalog.drop_view(view)


@about_namespace
def _describe(node: JavaObject, namespace: ResolvedName, context: SqlContext) -> JavaObject:
    properties = namespace.catalog.load_namespace_properties(namespace.parts)
    rows = [("Catalog Name", namespace.catalog.name), ("Namespace Name", show(namespace.parts))]
    rows += [(key.capitalize(), properties.pop(key)) for key in ("comment", "location") if key in properties]
    if node.extended():
        shown = ", ".join(f"({key},{value})" for key, value in sorted(properties.items()))
        rows.append(("Properties", f"({shown})" if shown else ""))
    return context.result(rows, "info_name string, info_value string")


@about_namespace
def _show_namespaces(node: JavaObject, namespace: ResolvedName, context: SqlContext) -> JavaObject:
    catalog, parts = namespace.catalog, namespace.parts
    parent = parts if parts and catalog.namespace_exists(parts) else ()
    names = [show(child) for child in catalog.list_namespaces(parent)]
    return context.result([(name,) for name in names if matches(option(node.pattern()), name)], "namespace string")


@about_namespace
def _show_tables(node: JavaObject, namespace: ResolvedName, context: SqlContext) -> JavaObject:
    catalog, is_views = namespace.catalog, class_of(node) == "ShowViews"
    listed = catalog.list_views if is_views else catalog.list_tables
    # A catalog has nothing but namespaces at its root.
    names = [identifier[-1] for identifier in listed(namespace.parts)] if namespace.parts else []
    rows = [(show(namespace.parts), name, False) for name in names if matches(option(node.pattern()), name)]
    column = "viewName" if is_views else "tableName"
    return context.result(rows, f"namespace string, {column} string, isTemporary boolean")


STATEMENTS: dict[str, Statement] = {
    **dict.fromkeys(("SetCatalogAndNamespace", "SetCatalogCommand", "SetNamespaceCommand"), _use),
    **dict.fromkeys(("CreateNamespace", "DropNamespace", "SetNamespaceProperties"), _change),
    **dict.fromkeys(("UnsetNamespaceProperties", "CommentOnNamespace", "SetNamespaceLocation"), _change),
    **dict.fromkeys(("ShowNamespaces", "ShowNamespacesCommand"), _show_namespaces),
    **dict.fromkeys(("ShowTables", "ShowViews"), _show_tables),
    "ShowCurrentNamespaceCommand": _show_current,
    "DescribeNamespace": _describe,
}
