"""The tables, described once. What a query filters on is a column; JSON is read whole, and never filtered.

Text of people stands in `bodies` alone, so that erasing someone touches one table.
Times are integers: microseconds since 1970 UTC.
"""

import json
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
    literal_column,
)
from sqlalchemy.types import TypeDecorator

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Sequence = BigInteger().with_variant(Integer, "sqlite")
"""An autoincrementing key: SQLite only numbers a column declared INTEGER."""


class JsonText(TypeDecorator[Any]):
    """JSON kept as ASCII text: neither database can choke on a value inside it, and neither can filter on it."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


traces = Table(
    "traces",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("source", String, nullable=False),
    Column("external_id", String, nullable=False),
    Column("started_us", BigInteger),
    Column("started_ns", Integer, nullable=False),
    Column("ended_us", BigInteger),
    Column("name", String),
    Column("session", String),
    Column("user", String),
    Column("tenant", String),
    Column("channel", String),
    Column("status", String, nullable=False),
    Column("model", String),
    Column("release", String),
    Column("app_version", String),
    Column("prompt_version", String),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("cost_usd", Float),
    Column("digest", String(20), nullable=False),
    Index("ix_traces_project_started", "project", "started_us"),
    Index("ix_traces_project_user", "project", "user", "started_us"),
    Index("ix_traces_session", "session"),
)

spans = Table(
    "spans",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("source", String, nullable=False),
    Column("trace_id", String(24), nullable=False, index=True),
    Column("trace_external_id", String, nullable=False),
    Column("external_id", String, nullable=False),
    Column("parent_external_id", String),
    Column("kind", String, nullable=False),
    Column("name", String),
    Column("position", Integer, nullable=False),
    Column("started_us", BigInteger),
    Column("started_ns", Integer, nullable=False),
    Column("ended_us", BigInteger),
    Column("status", String, nullable=False),
    Column("error_type", String),
    Column("tool_call_id", String),
    Column("model", String),
    Column("confidence", Float),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("cost_usd", Float),
    Column("digest", String(20), nullable=False),
    Index("ix_spans_external_id", "external_id"),
)

feedback = Table(
    "feedback",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("source", String, nullable=False),
    Column("trace_id", String(24), nullable=False, index=True),
    Column("trace_external_id", String, nullable=False),
    Column("external_id", String, nullable=False),
    Column("span_external_id", String),
    Column("name", String, nullable=False),
    Column("score", Float),
    Column("label", String),
    Column("source_kind", String, nullable=False),
    Column("principal", String),
    Column("given_us", BigInteger),
    Column("digest", String(20), nullable=False),
)

parked = func.substr(feedback.c.trace_external_id, 1, 1) == literal_column("'?'")
"""Whether feedback waits for its trace (`store.addresses`); few rows do, so that their index is small."""
Index(
    "ix_feedback_parked", feedback.c.project, feedback.c.trace_external_id, sqlite_where=parked, postgresql_where=parked
)

bodies = Table(
    "bodies",
    metadata,
    Column("id", String, primary_key=True),
    Column("project", String, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

arrivals = Table(
    "arrivals",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("project", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("trace_id", String(24), nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Index("ix_arrivals_project_seq", "project", "seq"),
    Index("ix_arrivals_trace", "trace_id", "seq"),
    sqlite_autoincrement=True,
)

cursors = Table(
    "cursors",
    metadata,
    Column("project", String),
    Column("name", String),
    Column("seq", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "name"),
)

quarantine = Table(
    "quarantine",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("path", String, nullable=False),
    Column("line", BigInteger),
    Column("reason", String, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("origin", JsonText),
)

erased = Table(
    "erased",
    metadata,
    Column("project", String),
    Column("trace_id", String(24)),
    Column("at_us", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "trace_id"),
)

signals = Table(
    "signals",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("trace_id", String(24), nullable=False, index=True),
    Column("detector", String, nullable=False),
    Column("detector_version", Integer, nullable=False),
    Column("weight", Float, nullable=False),
    Column("at_us", BigInteger),
    Column("span_id", String(24)),
    Column("feedback_id", String(24)),
    Column("detail", String, nullable=False),
)

failures = Table(
    "failures",
    metadata,
    Column("id", String(25), primary_key=True),
    Column("project", String, nullable=False),
    Column("trace_id", String(24), nullable=False, unique=True),
    Column("picked_us", BigInteger, nullable=False),
    Column("probability", Float, nullable=False),
    Column("q", Float, nullable=False),
    Column("span_id", String(24)),
    Column("source", String, nullable=False),
    Column("authority", Boolean, nullable=False),
    Column("fingerprint", JsonText),
    Column("cluster_id", String(24)),
    Column("withdrawn", Boolean, nullable=False),
    Index("ix_failures_project_cluster", "project", "cluster_id"),
)

clusters = Table(
    "clusters",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False, index=True),
    Column("name", String, nullable=False),
    Column("fingerprint", JsonText, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("no_single_place", Boolean, nullable=False),
    Column("changed_us", BigInteger, nullable=False),
)

cluster_aliases = Table(
    "cluster_aliases",
    metadata,
    Column("project", String),
    Column("fingerprint_version", Integer),
    Column("fingerprint", String(20)),
    Column("cluster_id", String(24), nullable=False, index=True),
    PrimaryKeyConstraint("project", "fingerprint_version", "fingerprint"),
)

corrections = Table(
    "corrections",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("cluster_id", String(24), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("state", String, nullable=False),
    Column("target", String),
    Column("created_us", BigInteger, nullable=False),
    UniqueConstraint("cluster_id", "attempt"),
    Index("ix_corrections_project_state", "project", "state"),
)

routes = Table(
    "routes",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("correction_id", String(24), nullable=False, index=True),
    Column("cluster_id", String(24), nullable=False, index=True),
    Column("decided_us", BigInteger, nullable=False),
    Column("target", String),
    Column("certified", Boolean, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("router", String, nullable=False),
    Column("decision", JsonText, nullable=False),
)

reviews = Table(
    "reviews",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("correction_id", String(24), nullable=False, index=True),
    Column("verdict", String, nullable=False),
    Column("target", String),
    Column("reason", Text, nullable=False),
    Column("reviewer", String, nullable=False),
    Column("authority", Boolean, nullable=False),
    Column("at_us", BigInteger, nullable=False),
)

versions = Table(
    "versions",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("target", String, nullable=False),
    Column("model", String),
    Column("content", JsonText, nullable=False),
    Column("parent", String(24)),
    Column("created_us", BigInteger, nullable=False),
)

releases = Table(
    "releases",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("number", Integer, nullable=False),
    Column("context", String(24), nullable=False),
    Column("tooling", String(24), nullable=False),
    Column("memory", BigInteger, nullable=False),
    Column("models", JsonText, nullable=False),
    Column("parent", String(24)),
    Column("actor", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    UniqueConstraint("project", "number"),
)

live = Table(
    "live",
    metadata,
    Column("project", String, primary_key=True),
    Column("release_id", String(24), nullable=False),
    Column("moved_us", BigInteger, nullable=False),
)

changes = Table(
    "changes",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("correction_id", String(24), nullable=False, index=True),
    Column("target", String, nullable=False),
    Column("before", String, nullable=False),
    Column("after", String, nullable=False, index=True),
    Column("release_id", String(24), nullable=False, index=True),
    Column("applied_us", BigInteger, nullable=False),
    Column("actor", String, nullable=False),
    Column("probation", Boolean, nullable=False),
    Column("state", String, nullable=False),
)

facts = Table(
    "facts",
    metadata,
    Column("project", String),
    Column("position", BigInteger),
    Column("verb", String, nullable=False),
    Column("fact_id", String, nullable=False),
    Column("scope", String, nullable=False),
    Column("scope_id", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("predicate", String, nullable=False),
    Column("source", String, nullable=False),
    Column("authority", Boolean, nullable=False),
    Column("valid_from_us", BigInteger),
    Column("ttl_s", BigInteger),
    Column("supersedes", String),
    Column("depends_on", JsonText),
    Column("at_us", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "position"),
    Index("ix_facts_scope", "project", "scope", "scope_id", "position"),
    Index("ix_facts_fact", "project", "fact_id", "position"),
)

dataset_rows = Table(
    "dataset_rows",
    metadata,
    Column("project", String),
    Column("model", String),
    Column("id", String(24)),
    Column("label", String, nullable=False),
    Column("source", String, nullable=False),
    Column("authority", Boolean, nullable=False),
    Column("trace_id", String(24), nullable=False, index=True),
    Column("span_id", String(24), nullable=False),
    Column("correction_id", String(24), nullable=False, index=True),
    Column("weight", Float, nullable=False),
    Column("at_us", BigInteger),
    PrimaryKeyConstraint("project", "model", "id"),
)

retrains = Table(
    "retrains",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("model", String, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("decision", String, nullable=False),
    Column("arm", String),
    Column("version", String(24), index=True),
    Column("data_digest", String(64)),
    Column("record", JsonText, nullable=False),
    Index("ix_retrains_project_at", "project", "at_us"),
)

holds = Table(
    "holds",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("change_id", String(24), nullable=False, unique=True),
    Column("cluster_id", String(24), nullable=False, index=True),
    Column("state", String, nullable=False),
    Column("baseline", Float),
    Column("exposures", Integer, nullable=False),
    Column("recurrences", Integer, nullable=False),
    Column("needed", Integer),
    Column("since_us", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
)

replays = Table(
    "replays",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("correction_id", String(24), nullable=False, index=True),
    Column("digest", String(64), nullable=False),
    Column("release_id", String(24), nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("hook", String, nullable=False),
    Column("verdict", String, nullable=False),
    Column("sentence", Text, nullable=False),
    Column("numbers", JsonText, nullable=False),
    Column("cost_usd", Float, nullable=False),
    Column("seconds", Float, nullable=False),
)

replay_results = Table(
    "replay_results",
    metadata,
    Column("replay_id", String(24)),
    Column("trace_id", String(24)),
    Column("arm", String),
    Column("repeat", Integer),
    Column("role", String, nullable=False),
    Column("outcome", String, nullable=False),
    Column("why", String, nullable=False),
    Column("cost_usd", Float),
    Column("seconds", Float, nullable=False),
    PrimaryKeyConstraint("replay_id", "trace_id", "arm", "repeat"),
)

ledger = Table(
    "ledger",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("project", String, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("actor", String, nullable=False),
    Column("event", String, nullable=False),
    Column("subject", String, nullable=False, index=True),
    Column("reason", Text, nullable=False),
    Column("detail", JsonText, nullable=False),
    sqlite_autoincrement=True,
)

links = Table(
    "links",
    metadata,
    Column("project", String),
    Column("cause", String),
    Column("effect", String),
    PrimaryKeyConstraint("project", "cause", "effect"),
    Index("ix_links_effect", "project", "effect"),
)

leases = Table(
    "leases",
    metadata,
    Column("project", String),
    Column("name", String),
    Column("holder", String, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("beat_us", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "name"),
)

turns = Table(
    "turns",
    metadata,
    Column("id", String(24), primary_key=True),
    Column("project", String, nullable=False),
    Column("started_us", BigInteger, nullable=False),
    Column("ended_us", BigInteger),
    Column("actor", String, nullable=False),
    Column("state", String, nullable=False),
    Column("summary", JsonText),
    Index("ix_turns_project_started", "project", "started_us"),
)
