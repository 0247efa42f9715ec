"""`icefloe serve-admin`: decides in which database an administrator's commands work, by the configuration of the server."""

import argparse
import sys
from collections.abc import Mapping

from icefloe.errors import InvalidPropertyError
from icefloe.server.auth import DirectoryStore, auth_settings
from icefloe.server.auth.commands import add_admin_arguments, run_admin
from icefloe.server.migrations import migrate
from icefloe.server.serve import access_database, served_catalogs
from icefloe.server.settings import read_configuration, read_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.description = "Principals, tokens, roles, grants and signing keys of a server."
    parser.add_argument("--config", metavar="FILE", help="the configuration of the server")
    parser.add_argument("--folder", metavar="FOLDER", help="without --config: the --warehouse of the server")
    add_admin_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Do what the arguments say."""
    content = read_configuration(arguments.config)
    section = content.get("auth", {})
    if not isinstance(section, Mapping):
        raise InvalidPropertyError("`auth` of the configuration is not a table like [auth]")
    database = access_database(served_catalogs(arguments.config, arguments.folder), read_settings(content))
    if database is None:
        raise InvalidPropertyError(
            "no catalog of the configuration has a database; principals and grants are in its [auth]"
        )
    migrate(database)
    for line in run_admin(arguments, DirectoryStore(database), auth_settings(section).directory):
        sys.stdout.write(f"{line}\n")
    return 0
