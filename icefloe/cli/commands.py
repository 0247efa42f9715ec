"""The commands: their names, what `icefloe --help` says of them, and where they are; a module is imported when its command is used."""

from dataclasses import dataclass

SETUP, LOOK, QUERY, CHANGE, CARE, SERVE = "Set up", "Look", "Query", "Change", "Care", "Serve"

GROUP = "icefloe.commands"
"""Entry points of this group are modules with `add_arguments(parser)` and `run(arguments)`, named as their commands."""
OWN_POINTS = {
    "serve": "icefloe.server.serve",
    "server": "icefloe.server.admin",
    "serve-admin": "icefloe.server.admin",
    "ui": "icefloe.ui.command",
}
"""The entry points of this package, whether it is installed or not."""
HIDDEN_POINTS = ("serve-admin",)
"""An older name of `server`."""
EXTRAS = {"serve": "server", "server": "server", "serve-admin": "server", "ui": "ui"}
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
        du="look.storage:du | Show what the files of tables take: live, history, metadata, unreferenced.",
        diff="look.differences:diff | Show what is different between two snapshots of a table.",
        head="look.reading:head | Show the first rows of a table.",
        count="look.reading:count | Count the rows of a table.",
        stats="look.reading:stats | Show what is known of each column: bounds, nulls, sizes.",
    ),
}
COMMANDS |= {
    **_of(
        QUERY,
        query="query.query:query | Answer a query, without Java; tables are named as everywhere, such as shop.orders@v1.",
        sql="query.sql:sql | Run SQL on Spark: DDL, DML, MERGE, CALL; without a statement, at a prompt.",
    ),
    **_of(
        CHANGE,
        create="change.creating:create_app | Create a namespace, table or view.",
        drop="change.creating:drop_app | Drop a namespace, table or view.",
        undrop="change.creating:undrop | Have a dropped table back, or list those that can be had back, where the catalog keeps them.",
        rename="change.creating:rename | Rename a table or view.",
        register="change.creating:register | Give a name to a table that exists as a metadata file.",
        import_="change.files:import_files | Write rows of files into a table.",
        export="change.files:export | Write rows of a table into a file.",
        branch="change.snapshots:branch_app | Create, move and delete branches.",
        tag="change.snapshots:tag_app | Create, move and delete tags.",
        rollback="change.snapshots:rollback | Make an earlier snapshot the current one.",
        cherry_pick="change.snapshots:cherry_pick | Repeat the change of a snapshot on main.",
        publish="change.snapshots:publish | Publish the staged snapshot of a WAP id.",
        upgrade="change.snapshots:upgrade | Move a table to a newer format version; there is no way back.",
    ),
    **_of(
        CARE,
        doctor="care.health:doctor | Say what tables need, each with the command that does it.",
        verify="care.health:verify | Check that all parts of tables fit together, from metadata to rows.",
        maintain="care.upkeep:maintain | Do the maintenance that pays, by the health of tables.",
        compact="care.upkeep:compact | Put small data files together, split large ones, and apply deletes.",
        rewrite_deletes=(
            "care.upkeep:rewrite_deletes | Turn equality deletes into deletes by position, write position deletes anew, "
            "and remove those that delete nothing."
        ),
        rewrite_manifests="care.upkeep:rewrite_manifests | Write manifests anew, of the right size and sorted by partition.",
        expire_snapshots="care.upkeep:expire_snapshots | Drop old snapshots, and delete the files that only they needed.",
        clean_orphan_files="care.upkeep:clean_orphan_files | Delete files beneath the table's location that nothing needs.",
        compute_stats=(
            "care.upkeep:compute_stats | Count distinct values of columns, or what partitions hold, and commit a statistics file."
        ),
    ),
}
COMMANDS["list-refs"] = Command(
    LOOK, "List branches and tags, under PyIceberg's name.", "icefloe.cli.look.history:list_refs", is_hidden=True
)
