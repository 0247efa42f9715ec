"""Decides which tables the server keeps in its own database, beside those of catalogs; migrations create and change them.

A namespace is kept as a text that `icefloe.catalog.parse_namespace` reads, times are milliseconds since 1970 in UTC.
"""

import sqlalchemy as sa

OWN_TABLES = sa.MetaData()
"""All tables of the server; their names begin with `icefloe_`."""

_NAME = 255
_TEXT = 1000

PRINCIPALS = sa.Table(
    "icefloe_principals",
    OWN_TABLES,
    sa.Column("name", sa.String(_NAME), primary_key=True),
    sa.Column("is_enabled", sa.Boolean, nullable=False),
    sa.Column("created_at_ms", sa.BigInteger, nullable=False),
)

CREDENTIALS = sa.Table(
    "icefloe_credentials",
    OWN_TABLES,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("principal", sa.String(_NAME), nullable=False, index=True),
    sa.Column("label", sa.String(_NAME), nullable=False),
    sa.Column("secret_sha256", sa.String(64), nullable=False),
    sa.Column("created_at_ms", sa.BigInteger, nullable=False),
    sa.Column("expires_at_ms", sa.BigInteger, nullable=True),
    sa.Column("revoked_at_ms", sa.BigInteger, nullable=True),
)

ROLE_MEMBERS = sa.Table(
    "icefloe_role_members",
    OWN_TABLES,
    sa.Column("role", sa.String(_NAME), primary_key=True),
    sa.Column("member", sa.String(_NAME + 10), primary_key=True),
)

GRANTS = sa.Table(
    "icefloe_grants",
    OWN_TABLES,
    sa.Column("grantee", sa.String(_NAME + 10), primary_key=True),
    sa.Column("privilege", sa.String(16), primary_key=True),
    sa.Column("kind", sa.String(16), primary_key=True),
    sa.Column("warehouse", sa.String(_NAME), primary_key=True),
    sa.Column("namespace", sa.String(_TEXT), primary_key=True),
    sa.Column("name", sa.String(_NAME), primary_key=True),
)

SIGNING_KEYS = sa.Table(
    "icefloe_signing_keys",
    OWN_TABLES,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("secret", sa.String(_NAME), nullable=False),
    sa.Column("created_at_ms", sa.BigInteger, nullable=False),
)

AUTH_VERSION = sa.Table(
    "icefloe_auth_version",
    OWN_TABLES,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.BigInteger, nullable=False),
)
"""One row, which every change of the tables above counts up, so that servers see that they must read again."""

ANSWERS = sa.Table(
    "icefloe_answers",
    OWN_TABLES,
    sa.Column("idempotency_key", sa.String(36), primary_key=True),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("replay", sa.String(16), nullable=False),
    sa.Column("status", sa.Integer, nullable=False),
    sa.Column("location", sa.String(_TEXT), nullable=True),
    sa.Column("body", sa.Text, nullable=True),
    sa.Column("created_at_ms", sa.BigInteger, nullable=False, index=True),
)
"""What was answered to a request with a key: a body, or the metadata location that it is made from again.

Of a refusal, which has a status, `location` is the type, and `body` the text.
"""

DROPPED = sa.Table(
    "icefloe_dropped",
    OWN_TABLES,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("warehouse", sa.String(_NAME), nullable=False),
    sa.Column("namespace", sa.String(_TEXT), nullable=False),
    sa.Column("name", sa.String(_NAME), nullable=False),
    sa.Column("location", sa.String(_TEXT), nullable=False),
    sa.Column("principal", sa.String(_NAME), nullable=False),
    sa.Column("is_purged", sa.Boolean, nullable=False),
    sa.Column("dropped_at_ms", sa.BigInteger, nullable=False, index=True),
)
"""Tables that were dropped and can be had back for some time; then their files go, if that was asked for."""

PROTECTED = sa.Table(
    "icefloe_protected",
    OWN_TABLES,
    sa.Column("warehouse", sa.String(_NAME), primary_key=True),
    sa.Column("namespace", sa.String(_TEXT), primary_key=True),
    sa.Column("name", sa.String(_NAME), primary_key=True),
)
"""Tables, views and, with an empty name, namespaces that cannot be dropped."""

EVENTS = sa.Table(
    "icefloe_events",
    OWN_TABLES,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("warehouse", sa.String(_NAME), nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_attempt_at_ms", sa.BigInteger, nullable=False, index=True),
    sa.Column("created_at_ms", sa.BigInteger, nullable=False),
)
"""Events that a webhook has not taken yet."""
