"""What a span says of its whole trace: who, which conversation, which version of what; and what is evaluation data."""

from typing import Any

from pydantic import JsonValue

from store.sources.attribute_set import AttributeSet
from store.sources.fields import as_text
from store.sources.held_apart import parted, plain_name, put
from store.sources.otel import Flat, RawSpan

_SESSION = ("gen_ai.conversation.id", "session.id", "langfuse.session.id", "langfuse.trace.session.id")
_USER = ("user.id", "enduser.id", "langfuse.user.id", "langfuse.trace.user.id", "gen_ai.user", "llm.user")
_TENANT = ("tenant.id", "tenant_id", "organization.id", "user.tenant.id")
_CHANNEL = ("filmroom.channel", "channel")
_VERSION = ("gen_ai.agent.version", "langfuse.release")
_PROMPT = (
    *("traceloop.prompt.version", "gen_ai.prompt.version", "llm.prompt_template.version"),
    *("langfuse.observation.prompt.version", "traceloop.prompt.version_hash", "gen_ai.prompt.name"),
)
_IN_METADATA = {
    "session": ("session_id", "thread_id", "conversation_id", "sessionId", "threadId", "conversationId"),
    "user": ("user_id", "userId"),
    "tenant": ("tenant_id", "organization_id", "tenantId"),
    "channel": ("channel",),
}
_CLAIMING = frozenset(
    name.partition(".")[0]
    for name in (*_SESSION, *_USER, *_TENANT, *_CHANNEL, *_VERSION, *_PROMPT, "metadata", "langfuse", "filmroom", "tag")
)
"""First words of the names that a claim may stand in."""
_NOISE = ("telemetry.", "process.", "host.", "os.", "container.", "k8s.", "cloud.", "service.instance.")
"""Resource attributes of machines, not of the program."""
_GOLD = ("expected_output", "expected", "reference", "reference_output", "ground_truth", "eval.case.expected")

_APART = frozenset(name.partition(".")[0] for name in (*_GOLD, "langfuse", "metadata", "traceloop"))
"""First words of the names that evaluation data may stand in."""


def claims_of(raw: RawSpan, attributes: AttributeSet) -> dict[str, Any]:
    """What this span says of its trace, as `store.assembled` reads it; without what it does not say."""
    if not raw.resource and not raw.dropped and not attributes.follows(_CLAIMING):
        return {}
    metadata = _metadata(attributes)
    resource = dict(raw.resource)
    told: dict[str, Any] = {
        "name": attributes.text("langfuse.trace.name"),
        "session": attributes.ident(*_SESSION) or _inside(metadata, "session"),
        "user": attributes.ident(*_USER) or _inside(metadata, "user"),
        "tenant": attributes.ident(*_TENANT) or _inside(metadata, "tenant"),
        "channel": attributes.text(*_CHANNEL) or _inside(metadata, "channel"),
        "release": attributes.text("filmroom.release"),
        "app_version": attributes.text(*_VERSION) or as_text(resource.pop("service.version", None)),
        "prompt_version": attributes.text(*_PROMPT),
        "input": attributes.json("langfuse.trace.input"),
        "output": attributes.json("langfuse.trace.output"),
        "attributes": _described(attributes, metadata, resource),
        "dropped_attributes": raw.dropped,
    }
    return {name: value for name, value in told.items() if value not in (None, "", 0, {}, [])}


def take_apart(raw: RawSpan, attributes: AttributeSet) -> dict[str, JsonValue]:
    """The evaluation data among a span's attributes, taken out of them: gold answers, an experiment's item."""
    apart: dict[str, JsonValue] = {}
    if not attributes.follows(_APART):
        return apart
    for name in [name for name in attributes.rest if _is_gold(name)]:
        put(apart, plain_name(name), attributes.json(name))
    for prefix in ("metadata", "langfuse.trace.metadata", "traceloop.association.properties"):
        found = attributes.json(prefix) if attributes.peek(prefix) is not None else None
        if isinstance(found, dict):
            attributes.rest[prefix] = parted(found, apart)
        elif found is not None:
            attributes.rest[prefix] = found
    return apart


def _is_gold(name: str) -> bool:
    if name in _GOLD or name.startswith(("langfuse.experiment.", "eval.case.expected")):
        return True
    return name.startswith(("metadata.", "langfuse.", "traceloop.")) and plain_name(name) in _GOLD


def _metadata(attributes: AttributeSet) -> Flat:
    """What the program added of its own, in one object."""
    found: Flat = {}
    for prefix in ("metadata", "traceloop.association.properties", "langfuse.trace.metadata"):
        for name, value in attributes.fields(prefix).items():
            plain = value[1:-1] if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"' else value
            found.setdefault(name, plain)
    return found


def _inside(metadata: Flat, field: str) -> str | None:
    """The field where the metadata has it, taken out."""
    for name in _IN_METADATA[field]:
        value = metadata.get(name)
        if value and not isinstance(value, (dict, list)):
            del metadata[name]
            return as_text(value)
    return None


def _described(attributes: AttributeSet, metadata: Flat, resource: Flat) -> Flat:
    tags = attributes.json("tag.tags", "langfuse.trace.tags")
    environment = attributes.text("langfuse.environment") or resource.pop("deployment.environment.name", None)
    told: Flat = {
        "metadata": metadata,
        "tags": tags,
        "service": resource.pop("service.name", None),
        "environment": environment or resource.pop("deployment.environment", None),
        "resource": {name: value for name, value in resource.items() if not name.startswith(_NOISE)},
    }
    return {name: value for name, value in told.items() if value not in (None, "", {}, [])}
