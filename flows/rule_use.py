"""How often a rule was in use: the traces that a release with it served, and whose scope it matches."""

from collections import Counter
from typing import Any

from sqlalchemy import Connection

from models.steps import label_in
from store.exposures import served_by_releases
from store.records import Episode, Release
from store.releases import releases_of, version

RELEASES = 200
"""Newest releases that are looked at."""


def rule_use(connection: Connection, project: str, live: Release) -> dict[str, int]:
    """Entry of the live context to the number of traces it was in scope of, among the newest that name a release."""
    document: Any = version(connection, live.context).content
    entries = [each for section in document.values() for each in section]
    if not entries:
        return {}
    contents = {each.id: each.context for each in releases_of(connection, project, RELEASES)}
    had = {id_: _ids(connection, id_) for id_ in set(contents.values())}
    used: Counter[str] = Counter({each["id"]: 0 for each in entries})
    for episode in served_by_releases(connection, project):
        there = had.get(contents.get(str(episode.trace.release), ""), frozenset())
        given = scope_of(episode)
        used.update(each["id"] for each in entries if each["id"] in there and _matches(each["scope"], given))
    return dict(used)


def scope_of(episode: Episode) -> dict[str, set[str]]:
    """What a trace matches a rule's scope by: channel, intents its models answered, tools it called."""
    intents = {label for span in episode.spans if span.kind == "predict" and (label := label_in(span.output))}
    tools = {span.name for span in episode.spans if span.kind == "tool" and span.name}
    return {"channel": {episode.trace.channel or ""}, "intent": intents, "tool": tools}


def _matches(scope: dict[str, str], given: dict[str, set[str]]) -> bool:
    return all(value in given.get(key, set()) for key, value in scope.items())


def _ids(connection: Connection, version_id: str) -> frozenset[str]:
    document: Any = version(connection, version_id).content
    return frozenset(each["id"] for section in document.values() for each in section)
