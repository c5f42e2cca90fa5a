"""Failures of the closed simulation put into clusters as flows do, in memory: fingerprint, channel, what people said."""

from collections.abc import Mapping, Sequence

from models.channels import merges
from models.fingerprint import cluster_name, fingerprint
from models.residue import pools, regroup, said, said_of_answer
from store.records import Case, Cluster, Episode


def clustered(cases: Sequence[Case], satisfied: Sequence[Episode]) -> list[list[Case]]:
    """The cases of each cluster, in the order in which the clusters came up."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(fingerprint(case).key, []).append(case)
    seen: list[tuple[Episode, str | None]] = [(episode, None) for episode in satisfied]
    seen += [(case.episode, key) for key, group in groups.items() for case in group]
    for gone, into in merges(_records(groups), seen).items():
        groups[into] += groups.pop(gone)
    for base, alike in pools(_records(groups), groups):
        _regroup(groups, [each.id for each in alike], answers=bool(base.intent))
    return [group for group in groups.values() if group]


def _records(groups: Mapping[str, Sequence[Case]]) -> list[Cluster]:
    prints = {key: fingerprint(group[0]) for key, group in groups.items()}
    return [
        Cluster(id=key, name=cluster_name(print_), fingerprint=print_, created_us=0, failures=len(groups[key]))
        for key, print_ in prints.items()
    ]


def _regroup(groups: dict[str, list[Case]], keys: Sequence[str], *, answers: bool) -> None:
    by_id = {case.failure.id: (key, case) for key in keys for case in groups[key]}
    told = [
        (said_of_answer if answers else said)(case).model_copy(update={"cluster_id": key})
        for key, case in by_id.values()
    ]
    singles = {key for key in keys if len(groups[key]) == 1}
    for at, group in enumerate(regroup(told, owners=(), frozen=(), singles=singles, answers=answers)):
        moved = [by_id[id_] for id_ in group.failures]
        for key, case in moved:
            groups[key].remove(case)
        groups[f"{keys[0]} {at}"] = [case for _, case in moved]
