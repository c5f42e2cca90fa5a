"""Tombstones of traces whose text was erased."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """One table."""
    op.create_table(
        "erased",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("trace_id", sa.String(length=24), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project", "trace_id", name=op.f("pk_erased")),
    )
