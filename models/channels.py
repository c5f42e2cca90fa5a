"""Does the channel say anything? Failures alike but for the channel are one cluster where they are as frequent on each.

Rates are over the judged traces that could have failed so. A merge is for good: it needs failures on both sides, and a test
that finds no clear difference.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from scipy.stats import fisher_exact

from models.fingerprint import cluster_name
from models.steps import label_in, step_name
from store.records import Cluster, Episode, Fingerprint

FEWEST_TOGETHER = 5
"""Failures on all channels together from which channels are compared ..."""
FEWEST_EACH = 2
"""... and on each of them: one may be chance."""
CLEARLY = 0.05
"""Two-sided p of Fisher's exact test up to which two rates are clearly different."""


def without_channel(print_: Fingerprint) -> Fingerprint:
    return print_.model_copy(update={"scope": ""})


def widened_name(each: Cluster) -> str:
    """The cluster's name without its channel; what its texts added to the name stays."""
    wide = cluster_name(without_channel(each.fingerprint))
    return wide + each.name.removeprefix(cluster_name(each.fingerprint))


def merges(clusters: Sequence[Cluster], seen: Sequence[tuple[Episode, str | None]]) -> dict[str, str]:
    """Cluster to the one it is part of, which is the oldest of those that are one; empty: every channel says something.

    `clusters`: oldest first. `seen`: judged traces, each with the cluster it failed in; None: it did not fail.
    """
    families: dict[str, list[Cluster]] = defaultdict(list)
    for each in clusters:
        families[without_channel(each.fingerprint).key].append(each)
    found: dict[str, str] = {}
    rates: _Rates | None = None
    for family in families.values():
        known = [each for each in family if each.failures >= FEWEST_EACH]
        if len(known) < 2 or sum(each.failures for each in known) < FEWEST_TOGETHER:
            continue
        rates = rates or _Rates(seen)
        one = _alike(known, rates)
        oldest = next(each for each in known if each in one)
        found |= {each.id: oldest.id for each in one if each is not oldest}
    return found


def _alike(family: Sequence[Cluster], rates: "_Rates") -> list[Cluster]:
    """Those that fail as often as the largest, taken in by size."""
    largest, *others = sorted(family, key=lambda each: -each.failures)
    one = [largest]
    for each in others:
        table = [rates.failed_and_not(one), rates.failed_and_not([each])]
        if min(map(sum, table)) > 0 and fisher_exact(table).pvalue > CLEARLY:
            one.append(each)
    return one


class _Rates:
    """Judged traces by what could have failed in them and by channel, counted once."""

    def __init__(self, seen: Iterable[tuple[Episode, str | None]]) -> None:
        self.exposed: Counter[tuple[str, str]] = Counter()
        self.failed: Counter[str] = Counter()
        self.channels: dict[str, set[str]] = defaultdict(set)
        for episode, cluster_id in seen:
            channel = episode.trace.channel or ""
            self.exposed.update((what, channel) for what in _chances(episode))
            if cluster_id is not None:
                self.failed[cluster_id] += 1
                self.channels[cluster_id].add(channel)

    def failed_and_not(self, clusters: Sequence[Cluster]) -> tuple[int, int]:
        failed = sum(self.failed[each.id] for each in clusters)
        channels = set[str]().union(*(self.channels[each.id] for each in clusters))
        what = _needed(clusters[0].fingerprint)
        exposed = sum(self.exposed[name, channel] for name in what for channel in channels)
        return failed, max(0, exposed - failed)


def _chances(episode: Episode) -> set[str]:
    """Names of what may go wrong in the trace, in the words of `_needed`; as `models.scope` reads exposure."""
    found = {"any"}
    for span in episode.spans:
        if span.kind == "predict":
            label = label_in(span.output)
            found |= {f"intent {label}", f"label {span.name} {label}", f"label {span.model} {label}"}
        found.add(f"step {step_name(span)}")
    return found


def _needed(print_: Fingerprint) -> set[str]:
    if print_.kind == "predict":
        return {f"label {print_.component} {label}" for label in (print_.served, print_.corrected)}
    if print_.intent:
        return {f"intent {print_.intent}"}
    return {f"step {print_.component}"} if print_.kind == "tool" else {"any"}
