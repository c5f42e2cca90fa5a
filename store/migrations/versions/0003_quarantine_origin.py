"""How a rejected piece was read, so that it can be read again."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """The quarantine's `origin`."""
    op.add_column("quarantine", sa.Column("origin", sa.Text(), nullable=True))
