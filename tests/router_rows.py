"""Decided clusters that teach a router something."""

from models.deployment import Deployment
from models.learned_router import TrainingRow

FULL = Deployment(models={"bot": None})
NAMES = ("schema_violation", "normative", "user_concentration", "model_step", "odd")


def row(number: int, valid: str, **evidence: float | None) -> TrainingRow:
    return TrainingRow(evidence={**dict.fromkeys(NAMES), **evidence}, valid=frozenset({valid}), group=f"g{number}")


def odd_rows(count: int = 120) -> list[TrainingRow]:
    """What no rule knows: `odd` near 1 is tooling, near 0 is memory."""
    return [row(at, "tooling" if at % 2 else "memory", odd=at % 2 + at % 7 / 20) for at in range(count)]
