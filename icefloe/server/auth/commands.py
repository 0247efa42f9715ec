"""The commands of an administrator: principals, tokens, roles, grants and signing keys, in the server's database."""

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

from icefloe.catalog import parse_namespace
from icefloe.errors import ForbiddenError, InvalidInputError, NoSuchObjectError
from icefloe.server.auth.authorizers import GrantAuthorizer
from icefloe.server.auth.credentials import Credential, new_credential
from icefloe.server.auth.directory import Directory, DirectorySource
from icefloe.server.auth.directory_store import DirectoryStore
from icefloe.server.auth.grants import Grant, shown_target
from icefloe.server.auth.protocols import Kind, Principal, Privilege, Target

_DAY = 86400.0

if TYPE_CHECKING:
    _Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


_OTHER_NAMES = {"user": "principals", "token": "tokens", "role": "roles", "grant": "grants", "key": "keys"}


def add_admin_arguments(parser: argparse.ArgumentParser) -> "_Verbs":
    """Give a parser the commands; what it reads is for `run_admin`. What more commands are added to."""
    nouns = parser.add_subparsers(dest="noun", required=True, metavar="NOUN")
    _principals(_verbs(nouns, "user", "users and programs of this server"))
    _tokens(_verbs(nouns, "token", "API tokens of users"))
    _roles(_verbs(nouns, "role", "who has which role"))
    _grants(_verbs(nouns, "grant", "who may do what"))
    keys = _verbs(nouns, "key", "keys that sign short-lived tokens")
    keys.add_parser("list", help="ids, newest first")
    keys.add_parser("rotate", help="sign with a new key from now on")
    keys.add_parser("remove", help="refuse what a key signed").add_argument("id")
    return nouns


def _verbs(nouns: "_Verbs", noun: str, text: str) -> "_Verbs":
    parser = nouns.add_parser(noun, help=text, aliases=[_OTHER_NAMES[noun]])
    return parser.add_subparsers(dest="verb", required=True, metavar="VERB")


def _principals(verbs: "_Verbs") -> None:
    verbs.add_parser("list", help="names, and whether they are enabled")
    for verb, text in (
        ("add", "a new principal"),
        ("remove", "with its tokens, roles and grants"),
        ("enable", "let it in again"),
        ("disable", "keep it out; one of an identity provider, too, as ISSUER:SUBJECT"),
    ):
        verbs.add_parser(verb, help=text).add_argument("name")


def _tokens(verbs: "_Verbs") -> None:
    for verb, text in (
        ("add", "a new token, shown once"),
        ("hash", "a new token that is not stored, and its line for a configuration file"),
    ):
        parser = verbs.add_parser(verb, help=text)
        parser.add_argument("principal")
        if verb == "add":
            parser.add_argument("--label", default="", help="what it is for")
            parser.add_argument("--days", type=float, help="how long it lives; without it, until it is revoked")
    verbs.add_parser("list", help="ids, principals, labels and times").add_argument("principal", nargs="?")
    verbs.add_parser("revoke", help="end a token, and what was issued for it").add_argument("id")


def _roles(verbs: "_Verbs") -> None:
    verbs.add_parser("list", help="roles with their members")
    for verb, text in (("add", "give a role"), ("remove", "take a role away")):
        parser = verbs.add_parser(verb, help=text)
        parser.add_argument("role")
        parser.add_argument("member", help="principal:NAME or role:NAME")


def _grants(verbs: "_Verbs") -> None:
    verbs.add_parser("list", help="all grants").add_argument("grantee", nargs="?")
    for verb, text in (("add", "allow something"), ("remove", "take it back")):
        parser = verbs.add_parser(verb, help=text)
        parser.add_argument("grantee", help="principal:NAME or role:NAME")
        parser.add_argument("privileges", nargs="+", type=Privilege, metavar="PRIVILEGE", help=", ".join(Privilege))
        _target_arguments(parser)
    parser = verbs.add_parser("check", help="whether a principal may do something")
    parser.add_argument("principal")
    parser.add_argument("privilege", type=Privilege, help=", ".join(Privilege))
    parser.add_argument("--role", action="append", default=[], help="a role that its identity provider asserts")
    _target_arguments(parser)


def _target_arguments(parser: argparse.ArgumentParser) -> None:
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--server", action="store_true", help="all warehouses")
    place.add_argument("--warehouse")
    parser.add_argument("--namespace", help='levels with dots between them; a level with a dot is "quoted"')
    name = parser.add_mutually_exclusive_group()
    name.add_argument("--table")
    name.add_argument("--view")


def run_admin(
    arguments: argparse.Namespace, store: DirectoryStore, configured: Directory | None = None
) -> Iterator[str]:
    """Do what the arguments say; the lines to show. `configured` is what the configuration file adds."""
    match arguments.noun:
        case "user" | "principals":
            yield from _run_principals(arguments, store)
        case "token" | "tokens":
            yield from _run_tokens(arguments, store)
        case "role" | "roles":
            yield from _run_roles(arguments, store)
        case "grant" | "grants":
            yield from _run_grants(arguments, store, configured or Directory())
        case "key" | "keys":
            yield from _run_keys(arguments, store)


def _run_principals(arguments: argparse.Namespace, store: DirectoryStore) -> Iterator[str]:
    match arguments.verb:
        case "list":
            for name, is_enabled in sorted(_read(store).principals.items()):
                yield f"{name}\t{'enabled' if is_enabled else 'disabled'}"
        case "add":
            store.add_principal(arguments.name)
        case "remove":
            store.remove_principal(arguments.name)
        case verb:
            store.set_enabled(arguments.name, verb == "enable")


def _run_tokens(arguments: argparse.Namespace, store: DirectoryStore) -> Iterator[str]:
    match arguments.verb:
        case "list":
            for credential in sorted(
                _read(store).credentials.values(), key=lambda one: (one.principal, one.created_at_ms)
            ):
                if arguments.principal in (None, credential.principal):
                    yield _shown_credential(credential)
        case "add":
            seconds = None if arguments.days is None else arguments.days * _DAY
            yield store.add_token(arguments.principal, arguments.label, seconds)[1]
        case "hash":
            credential, token = new_credential(arguments.principal, "", None)
            yield token
            yield f'tokens = ["{credential.id}:{credential.secret_sha256}"]'
        case "revoke":
            store.revoke_token(arguments.id)


def _shown_credential(credential: Credential) -> str:
    ends = "never" if credential.expires_at_ms is None else _shown_time(credential.expires_at_ms)
    if credential.revoked_at_ms is not None:
        ends = f"revoked {_shown_time(credential.revoked_at_ms)}"
    created = _shown_time(credential.created_at_ms)
    return f"{credential.id}\t{credential.principal}\t{credential.label}\tcreated {created}\texpires {ends}"


def _shown_time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")


def _run_roles(arguments: argparse.Namespace, store: DirectoryStore) -> Iterator[str]:
    match arguments.verb:
        case "list":
            for role, member in sorted(_read(store).members):
                yield f"{role}\t{member}"
        case "add":
            store.add_member(arguments.role, arguments.member)
        case "remove":
            store.remove_member(arguments.role, arguments.member)


def _run_grants(arguments: argparse.Namespace, store: DirectoryStore, configured: Directory) -> Iterator[str]:
    match arguments.verb:
        case "list":
            for grant in sorted(_read(store).joined(configured).grants, key=str):
                if arguments.grantee in (None, grant.grantee):
                    yield f"{grant.grantee}\t{grant.privilege}\t{shown_target(grant.target)}"
        case "check":
            yield _checked(arguments, _read(store).joined(configured))
        case verb:
            target = _target(arguments)
            grants = [Grant(arguments.grantee, privilege, target) for privilege in arguments.privileges]
            if verb == "add":
                store.add_grants(*grants)
            else:
                for grant in grants:
                    store.remove_grant(grant)


def _checked(arguments: argparse.Namespace, directory: Directory) -> str:
    principal = Principal(arguments.principal, frozenset(arguments.role))
    try:
        GrantAuthorizer(DirectorySource.of(directory)).check(principal, arguments.privilege, _target(arguments))
    except ForbiddenError:
        return "denied: the target can be listed, and the answer is 403"
    except NoSuchObjectError:
        return "denied: the target cannot be listed, and the answer is 404"
    return "allowed"


def _run_keys(arguments: argparse.Namespace, store: DirectoryStore) -> Iterator[str]:
    match arguments.verb:
        case "list":
            yield from store.signing_keys()
        case "rotate":
            yield store.rotate_signing_key()
        case "remove":
            store.remove_signing_key(arguments.id)


def _target(arguments: argparse.Namespace) -> Target:
    """The target that the options name."""
    namespace = parse_namespace(arguments.namespace) if arguments.namespace else ()
    name = arguments.table or arguments.view
    if (namespace and not arguments.warehouse) or (name and not namespace):
        raise InvalidInputError("--namespace needs --warehouse, and --table and --view need --namespace")
    kind = Kind.VIEW if arguments.view else Kind.TABLE
    return Target(arguments.warehouse or "", namespace, name, kind)


def _read(store: DirectoryStore) -> Directory:
    loaded = store.load()
    assert loaded is not None, "nothing is held that could be the same"
    return loaded[1]
