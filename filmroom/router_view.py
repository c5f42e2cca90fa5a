"""What there is to say of the router: `filmroom router --json`."""

from typing import Any

from flows.calibration import Calibration
from flows.router_versions import InForce
from models.abstention import Certificate
from models.router_gate import LEARNS_FROM, MORE
from store.records import RouterEvent

SHOWN = 5
"""Newest decided clusters that are shown as learnt last."""


def described(calibration: Calibration) -> dict[str, Any]:
    """What `router --json` gives."""
    version = calibration.in_force.version
    learnt = set() if version is None else set(version.clusters)
    return {
        **_version(calibration.in_force),
        "decided": len(calibration.decided),
        "coverage": calibration.coverage(),
        "calibration_error": calibration.error,
        "targets": {
            target: {
                "clusters": calibration.counts[target],
                "certified": isinstance(found, Certificate),
                "threshold": found.threshold if isinstance(found, Certificate) else None,
                "statement": found.statement,
                "audit": calibration.audits[target].statement,
            }
            for target, found in calibration.certificates.items()
        },
        "learnt_last": [
            {
                "correction": each.correction_id,
                "cluster": each.cluster_id,
                "target": each.place,
                "held": each.held,
                "learnt": each.cluster_id in learnt,
                "time": each.decided_us,
            }
            for each in reversed(calibration.decided[-SHOWN:])
        ],
        "history": [_event(each) for each in calibration.in_force.events],
    }


def _version(now: InForce) -> dict[str, Any]:
    """The version that decides, or that the last candidate was refused for; what each is held to."""
    shadow, state = now.shadow, now.state
    last = state.refused.gate if state.refused is not None else None
    return {
        "router": now.router.version,
        "reason": now.reason,
        "since": _since(now),
        "parent": None if now.version is None else now.version.parent,
        "pinned": bool(now.pinned),
        "unpin": _unpin(now),
        "gate": None if now.version is None else now.version.gate.model_dump(mode="json"),
        "refused": None if last is None else last.model_dump(mode="json"),
        "shadow": None if shadow is None else {**shadow.model_dump(mode="json"), "evidence": shadow.evidence},
        "until_next_look": max(0, max(LEARNS_FROM, state.judged + MORE) - len(now.known)),
    }


def _since(now: InForce) -> int | None:
    """When what decides began to, microseconds since 1970 UTC; None: no turn was made yet."""
    since = None
    for each in reversed([each for each in now.events if "router" in each.detail]):
        if each.detail["router"] != now.router.version:
            break
        since = each.at_us
    return since


def _unpin(now: InForce) -> str:
    """How the pin to the rules is taken away; empty: there is none."""
    if not now.pinned:
        return ""
    return "filmroom router --unpin" if now.state.pin is not None else 'router = "auto" in [policy] of the settings'


def _event(each: RouterEvent) -> dict[str, Any]:
    """One line of the history: a version, a refusal with its numbers, a rollback, a pin."""
    gate = each.gate
    return {
        "time": each.at_us,
        "actor": each.actor,
        "event": each.event,
        "router": each.subject if each.event in ("learned", "refused", "rolled back") else each.detail.get("router"),
        "decides": each.detail.get("router"),
        "reason": each.reason,
        "to_yes": "" if gate is None else gate.to_yes,
        "gate": None if gate is None else gate.model_dump(mode="json"),
        "shadow": each.detail.get("shadow"),
    }
