"""What speaks for each place a correction could go: a cluster's evidence, by name, without a judge model.

The features are in `models.features`, one function each; what they add up to is `models.router`'s.
"""

from collections.abc import Collection, Sequence

from models.deployment import Deployment
from models.features import blame, causes, context, memory, probes, reading, recall, support, tooling, weights
from models.features.material import Feature, Material
from store.records import TARGETS, Case, Episode, Policy

__all__ = ["FEATURES", "NOT_MEASURED", "Deployment", "argument_repairs", "weigh"]

FEATURES: dict[str, Feature] = {
    **tooling.FEATURES,
    **context.FEATURES,
    **memory.FEATURES,
    **weights.FEATURES,
    **reading.FEATURES,
    **probes.FEATURES,
    **recall.FEATURES,
    **blame.FEATURES,
    **support.FEATURES,
    **causes.FEATURES,
}

OWN = frozenset({**support.FEATURES, **causes.FEATURES})
"""Features of the cluster alone, without the failures beside it."""

NOT_MEASURED: tuple[str, ...] = tuple(f"judge_{place}" for place in (*TARGETS, "none"))
"""What an optional judge says: present in every result, as None where there is no judge."""


def weigh(
    cases: Sequence[Case],
    satisfied: Sequence[Episode],
    *,
    deployment: Deployment,
    policy: Policy,
    batch: Sequence[Episode] = (),
    only: Collection[str] | None = None,
) -> dict[str, float | None]:
    """The evidence of one cluster: feature name to value, always the same names; None: not measured, never zero.

    `satisfied`: traces of the same time that nobody complained of, for comparison; empty leaves what needs them None.
    `batch`: what else failed in the same time; it shows a component that is broken for everybody.
    `only`: features to measure, and no others. `attempts_TARGET` are the earlier attempts there that failed to hold.
    """
    material = Material(tuple(cases), tuple(satisfied), deployment, policy, tuple(batch))
    wider = material.with_siblings()
    found = {name: feature(material if name in OWN else wider) for name, feature in FEATURES.items()
             if only is None or name in only}  # fmt: skip
    tried = {f"attempts_{target}": float(deployment.attempts.get(target, 0)) for target in TARGETS}
    return {**found, **tried, **dict.fromkeys(NOT_MEASURED)}


def argument_repairs(
    cases: Sequence[Case], satisfied: Sequence[Episode], *, deployment: Deployment, policy: Policy
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Tool to argument path to the normalisers that mend the failing calls: what a tool policy could say."""
    return tooling.argument_repairs(Material(tuple(cases), tuple(satisfied), deployment, policy))
