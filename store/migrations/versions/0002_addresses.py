"""Feedback that names a span or a conversation finds its trace: the indexes that this takes."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

PARKED = sa.text("substr(trace_external_id, 1, 1) = '?'")


def upgrade() -> None:
    """Three indexes."""
    op.create_index("ix_spans_external_id", "spans", ["external_id"])
    op.create_index("ix_traces_session", "traces", ["session"])
    op.create_index(
        "ix_feedback_parked",
        "feedback",
        ["project", "trace_external_id"],
        sqlite_where=PARKED,
        postgresql_where=PARKED,
    )
