"""Registry of commands: name, one-line help and module; a module is imported only when its command is used."""

from dataclasses import dataclass

SETUP, LOOK, QUERY, CHANGE, CARE, SERVE = "Set up", "Look", "Query", "Change", "Care", "Serve"

GROUP = "icefloe.commands"
"""Entry point group; each entry point is named after its command and is a module with `add_arguments(parser)` and `run(arguments)`."""
OWN_POINTS = {
    "serve": "icefloe.server.serve",
    "server": "icefloe.server.admin",
    "serve-admin": "icefloe.server.admin",
    "ui": "icefloe.ui.command",
}
"""Entry points of this package, available even if it is not installed."""
HIDDEN_POINTS = ("serve-admin",)
"""Former name of `server`."""
EXTRAS = {"serve": "server", "server": "server", "serve-admin": "server", "ui": "ui"}
"""The extra that each command requires."""


@dataclass(frozen=True, slots=True)
class Command:
    """Where to import a command from: `module:attribute`, a function or a group of subcommands."""

    panel: str
    help: str
    place: str
    is_hidden: bool = False


def _of(panel: str, **commands: str) -> dict[str, Command]:
    """Return the commands of one panel, each given as `module:attribute | help`."""
    listed = {}
    for name, text in commands.items():
        place, _, help_text = text.partition(" | ")
        listed[name.strip("_").replace("_", "-")] = Command(panel, help_text, f"icefloe.cli.{place}")
    return listed


COMMANDS: dict[str, Command] = {
    **_of(
        SETUP,
        init="setup.init:init | Create a catalog and a warehouse in a directory, and an icefloe.toml that points to them.",
        catalog="setup.catalogs:app | List, add, test and remove configured catalogs.",
        config="setup.config:app | Show the effective configuration.",
        version="setup.version:version | Print the version.",
        completion="setup.completion:app | Install or print shell completion.",
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
        log="look.history:log | Show the history of a table, optionally as a graph.",
        refs="look.history:refs | List branches and tags.",
        files="look.inspecting:files | List the files of a table.",
        manifests="look.inspecting:manifests | List the manifests of a table.",
        partitions="look.inspecting:partitions | List the partitions of a table.",
        metadata="look.inspecting:metadata | Read a metadata table, or the metadata file itself.",
        du="look.storage:du | Show the disk usage of tables: live, history, metadata, unreferenced.",
        diff="look.differences:diff | Compare two snapshots of a table.",
        head="look.reading:head | Show the first rows of a table.",
        count="look.reading:count | Count the rows of a table.",
        stats="look.reading:stats | Show column statistics: bounds, null counts, sizes.",
    ),
}
COMMANDS |= {
    **_of(
        QUERY,
        query="query.query:query | Run a query without Java; name a table as in other commands, such as shop.orders@v1.",
        sql="query.sql:sql | Run SQL on Spark (DDL, DML, MERGE, CALL); opens a prompt if no statement is given.",
    ),
    **_of(
        CHANGE,
        create="change.creating:create_app | Create a namespace, table or view.",
        drop="change.creating:drop_app | Drop a namespace, table or view.",
        undrop="change.creating:undrop | Restore a dropped table, or list restorable tables, if the catalog keeps dropped tables.",
        rename="change.creating:rename | Rename a table or view.",
        register="change.creating:register | Register an existing metadata file as a table.",
        import_="change.files:import_files | Import rows from files into a table.",
        export="change.files:export | Export rows of a table to a file.",
        branch="change.snapshots:branch_app | Create, move and delete branches.",
        tag="change.snapshots:tag_app | Create, move and delete tags.",
        rollback="change.snapshots:rollback | Roll the table back to an earlier snapshot.",
        cherry_pick="change.snapshots:cherry_pick | Apply the changes of a snapshot to main.",
        publish="change.snapshots:publish | Publish the staged snapshot with a WAP id.",
        upgrade="change.snapshots:upgrade | Upgrade a table to a newer format version; this cannot be undone.",
    ),
    **_of(
        CARE,
        doctor="care.health:doctor | Diagnose tables and suggest a command for each finding.",
        verify="care.health:verify | Check tables for consistency, from metadata to rows.",
        maintain="care.upkeep:maintain | Run the maintenance that tables need, based on their health.",
        compact="care.upkeep:compact | Merge small data files, split large ones, and apply deletes.",
        rewrite_deletes=(
            "care.upkeep:rewrite_deletes | Convert equality deletes to position deletes, rewrite position deletes, "
            "and remove dangling deletes."
        ),
        rewrite_manifests="care.upkeep:rewrite_manifests | Rewrite manifests to the target size, sorted by partition.",
        expire_snapshots="care.upkeep:expire_snapshots | Expire old snapshots and delete the files that only they reference.",
        clean_orphan_files="care.upkeep:clean_orphan_files | Delete unreferenced files under the table's location.",
        compute_stats=(
            "care.upkeep:compute_stats | Compute distinct counts of columns, or partition statistics, and commit a statistics file."
        ),
    ),
}
COMMANDS["list-refs"] = Command(
    LOOK, "List branches and tags (PyIceberg's name for refs).", "icefloe.cli.look.history:list_refs", is_hidden=True
)
