"""What Alembic runs: the pending steps, on the connection it is handed."""

from alembic import context

from store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
