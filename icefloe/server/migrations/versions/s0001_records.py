"""Answers by Idempotency-Key, dropped and protected tables, events; principals, credentials, roles, grants and keys."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None


def upgrade() -> None:
    """Make the tables."""
    _records()
    _access()


def _records() -> None:
    op.create_table(
        "icefloe_answers",
        sa.Column("idempotency_key", sa.String(36), primary_key=True),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("replay", sa.String(16), nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("location", sa.String(1000), nullable=True),
        sa.Column("body", sa.Text, nullable=True),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_icefloe_answers_created_at_ms", "icefloe_answers", ["created_at_ms"])
    op.create_table(
        "icefloe_dropped",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("warehouse", sa.String(255), nullable=False),
        sa.Column("namespace", sa.String(1000), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("location", sa.String(1000), nullable=False),
        sa.Column("principal", sa.String(255), nullable=False),
        sa.Column("is_purged", sa.Boolean, nullable=False),
        sa.Column("dropped_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_icefloe_dropped_dropped_at_ms", "icefloe_dropped", ["dropped_at_ms"])
    op.create_table(
        "icefloe_protected",
        sa.Column("warehouse", sa.String(255), primary_key=True),
        sa.Column("namespace", sa.String(1000), primary_key=True),
        sa.Column("name", sa.String(255), primary_key=True),
    )
    op.create_table(
        "icefloe_events",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("warehouse", sa.String(255), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_attempt_at_ms", sa.BigInteger, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_icefloe_events_next_attempt_at_ms", "icefloe_events", ["next_attempt_at_ms"])


def _access() -> None:
    op.create_table(
        "icefloe_principals",
        sa.Column("name", sa.String(255), primary_key=True),
        sa.Column("is_enabled", sa.Boolean, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "icefloe_credentials",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("principal", sa.String(255), nullable=False),
        sa.Column("label", sa.String(255), nullable=False),
        sa.Column("secret_sha256", sa.String(64), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=True),
        sa.Column("revoked_at_ms", sa.BigInteger, nullable=True),
    )
    op.create_index("ix_icefloe_credentials_principal", "icefloe_credentials", ["principal"])
    op.create_table(
        "icefloe_role_members",
        sa.Column("role", sa.String(255), primary_key=True),
        sa.Column("member", sa.String(265), primary_key=True),
    )
    op.create_table(
        "icefloe_grants",
        sa.Column("grantee", sa.String(265), primary_key=True),
        sa.Column("privilege", sa.String(16), primary_key=True),
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("warehouse", sa.String(255), primary_key=True),
        sa.Column("namespace", sa.String(1000), primary_key=True),
        sa.Column("name", sa.String(255), primary_key=True),
    )
    op.create_table(
        "icefloe_signing_keys",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("secret", sa.String(255), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "icefloe_auth_version",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
