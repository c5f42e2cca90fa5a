"""What the deployment has: the places a correction can go, and what is known of them."""

from pydantic import Field, JsonValue

from store.records import TARGETS, Record, Rule, Target


class Deployment(Record):
    """The places this deployment has, with what evidence and router need to know of each."""

    targets: tuple[Target, ...] = TARGETS
    """The places it has; every other gets probability 0."""
    rules: tuple[Rule, ...] = ()
    """Context rules in force."""
    tools: dict[str, JsonValue] = Field(default_factory=dict)
    """Tool name to the JSON schema of its arguments, bare or in the usual wrappings."""
    models: dict[str, str | None] = Field(default_factory=dict)
    """Small models that can be retrained: name to out-of-scope label, None where it has none. Empty: no weights to train."""
    attempts: dict[str, int] = Field(default_factory=dict)
    """Target to earlier corrections of this cluster there that failed to hold."""
    calibration: dict[str, int] = Field(default_factory=dict)
    """Target to clusters with a known outcome, which a certificate is computed from."""
    freshness_s: dict[str, float] = Field(default_factory=dict)
    """Tool name to the oldest output that may be used, seconds."""
    context_changed_us: int | None = None
    """When the context last changed, microseconds since 1970 UTC; None: not known."""
    context_limit_tokens: int | None = None
    """Tokens a prompt may have; None: not known."""

    def has(self, target: str) -> bool:
        """Whether a correction can go there; weights need a model that can be retrained."""
        return target in self.targets and (target != "weights" or bool(self.models))
