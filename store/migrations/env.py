"""What Alembic runs: the pending steps, on the connection it is handed."""

from alembic import context

from store.console_tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
