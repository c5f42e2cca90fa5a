"""What is remembered: tables, migrations, and one query function a question.

Imports nothing of the other folders. `store.records` and `store.errors` import no SQLAlchemy, so that
`models` can be pure.
"""
