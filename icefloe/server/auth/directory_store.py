"""Decides how principals, credentials, roles, grants and signing keys are kept in the server's database, and changed there."""

import secrets
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from icefloe.catalog import Database, TakenError, parse_namespace, show
from icefloe.errors import AlreadyExistsError, NoSuchObjectError
from icefloe.server.auth.credentials import Credential, check_local_name, new_credential
from icefloe.server.auth.directory import Directory
from icefloe.server.auth.grants import ROLE, Grant, check_grantee, way_up
from icefloe.server.auth.protocols import Kind, Privilege, Target
from icefloe.server.tables import AUTH_VERSION, CREDENTIALS, GRANTS, PRINCIPALS, ROLE_MEMBERS, SIGNING_KEYS

_ONLY_ROW = 1


class DirectoryStore:
    """Principals, credentials, roles and grants of a database that has the server's tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, held: int | None = None) -> tuple[int, Directory] | None:
        """The version and the directory, or None if the version is still the one that is held."""
        rows = self._database.read(sa.select(AUTH_VERSION.c.version))
        # The version is read first: what changes meanwhile has a later one, and is seen the next time.
        version = rows[0][0] if rows else 0
        return None if version == held else (version, self._read())

    def _read(self) -> Directory:
        read = self._database.read
        return Directory(
            {row.name: row.is_enabled for row in read(sa.select(PRINCIPALS))},
            {row.id: Credential(*row) for row in read(sa.select(*(CREDENTIALS.c[name] for name in _CREDENTIAL)))},
            frozenset((row.role, row.member) for row in read(sa.select(ROLE_MEMBERS))),
            frozenset(_grant(row) for row in read(sa.select(GRANTS))),
        )

    def add_principal(self, name: str) -> None:
        """Add a principal of this server."""
        row = {"name": check_local_name(name), "is_enabled": True, "created_at_ms": _now_ms()}

        def insert(connection: Connection) -> None:
            if connection.execute(sa.select(PRINCIPALS.c.name).where(PRINCIPALS.c.name == name)).first() is not None:
                raise AlreadyExistsError(f"principal {name!r} already exists")
            connection.execute(sa.insert(PRINCIPALS).values(row))

        self._write(insert)

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Let a principal in, or keep it out; one of an identity provider, too."""

        def change(connection: Connection) -> None:
            statement = sa.update(PRINCIPALS).where(PRINCIPALS.c.name == name).values(is_enabled=enabled)
            if not connection.execute(statement).rowcount:
                row = {"name": name, "is_enabled": enabled, "created_at_ms": _now_ms()}
                connection.execute(sa.insert(PRINCIPALS).values(row))

        if ":" not in name and name not in self._read().principals:
            raise NoSuchObjectError(f"no principal {name!r}")
        self._write(change)

    def remove_principal(self, name: str) -> None:
        """Remove a principal, its tokens, its roles and what was granted to it."""
        grantee = check_grantee(f"principal:{name}")

        def remove(connection: Connection) -> int:
            connection.execute(sa.delete(CREDENTIALS).where(CREDENTIALS.c.principal == name))
            connection.execute(sa.delete(ROLE_MEMBERS).where(ROLE_MEMBERS.c.member == grantee))
            connection.execute(sa.delete(GRANTS).where(GRANTS.c.grantee == grantee))
            return connection.execute(sa.delete(PRINCIPALS).where(PRINCIPALS.c.name == name)).rowcount

        self._changed(remove, f"no principal {name!r}")

    def add_token(self, principal: str, label: str, lifetime_seconds: float | None = None) -> tuple[Credential, str]:
        """A new API token of a principal: what is kept of it, and its text, which is not."""
        credential, token = new_credential(principal, label, lifetime_seconds)

        def insert(connection: Connection) -> int:
            known = connection.execute(sa.select(PRINCIPALS.c.name).where(PRINCIPALS.c.name == principal)).all()
            if known:
                connection.execute(sa.insert(CREDENTIALS).values(asdict(credential)))
            return len(known)

        self._changed(insert, f"no principal {principal!r}")
        return credential, token

    def revoke_token(self, number: str) -> None:
        """End a token by its id, and with it the short-lived tokens that were issued for it."""
        statement = sa.update(CREDENTIALS).where(CREDENTIALS.c.id == number).values(revoked_at_ms=_now_ms())
        self._changed(lambda connection: connection.execute(statement).rowcount, f"no token {number!r}")

    def add_member(self, role: str, member: str) -> None:
        """Give a role to a principal, or to everybody who has another role."""
        check_grantee(ROLE + role)
        self._insert_once(ROLE_MEMBERS, [{"role": role, "member": check_grantee(member)}])

    def remove_member(self, role: str, member: str) -> None:
        """Take a role away again."""
        statement = sa.delete(ROLE_MEMBERS).where(ROLE_MEMBERS.c.role == role, ROLE_MEMBERS.c.member == member)
        self._changed(lambda connection: connection.execute(statement).rowcount, f"{member} has no role {role!r} here")

    def add_grants(self, *grants: Grant) -> None:
        """Allow something; what is allowed already stays so."""
        self._insert_once(GRANTS, [_grant_row(grant) for grant in grants])

    def remove_grant(self, grant: Grant) -> None:
        """Take back exactly this grant."""
        statement = sa.delete(GRANTS).where(_is_row(GRANTS, _grant_row(grant)))
        self._changed(lambda connection: connection.execute(statement).rowcount, f"there is no grant of {grant}")

    def move_grants(self, source: Target, destination: Target) -> None:
        """What was granted on one table or view is granted on another one, which has nothing from before."""
        values = _target_row(destination)

        def move(connection: Connection) -> int:
            connection.execute(sa.delete(GRANTS).where(_is_row(GRANTS, values)))
            return connection.execute(
                sa.update(GRANTS).where(_is_row(GRANTS, _target_row(source))).values(values)
            ).rowcount

        if any(grant.target in (source, destination) for grant in self._read().grants):
            self._write(move)

    def remove_grants_on(self, target: Target) -> None:
        """Forget what was granted on a target, and on all in it."""
        rows = [_grant_row(grant) for grant in self._read().grants if target in way_up(grant.target)]

        def remove(connection: Connection) -> None:
            for row in rows:
                connection.execute(sa.delete(GRANTS).where(_is_row(GRANTS, row)))

        if rows:
            self._write(remove)

    def signing_keys(self) -> dict[str, bytes]:
        """The keys that sign short-lived tokens, by id, newest first; the first server makes one."""
        keys = self._signing_keys()
        if not keys:
            self.rotate_signing_key(only_if_none=True)
            keys = self._signing_keys()
        return keys

    def _signing_keys(self) -> dict[str, bytes]:
        newest_first = sa.select(SIGNING_KEYS).order_by(SIGNING_KEYS.c.created_at_ms.desc(), SIGNING_KEYS.c.id)
        return {row.id: bytes.fromhex(row.secret) for row in self._database.read(newest_first)}

    def rotate_signing_key(self, *, only_if_none: bool = False) -> str:
        """Sign with a new key from now on; tokens of older keys stay good until they expire. The id of the new key."""
        row = {"id": secrets.token_hex(8), "secret": secrets.token_hex(32), "created_at_ms": _now_ms()}

        def insert(connection: Connection) -> None:
            if only_if_none and connection.execute(sa.select(SIGNING_KEYS.c.id)).first() is not None:
                return
            connection.execute(sa.insert(SIGNING_KEYS).values(row))

        self._write(insert)
        return str(row["id"])

    def remove_signing_key(self, number: str) -> None:
        """Forget a key: tokens that it signed are refused from now on."""
        statement = sa.delete(SIGNING_KEYS).where(SIGNING_KEYS.c.id == number)
        self._changed(lambda connection: connection.execute(statement).rowcount, f"no signing key {number!r}")

    def _insert_once(self, table: sa.Table, rows: list[dict[str, str]]) -> None:
        def insert(connection: Connection) -> None:
            for row in rows:
                if connection.execute(sa.select(table).where(_is_row(table, row))).first() is None:
                    connection.execute(sa.insert(table).values(row))

        self._write(insert)

    def _changed(self, work: Callable[[Connection], int], problem: str) -> None:
        def change(connection: Connection) -> None:
            if not work(connection):
                raise NoSuchObjectError(problem)

        self._write(change)

    def _write(self, work: Callable[[Connection], object]) -> None:
        """Do the work in one transaction that counts up the version first, so that changes come one after the other."""

        def count_and_work(connection: Connection) -> None:
            counted = (
                sa.update(AUTH_VERSION).where(AUTH_VERSION.c.id == _ONLY_ROW).values(version=AUTH_VERSION.c.version + 1)
            )
            if not connection.execute(counted).rowcount:
                connection.execute(sa.insert(AUTH_VERSION).values(id=_ONLY_ROW, version=1))
            work(connection)

        try:
            self._database.write(count_and_work)
        except TakenError:
            # Another one made the first row of all at the same time; now there is one to count up.
            self._database.write(count_and_work)


_CREDENTIAL = tuple(Credential.__dataclass_fields__)


def _is_row(table: sa.Table, row: dict[str, str]) -> sa.ColumnElement[bool]:
    return sa.and_(*(table.c[column] == value for column, value in row.items()))


def _grant_row(grant: Grant) -> dict[str, str]:
    return {"grantee": grant.grantee, "privilege": str(grant.privilege), **_target_row(grant.target)}


def _target_row(target: Target) -> dict[str, str]:
    return {
        "kind": str(target.kind),
        "warehouse": target.warehouse,
        "namespace": show(target.namespace),
        "name": target.name or "",
    }


def _grant(row: Any) -> Grant:
    namespace = parse_namespace(row.namespace) if row.namespace else ()
    return Grant(
        row.grantee, Privilege(row.privilege), Target(row.warehouse, namespace, row.name or None, Kind(row.kind))
    )


def _now_ms() -> int:
    return int(time.time() * 1000)
