"""A fact names the facts it was concluded from, and is found by its name."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """One column and one index."""
    op.add_column("facts", sa.Column("depends_on", sa.Text()))
    op.create_index("ix_facts_fact", "facts", ["project", "fact_id", "position"])
