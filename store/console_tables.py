"""The console's tables: who may come in, who is at what, what each reviewer thought, and what was done to access.

`metadata` here has these tables and all of `store.tables`.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from store.tables import JsonText, Sequence, metadata

__all__ = [
    "audit",
    "claims",
    "login_links",
    "logins",
    "metadata",
    "opinions",
    "review_plans",
    "saved_filters",
    "tokens",
    "users",
]

users = Table(
    "users",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("name", String, nullable=False),
    Column("role", String, nullable=False),
    Column("password", String),
    Column("enabled", Boolean, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    UniqueConstraint("project", "name"),
)

logins = Table(
    "logins",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("project", String, nullable=False),
    Column("user_id", String(24), nullable=False, index=True),
    Column("created_us", BigInteger, nullable=False),
    Column("until_us", BigInteger, nullable=False),
)

login_links = Table(
    "login_links",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("project", String, nullable=False),
    Column("user_id", String(24)),
    Column("until_us", BigInteger, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("name", String, nullable=False),
    Column("digest", String(64), nullable=False, unique=True),
    Column("scope", String, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("created_by", String, nullable=False),
    Column("until_us", BigInteger),
    Column("used_us", BigInteger),
    Column("revoked_us", BigInteger),
)

claims = Table(
    "claims",
    metadata,
    Column("project", String),
    Column("correction_id", String(24)),
    Column("reviewer", String),
    Column("taken_us", BigInteger, nullable=False),
    Column("until_us", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "correction_id", "reviewer"),
)

opinions = Table(
    "opinions",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("correction_id", String(24), nullable=False),
    Column("reviewer", String, nullable=False),
    Column("verdict", String, nullable=False),
    Column("target", String),
    Column("reason", Text, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("seconds", Float),
    Column("blind", Boolean, nullable=False),
    Column("decides", Boolean, nullable=False),
    Column("open", Boolean, nullable=False),
    Index("ix_opinions_correction", "project", "correction_id"),
    Index("ix_opinions_at", "project", "at_us"),
)

review_plans = Table(
    "review_plans",
    metadata,
    Column("project", String),
    Column("correction_id", String(24)),
    Column("reviewers", Integer, nullable=False),
    PrimaryKeyConstraint("project", "correction_id"),
)

saved_filters = Table(
    "saved_filters",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("owner", String, nullable=False),
    Column("name", String, nullable=False),
    Column("query", Text, nullable=False),
    Column("shared", Boolean, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    UniqueConstraint("project", "owner", "name"),
)

audit = Table(
    "audit",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("project", String, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("actor", String, nullable=False),
    Column("action", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("detail", JsonText, nullable=False),
    Column("address", String, nullable=False),
    Index("ix_audit_project_seq", "project", "seq"),
    sqlite_autoincrement=True,
)
