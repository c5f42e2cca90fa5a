"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Every table."""
    op.create_table(
        "arrivals",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("trace_id", sa.String(length=24), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_arrivals")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_arrivals_project_seq", "arrivals", ["project", "seq"], unique=False)
    op.create_index("ix_arrivals_trace", "arrivals", ["trace_id", "seq"], unique=False)
    op.create_table(
        "bodies",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bodies")),
    )
    op.create_table(
        "changes",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("correction_id", sa.String(length=24), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("before", sa.String(), nullable=False),
        sa.Column("after", sa.String(), nullable=False),
        sa.Column("release_id", sa.String(length=24), nullable=False),
        sa.Column("applied_us", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("probation", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_changes")),
    )
    op.create_index(op.f("ix_changes_after"), "changes", ["after"], unique=False)
    op.create_index(op.f("ix_changes_correction_id"), "changes", ["correction_id"], unique=False)
    op.create_index(op.f("ix_changes_release_id"), "changes", ["release_id"], unique=False)
    op.create_table(
        "cluster_aliases",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("fingerprint_version", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(length=20), nullable=False),
        sa.Column("cluster_id", sa.String(length=24), nullable=False),
        sa.PrimaryKeyConstraint("project", "fingerprint_version", "fingerprint", name=op.f("pk_cluster_aliases")),
    )
    op.create_index(op.f("ix_cluster_aliases_cluster_id"), "cluster_aliases", ["cluster_id"], unique=False)
    op.create_table(
        "clusters",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("no_single_place", sa.Boolean(), nullable=False),
        sa.Column("changed_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_clusters")),
    )
    op.create_index(op.f("ix_clusters_project"), "clusters", ["project"], unique=False)
    op.create_table(
        "corrections",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("cluster_id", sa.String(length=24), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=True),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_corrections")),
        sa.UniqueConstraint("cluster_id", "attempt", name=op.f("uq_corrections_cluster_id")),
    )
    op.create_index("ix_corrections_project_state", "corrections", ["project", "state"], unique=False)
    op.create_table(
        "cursors",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project", "name", name=op.f("pk_cursors")),
    )
    op.create_table(
        "dataset_rows",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("authority", sa.Boolean(), nullable=False),
        sa.Column("trace_id", sa.String(length=24), nullable=False),
        sa.Column("span_id", sa.String(length=24), nullable=False),
        sa.Column("correction_id", sa.String(length=24), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("project", "model", "id", name=op.f("pk_dataset_rows")),
    )
    op.create_index(op.f("ix_dataset_rows_correction_id"), "dataset_rows", ["correction_id"], unique=False)
    op.create_index(op.f("ix_dataset_rows_trace_id"), "dataset_rows", ["trace_id"], unique=False)
    op.create_table(
        "facts",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("verb", sa.String(), nullable=False),
        sa.Column("fact_id", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("scope_id", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("predicate", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("authority", sa.Boolean(), nullable=False),
        sa.Column("valid_from_us", sa.BigInteger(), nullable=True),
        sa.Column("ttl_s", sa.BigInteger(), nullable=True),
        sa.Column("supersedes", sa.String(), nullable=True),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project", "position", name=op.f("pk_facts")),
    )
    op.create_index("ix_facts_scope", "facts", ["project", "scope", "scope_id", "position"], unique=False)
    op.create_table(
        "failures",
        sa.Column("id", sa.String(length=25), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("trace_id", sa.String(length=24), nullable=False),
        sa.Column("picked_us", sa.BigInteger(), nullable=False),
        sa.Column("probability", sa.Float(), nullable=False),
        sa.Column("q", sa.Float(), nullable=False),
        sa.Column("span_id", sa.String(length=24), nullable=True),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("authority", sa.Boolean(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("cluster_id", sa.String(length=24), nullable=True),
        sa.Column("withdrawn", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_failures")),
        sa.UniqueConstraint("trace_id", name=op.f("uq_failures_trace_id")),
    )
    op.create_index("ix_failures_project_cluster", "failures", ["project", "cluster_id"], unique=False)
    op.create_table(
        "feedback",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("trace_id", sa.String(length=24), nullable=False),
        sa.Column("trace_external_id", sa.String(), nullable=False),
        sa.Column("external_id", sa.String(), nullable=False),
        sa.Column("span_external_id", sa.String(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("label", sa.String(), nullable=True),
        sa.Column("source_kind", sa.String(), nullable=False),
        sa.Column("principal", sa.String(), nullable=True),
        sa.Column("given_us", sa.BigInteger(), nullable=True),
        sa.Column("digest", sa.String(length=20), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_feedback")),
    )
    op.create_index(op.f("ix_feedback_trace_id"), "feedback", ["trace_id"], unique=False)
    op.create_table(
        "holds",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("change_id", sa.String(length=24), nullable=False),
        sa.Column("cluster_id", sa.String(length=24), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("baseline", sa.Float(), nullable=True),
        sa.Column("exposures", sa.Integer(), nullable=False),
        sa.Column("recurrences", sa.Integer(), nullable=False),
        sa.Column("needed", sa.Integer(), nullable=True),
        sa.Column("since_us", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_holds")),
        sa.UniqueConstraint("change_id", name=op.f("uq_holds_change_id")),
    )
    op.create_index(op.f("ix_holds_cluster_id"), "holds", ["cluster_id"], unique=False)
    op.create_table(
        "leases",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("beat_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project", "name", name=op.f("pk_leases")),
    )
    op.create_table(
        "ledger",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_ledger")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_ledger_subject"), "ledger", ["subject"], unique=False)
    op.create_table(
        "links",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("cause", sa.String(), nullable=False),
        sa.Column("effect", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("project", "cause", "effect", name=op.f("pk_links")),
    )
    op.create_index("ix_links_effect", "links", ["project", "effect"], unique=False)
    op.create_table(
        "live",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("release_id", sa.String(length=24), nullable=False),
        sa.Column("moved_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project", name=op.f("pk_live")),
    )
    op.create_table(
        "quarantine",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("line", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quarantine")),
    )
    op.create_table(
        "releases",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("context", sa.String(length=24), nullable=False),
        sa.Column("tooling", sa.String(length=24), nullable=False),
        sa.Column("memory", sa.BigInteger(), nullable=False),
        sa.Column("models", sa.Text(), nullable=False),
        sa.Column("parent", sa.String(length=24), nullable=True),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_releases")),
        sa.UniqueConstraint("project", "number", name=op.f("uq_releases_project")),
    )
    op.create_table(
        "retrains",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("decision", sa.String(), nullable=False),
        sa.Column("arm", sa.String(), nullable=True),
        sa.Column("version", sa.String(length=24), nullable=True),
        sa.Column("data_digest", sa.String(length=64), nullable=True),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_retrains")),
    )
    op.create_index("ix_retrains_project_at", "retrains", ["project", "at_us"], unique=False)
    op.create_index(op.f("ix_retrains_version"), "retrains", ["version"], unique=False)
    op.create_table(
        "reviews",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("correction_id", sa.String(length=24), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("reviewer", sa.String(), nullable=False),
        sa.Column("authority", sa.Boolean(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reviews")),
    )
    op.create_index(op.f("ix_reviews_correction_id"), "reviews", ["correction_id"], unique=False)
    op.create_table(
        "routes",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("correction_id", sa.String(length=24), nullable=False),
        sa.Column("cluster_id", sa.String(length=24), nullable=False),
        sa.Column("decided_us", sa.BigInteger(), nullable=False),
        sa.Column("target", sa.String(), nullable=True),
        sa.Column("certified", sa.Boolean(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("router", sa.String(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_routes")),
    )
    op.create_index(op.f("ix_routes_cluster_id"), "routes", ["cluster_id"], unique=False)
    op.create_index(op.f("ix_routes_correction_id"), "routes", ["correction_id"], unique=False)
    op.create_table(
        "signals",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("trace_id", sa.String(length=24), nullable=False),
        sa.Column("detector", sa.String(), nullable=False),
        sa.Column("detector_version", sa.Integer(), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=True),
        sa.Column("span_id", sa.String(length=24), nullable=True),
        sa.Column("feedback_id", sa.String(length=24), nullable=True),
        sa.Column("detail", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_signals")),
    )
    op.create_index(op.f("ix_signals_trace_id"), "signals", ["trace_id"], unique=False)
    op.create_table(
        "spans",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("trace_id", sa.String(length=24), nullable=False),
        sa.Column("trace_external_id", sa.String(), nullable=False),
        sa.Column("external_id", sa.String(), nullable=False),
        sa.Column("parent_external_id", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=True),
        sa.Column("started_ns", sa.Integer(), nullable=False),
        sa.Column("ended_us", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("error_type", sa.String(), nullable=True),
        sa.Column("tool_call_id", sa.String(), nullable=True),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("confidence", sa.Float(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("digest", sa.String(length=20), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spans")),
    )
    op.create_index(op.f("ix_spans_trace_id"), "spans", ["trace_id"], unique=False)
    op.create_table(
        "traces",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("external_id", sa.String(), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=True),
        sa.Column("started_ns", sa.Integer(), nullable=False),
        sa.Column("ended_us", sa.BigInteger(), nullable=True),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("session", sa.String(), nullable=True),
        sa.Column("user", sa.String(), nullable=True),
        sa.Column("tenant", sa.String(), nullable=True),
        sa.Column("channel", sa.String(), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("release", sa.String(), nullable=True),
        sa.Column("app_version", sa.String(), nullable=True),
        sa.Column("prompt_version", sa.String(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("digest", sa.String(length=20), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_traces")),
    )
    op.create_index("ix_traces_project_started", "traces", ["project", "started_us"], unique=False)
    op.create_index("ix_traces_project_user", "traces", ["project", "user", "started_us"], unique=False)
    op.create_table(
        "turns",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.Column("ended_us", sa.BigInteger(), nullable=True),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_turns")),
    )
    op.create_index("ix_turns_project_started", "turns", ["project", "started_us"], unique=False)
    op.create_table(
        "versions",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("parent", sa.String(length=24), nullable=True),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_versions")),
    )
