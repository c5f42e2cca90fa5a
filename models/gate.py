"""The gate every candidate passes before it is served: one winner reaches it, and what was not measured refuses.

The stages themselves are in `models.gate_stages`, the paired rows come from `models.arms.judge_rows`.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from models.calibration import Calibrated
from models.gate_stages import (
    STRICT_FLIP_ROWS,
    calibration,
    flips,
    global_,
    integrity,
    poison,
    slices,
    target,
)
from models.judged_rows import JudgedRow
from models.poison import Influence
from models.sequential import clopper_pearson_upper, exact_loss_bound, noninferiority_bound, wins_needed
from store.records.policy import Policy
from store.records.weights import GateStage

_FACTORS = tuple(1.05**power for power in range(1, 120))
"""How many times more rows of the same kind are tried: up to about 330 times."""


def judge(
    rows: Sequence[JudgedRow],
    *,
    policy: Policy,
    checks: Mapping[str, bool | None],
    calibrated: Calibrated | None,
    look: int = 1,
) -> tuple[GateStage, ...]:
    """The stages in order, each with its numbers and sentence; `slices` only where there are out-of-scope rows.

    The last one, `poison`, needs the model that would be served: `judge_sources`, once all of these have passed.

    `checks` are the integrity checks by name, None where one was not made. `look` is 1 for the first candidate judged
    on these rows and one more for each further one: from the second on the error is spent.
    """
    stages = (
        integrity(checks),
        target(rows, policy, look),
        global_(rows, policy),
        slices(rows),
        flips(rows, policy),
        calibration(calibrated),
    )
    return tuple(stage for stage in stages if stage is not None)


def judge_sources(found: Sequence[Influence]) -> GateStage:
    """The stage `poison` over what each of the largest sources changes."""
    return poison(found)


def passed(stages: Sequence[GateStage]) -> bool:
    """Whether every stage passed; no stages are no pass."""
    return bool(stages) and all(stage.verdict == "passed" for stage in stages)


def metrics(stages: Sequence[GateStage]) -> dict[str, float | None]:
    """The numbers of all stages, each under its stage's name."""
    return {f"{stage.stage}_{name}": value for stage in stages for name, value in stage.numbers.items()}


def to_yes(stages: Sequence[GateStage]) -> str:
    """The shortest way from a refusal to a pass, computed from the numbers; empty where it passed."""
    ways = [_WAYS[stage.stage](stage.numbers) for stage in stages if stage.verdict != "passed"]
    return "; ".join(way for way in ways if way)


def _integrity_way(numbers: Mapping[str, float | None]) -> str:
    return "train it again: " + (", ".join(name for name, ok in numbers.items() if ok != 1.0) or "nothing was checked")


def _target_way(numbers: Mapping[str, float | None]) -> str:
    rows, c, b = (int(numbers[name] or 0) for name in ("rows", "newly_right", "newly_wrong"))
    alpha = numbers["alpha"] or 0.05
    missing = wins_needed(b, alpha) - c
    if not rows:
        return f"label {wins_needed(0, alpha)} failures in scope that a candidate repairs"
    if c <= b:
        return f"{missing} more repaired rows with none broken; another arm is the shorter way"
    factor = growth(lambda k: wins_needed(round(b * k), alpha) <= int(c * k))
    return f"{missing} more repaired rows with none broken, or label {more(rows, factor)} rows in scope at this rate"


def _loss_way(numbers: Mapping[str, float | None], delta: float) -> str:
    rows, c, b = (int(numbers[name] or 0) for name in ("rows", "newly_right", "newly_wrong"))
    if not rows:
        return f"label {math.ceil(math.log(0.025) / math.log1p(-delta))} answered rows, right ones too"
    if (b - c) / rows >= delta:
        return f"another arm: this one loses {b - c} of {rows} rows on balance"

    def bounded(k: float) -> bool:
        bound = exact_loss_bound if (b + c) * k < 10 else noninferiority_bound
        return bound(round(b * k), int(c * k), int(rows * k)) <= delta

    return f"label {more(rows, growth(bounded))} answered rows, right ones too, at this rate"


def _global_way(numbers: Mapping[str, float | None]) -> str:
    return _loss_way(numbers, numbers["delta"] or 0.01)


def _slices_way(numbers: Mapping[str, float | None]) -> str:
    thin = [name for name in ("in_scope", "out_of_scope") if not numbers.get(f"{name}_rows")]
    if thin:
        return f"label answers that are {thin[0].replace('_', ' ')}"
    return "another arm, or more labels of the slice that loses"


def _flips_way(numbers: Mapping[str, float | None]) -> str:
    right, b = int(numbers["formerly_right"] or 0), int(numbers["newly_wrong"] or 0)
    if right < STRICT_FLIP_ROWS and not b:
        return f"confirm {STRICT_FLIP_ROWS - right} more right answers, none of them newly wrong"
    if right and b / right < 0.01:
        factor = growth(lambda k: clopper_pearson_upper(round(b * k), int(right * k), 0.95) <= 0.01)
        return f"confirm {more(right, factor)} right answers at this rate"
    return "another arm, such as `exceptions`: this one breaks too many right answers for any number of labels"


def _calibration_way(numbers: Mapping[str, float | None]) -> str:
    return (
        "another arm, or more labelled answers: the temperature is fitted on them" if numbers["rows"] else "a base set"
    )


def _poison_way(numbers: Mapping[str, float | None]) -> str:
    if not numbers.get("canaries"):
        return "a base set, whose inputs are the canaries"
    return "look at that source's labels (`filmroom trust`), or name it under `[policy] trusted`"


def _golden_way(numbers: Mapping[str, float | None]) -> str:
    return "another arm, or labels of cases like the golden one" if numbers["cases"] else "add cases to the golden file"


def _sealed_way(numbers: Mapping[str, float | None]) -> str:
    if not numbers["cases"]:
        return "add cases to the sealed file"
    if "newly_wrong" not in numbers:
        return 'let filmroom serve the model (`champion = "ours"`), or name no sealed file'
    return "another arm, or more labels: this one loses cases that nothing learnt from"


_WAYS = {
    "integrity": _integrity_way,
    "target": _target_way,
    "global": _global_way,
    "slices": _slices_way,
    "flips": _flips_way,
    "calibration": _calibration_way,
    "poison": _poison_way,
    "golden": _golden_way,
    "sealed": _sealed_way,
}


def growth(passes: Callable[[float], bool]) -> float | None:
    """The least factor tried on all counts at which `passes`; None: at none."""
    return next((factor for factor in _FACTORS if passes(factor)), None)


def more(rows: int, factor: float | None) -> str:
    """How many rows more that factor is, in words; None: more than any that was tried."""
    if factor is None:
        return f"more than {int(rows * _FACTORS[-1])}"
    return f"{math.ceil(rows * (factor - 1))} more"
