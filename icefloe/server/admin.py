"""`icefloe server`: decides in which database an administrator's commands work, by the configuration of the server."""

import argparse
import sys
from collections.abc import Iterable, Mapping

from icefloe.catalog import ServedCatalog
from icefloe.errors import InvalidPropertyError
from icefloe.server.auth import DirectoryStore, auth_settings
from icefloe.server.auth.commands import add_admin_arguments, run_admin
from icefloe.server.doctor import WRONG, Finding, examine
from icefloe.server.migrations import is_current, migrate
from icefloe.server.serve import access_database, served_catalogs
from icefloe.server.settings import read_configuration, read_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.description = (
        "Users, tokens, roles, grants and signing keys of a server; its database, and what is wrong with it."
    )
    parser.add_argument("--config", metavar="FILE", help="the configuration of the server")
    parser.add_argument("--folder", metavar="FOLDER", help="without --config: the --warehouse of the server")
    nouns = add_admin_arguments(parser)
    nouns.add_parser("migrate", help="bring the server's own tables in its databases up to date")
    nouns.add_parser("doctor", help="check the configuration, databases, catalogs, certificate and access")


def run(arguments: argparse.Namespace) -> int:
    """Do what the arguments say."""
    match arguments.noun:
        case "doctor":
            return _told(examine(arguments.config, arguments.folder))
        case "migrate":
            return _migrate(arguments)
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


def _migrate(arguments: argparse.Namespace) -> int:
    catalogs = served_catalogs(arguments.config, arguments.folder)
    for name, catalog in catalogs.items():
        database = ServedCatalog(catalog).database
        if database is not None:
            was_current = is_current(database)
            migrate(database)
            sys.stdout.write(f"{name}\t{'is up to date' if was_current else 'was brought up to date'}\n")
    return 0


def _told(findings: Iterable[Finding]) -> int:
    code = 0
    for finding in findings:
        sys.stdout.write(f"{finding.severity}\t{finding.subject}\t{finding.text}\n")
        code = max(code, int(finding.severity == WRONG))
    return code
