"""The log that the agent writes: one conversation, its steps inside it, as native lines (docs/format.md)."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

STEP_MS = {"predict": 12, "memory": 6, "tool": 140}
"""How long a step takes, in milliseconds."""


def iso(moment: datetime) -> str:
    """A time with milliseconds and its offset."""
    return moment.isoformat(timespec="milliseconds")


@dataclass
class Log:
    """The steps of one conversation so far."""

    now: datetime
    spans: list[dict[str, Any]] = field(default_factory=list)

    def add(self, kind: str, name: str, **fields: Any) -> None:
        """Write a step down; fields that are None are left out."""
        started, self.now = self.now, self.now + timedelta(milliseconds=STEP_MS[kind])
        span = {
            "id": f"s{len(self.spans) + 1}",
            "kind": kind,
            "name": name,
            "started": iso(started),
            "ended": iso(self.now),
            "status": "error" if "error" in fields else "ok",
            **fields,
        }
        self.spans.append({key: value for key, value in span.items() if value is not None})
