"""Which router decides, by what happened to it so far."""

from collections.abc import Sequence

from store.records import Record, RouterEvent, RouterVersion

TAKEN = ("learned", "rolled back")
"""What changes the version that decides."""


class RouterState(Record):
    """Where the router's history has led."""

    version: str | None = None
    """The learned version that decides unless the rules are pinned; None: the rules."""
    changed: RouterEvent | None = None
    """What made it decide; None: nothing was learned yet."""
    pin: RouterEvent | None = None
    """The pin to the rules; None: there is none."""
    judged: int = 0
    """Decided clusters at the last look or rollback: a candidate needs new ones."""
    refused: RouterEvent | None = None
    """The last candidate, where it was refused and nothing changed since."""
    learnt: frozenset[str] = frozenset()
    """Clusters that some version has learnt from."""

    @property
    def put_back_us(self) -> int | None:
        """When a person let the version decide again; None: it decides since it was learned, or the shadow brought it back."""
        changed = self.changed
        by_person = changed is not None and changed.event == "rolled back" and changed.detail.get("shadow") is None
        return changed.at_us if changed is not None and by_person else None


def state_of(events: Sequence[RouterEvent]) -> RouterState:
    """The state after these events, oldest first; without any, the rules decide."""
    changes = [each for each in events if each.event in TAKEN]
    looks = [each for each in events if each.event in (*TAKEN, "refused")]
    pins = [each for each in events if each.event in ("pinned", "unpinned")]
    changed = changes[-1] if changes else None
    return RouterState(
        version=None if changed is None else _learned_id(str(changed.detail["router"])),
        changed=changed,
        pin=pins[-1] if pins and pins[-1].event == "pinned" else None,
        judged=looks[-1].decided if looks else 0,
        refused=looks[-1] if looks and looks[-1].event == "refused" else None,
        learnt=frozenset(name for version in versions_of(events).values() for name in version.clusters),
    )


def versions_of(events: Sequence[RouterEvent]) -> dict[str, RouterVersion]:
    """Every version that was learned, by id, oldest first."""
    return {version.id: version for each in events if (version := each.version) is not None}


def look_against(events: Sequence[RouterEvent], champion: str) -> int:
    """Which look at the verdicts the next candidate against this router is: 1 for the first."""
    gates = [each.gate for each in events]
    return 1 + sum(gate is not None and gate.champion == champion for gate in gates)


def _learned_id(router: str) -> str | None:
    return router if router.startswith("rtr_") else None
