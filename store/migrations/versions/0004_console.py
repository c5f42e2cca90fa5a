"""Who may log in, tokens of programs, several reviewers of one correction, saved filters, and the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Nine tables."""
    op.create_table(
        "audit",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_project_seq", "audit", ["project", "seq"], unique=False)
    op.create_table(
        "claims",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("correction_id", sa.String(length=24), nullable=False),
        sa.Column("reviewer", sa.String(), nullable=False),
        sa.Column("taken_us", sa.BigInteger(), nullable=False),
        sa.Column("until_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project", "correction_id", "reviewer", name=op.f("pk_claims")),
    )
    op.create_table(
        "login_links",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(length=24), nullable=True),
        sa.Column("until_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_login_links")),
    )
    op.create_table(
        "logins",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(length=24), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("until_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_logins")),
    )
    op.create_index(op.f("ix_logins_user_id"), "logins", ["user_id"], unique=False)
    op.create_table(
        "opinions",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("correction_id", sa.String(length=24), nullable=False),
        sa.Column("reviewer", sa.String(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("blind", sa.Boolean(), nullable=False),
        sa.Column("decides", sa.Boolean(), nullable=False),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_opinions")),
    )
    op.create_index("ix_opinions_at", "opinions", ["project", "at_us"], unique=False)
    op.create_index("ix_opinions_correction", "opinions", ["project", "correction_id"], unique=False)
    op.create_table(
        "review_plans",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("correction_id", sa.String(length=24), nullable=False),
        sa.Column("reviewers", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("project", "correction_id", name=op.f("pk_review_plans")),
    )
    op.create_table(
        "saved_filters",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("shared", sa.Boolean(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_saved_filters")),
        sa.UniqueConstraint("project", "owner", "name", name=op.f("uq_saved_filters_project")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("until_us", sa.BigInteger(), nullable=True),
        sa.Column("used_us", sa.BigInteger(), nullable=True),
        sa.Column("revoked_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_tokens_digest")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("password", sa.String(), nullable=True),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("project", "name", name=op.f("uq_users_project")),
    )
