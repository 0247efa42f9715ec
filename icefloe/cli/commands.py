"""The commands: their names, what `icefloe --help` says of them, and where they are; a module is imported when its command is used."""

from dataclasses import dataclass

SETUP, LOOK, QUERY, CHANGE, CARE, SERVE = "Set up", "Look", "Query", "Change", "Care", "Serve"

GROUP = "icefloe.commands"
"""Entry points of this group are modules with `add_arguments(parser)` and `run(arguments)`, named as their commands."""
OWN_POINTS = {"serve": "icefloe.server.serve", "serve-admin": "icefloe.server.admin"}
"""The entry points of this package, whether it is installed or not."""
EXTRAS = {"serve": "server", "serve-admin": "server"}
"""Which extra a command needs."""


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command is: `module:attribute`, a function or a group of further commands."""

    panel: str
    help: str
    place: str
    is_hidden: bool = False


def _of(panel: str, **commands: str) -> dict[str, Command]:
    """Commands of one panel: each is `place | help`."""
    listed = {}
    for name, text in commands.items():
        place, _, help_text = text.partition(" | ")
        listed[name.strip("_").replace("_", "-")] = Command(panel, help_text, f"icefloe.cli.{place}")
    return listed


COMMANDS: dict[str, Command] = {
    **_of(
        SETUP,
        init="setup.init:init | Make a catalog and a warehouse in a folder, with an icefloe.toml that names them.",
        catalog="setup.catalogs:app | Show, add, test and remove catalogs of the configuration.",
        config="setup.config:app | Show which configuration counts here.",
        version="setup.version:version | Print the version.",
        completion="setup.completion:app | Completion of commands and names in your shell.",
    ),
    **_of(
        LOOK,
        list="look.names:list_names | List namespaces, tables and views.",
        tree="look.names:tree | Show namespaces, tables and views as a tree.",
        describe="look.describe:describe | Describe a table, view or namespace.",
        schema="look.structure:schema | Show the columns of a table.",
        spec="look.structure:spec | Show how a table is partitioned.",
        sort_order="look.structure:sort_order | Show how a table is sorted.",
        uuid="look.structure:uuid | Print the UUID of a table.",
        location="look.structure:location | Print the location of a table.",
        properties="look.properties:app | Get, set and remove properties of tables and namespaces.",
        snapshots="look.history:snapshots | List the snapshots of a table.",
        log="look.history:log | Show the history of a table, also as a graph.",
        refs="look.history:refs | List branches and tags.",
        files="look.inspecting:files | List the files of a table.",
        manifests="look.inspecting:manifests | List the manifests of a table.",
        partitions="look.inspecting:partitions | List the partitions of a table.",
        metadata="look.inspecting:metadata | Read a metadata table, or the metadata file itself.",
        head="look.reading:head | Show the first rows of a table.",
        count="look.reading:count | Count the rows of a table.",
        stats="look.reading:stats | Show what is known of each column: bounds, nulls, sizes.",
    ),
}
COMMANDS["list-refs"] = Command(
    LOOK, "List branches and tags, under PyIceberg's name.", "icefloe.cli.look.history:list_refs", is_hidden=True
)
