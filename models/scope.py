"""Exposure: could this trace have failed the way a cluster does? Judged by its input side alone."""

from collections.abc import Collection

from models.steps import label_in, step_name
from store.records import Episode, Fingerprint


def is_exposed(fingerprint: Fingerprint, episode: Episode, *, users: Collection[str] | None = None) -> bool:
    """Whether the trace matches the cluster's input-side scope, whatever came out of it.

    `users`: only theirs (a memory fact reaches nobody else); None: everybody's.
    A prediction is exposed when it answered either of the two labels; a step inside a conversation when the intent was
    the same, or, where no intent is known, when the same tool was called.
    """
    if users is not None and episode.trace.user not in users:
        return False
    if fingerprint.scope and episode.trace.channel != fingerprint.scope:
        return False
    labels = {label_in(span.output) for span in episode.spans if span.kind == "predict"}
    if fingerprint.kind == "predict":
        answered = {label_in(span.output) for span in episode.spans if fingerprint.component in (span.name, span.model)}
        return bool(answered & {fingerprint.served, fingerprint.corrected})
    if fingerprint.intent:
        return fingerprint.intent in labels
    if fingerprint.kind == "tool":
        return any(step_name(span) == fingerprint.component for span in episode.spans)
    return True
