"""Replays and what each case answered."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Two tables."""
    op.create_table(
        "replays",
        sa.Column("id", sa.String(24), nullable=False),
        sa.Column("project", sa.String, nullable=False),
        sa.Column("correction_id", sa.String(24), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("release_id", sa.String(24), nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
        sa.Column("hook", sa.String, nullable=False),
        sa.Column("verdict", sa.String, nullable=False),
        sa.Column("sentence", sa.Text, nullable=False),
        sa.Column("numbers", sa.Text, nullable=False),
        sa.Column("cost_usd", sa.Float, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_replays"),
    )
    op.create_index("ix_replays_correction_id", "replays", ["correction_id"])
    op.create_table(
        "replay_results",
        sa.Column("replay_id", sa.String(24), nullable=False),
        sa.Column("trace_id", sa.String(24), nullable=False),
        sa.Column("arm", sa.String, nullable=False),
        sa.Column("repeat", sa.Integer, nullable=False),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("outcome", sa.String, nullable=False),
        sa.Column("why", sa.String, nullable=False),
        sa.Column("cost_usd", sa.Float),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("replay_id", "trace_id", "arm", "repeat", name="pk_replay_results"),
    )
