"""Erasing a user: their texts and memories go, ids and decisions stay, and a tombstone stands where `why` ends.

What is left of each of their traces is its id and times. Spans and feedback go, and so do their words and name wherever a
decision repeats them (`store.unquoting`), unless others said the same. Reading an old log again does not bring them back.
"""

import secrets
from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, select, update

from store.bodies import bodies_of, decode, drop_bodies, in_parts
from store.bulk import listed
from store.database import insert_or_ignore
from store.ledger import record_event
from store.own_words import ERASED, leaves
from store.records import Record
from store.tables import (
    bodies,
    corrections,
    dataset_rows,
    erased,
    facts,
    failures,
    feedback,
    quarantine,
    retrains,
    signals,
    spans,
    traces,
)
from store.unquoting import Own, quoting, unquote

_WORDS = 6
"""Characters of a text that are the user's own words; shorter ones are everybody's."""
_TRACE_FIELDS = ("name", "session", "user", "tenant", "channel")


class Erasure(Record):
    """What erasing a user takes away, or took."""

    traces: int
    spans: int
    feedback: int
    facts: int
    quarantined: int
    """Pieces in quarantine that name the user."""
    training_rows: int
    """Rows of training data made of their traces; they are learnt no more."""
    versions: tuple[str, ...]
    """Model versions that were trained on them, which erasing does not change."""
    quoted_in: tuple[str, ...]
    """Versions of rules or tools that quote them: the words are taken out there too, and a person may have to write anew."""


class _Found(Record):
    """The ids of what is the user's."""

    names: tuple[str, ...]
    traces: tuple[str, ...]
    spans: tuple[str, ...]
    feedback: tuple[str, ...]
    given_elsewhere: tuple[str, ...]
    """Feedback by them on traces of others."""
    facts: tuple[str, ...]
    quarantined: tuple[str, ...]
    clusters: tuple[str, ...]
    """Clusters that their failures are in: what was decided of these may repeat their words."""
    words: tuple[str, ...]
    """Their own words, the longest first."""


def preview(connection: Connection, project: str, names: tuple[str, ...]) -> Erasure:
    """What `erase` would take away. `names`: the user, under each name the store may know them by."""
    return _erasure(connection, project, _find(connection, project, names))


def erase(connection: Connection, project: str, names: tuple[str, ...], *, at_us: int, actor: str) -> Erasure:
    """Take away all that is the user's, in the caller's transaction; returns what it was."""
    found = _find(connection, project, names)
    done = _erasure(connection, project, found)
    pseudonym = f"erased-{secrets.token_hex(4)}"
    own = _own(connection, found, pseudonym)
    _bury(connection, project, found, at_us, actor)
    _unname(connection, project, found, pseudonym)
    unquote(connection, project, own, at_us=at_us, actor=actor)
    drop_bodies(connection, (*found.traces, *found.spans, *found.feedback, *found.given_elsewhere, *found.facts))
    drop_bodies(connection, found.quarantined)
    _delete(connection, quarantine, quarantine.c.id, found.quarantined)
    return done


def tombstones(connection: Connection, project: str, trace_ids: Iterable[str]) -> set[str]:
    """Those of the traces that were erased."""
    if connection.execute(select(erased.c.trace_id).where(erased.c.project == project).limit(1)).first() is None:
        return set()
    statement = select(erased.c.trace_id).where(
        erased.c.project == project, erased.c.trace_id.in_(listed(connection, trace_ids))
    )
    return set(connection.execute(statement).scalars())


def _find(connection: Connection, project: str, names: tuple[str, ...]) -> _Found:
    own = _ids(connection, select(traces.c.id).where(traces.c.project == project, traces.c.user.in_(names)))
    steps = _of_traces(connection, spans, own)
    said = _of_traces(connection, feedback, own)
    elsewhere = set(
        _ids(connection, select(feedback.c.id).where(feedback.c.project == project, feedback.c.principal.in_(names)))
    ) - set(said)
    remembered = _ids(
        connection,
        select(facts.c.fact_id).where(facts.c.project == project, facts.c.scope == "user", facts.c.scope_id.in_(names)),
    )
    owners = (*own, *steps, *said, *elsewhere, *remembered)
    words = {text for value in _values(connection, owners) for text in leaves(value) if len(text) >= _WORDS}
    words -= _said_by_others(connection, own)
    return _Found(
        names=names, traces=own, spans=steps, feedback=said, given_elsewhere=tuple(sorted(elsewhere)), facts=remembered,
        clusters=_ids(connection, select(failures.c.cluster_id).distinct().where(
            failures.c.cluster_id.is_not(None), _among(connection, failures.c.trace_id, own))),
        quarantined=_naming(connection, project, names, words), words=tuple(sorted(words, key=lambda word: (-len(word), word))),
    )  # fmt: skip


def _erasure(connection: Connection, project: str, found: _Found) -> Erasure:
    own = set(found.traces)
    rows = sum(1 for each in _column(connection, dataset_rows, dataset_rows.c.trace_id, project) if each in own)
    records = connection.execute(select(retrains.c.record).where(retrains.c.project == project)).scalars()
    trained = {each["version"] for each in records if each.get("version") and own & set(each.get("trace_ids") or ())}
    quoted = quoting(connection, project, _own(connection, found, ERASED))
    return Erasure(
        traces=len(found.traces), spans=len(found.spans), feedback=len(found.feedback) + len(found.given_elsewhere),
        facts=len(set(found.facts)), quarantined=len(found.quarantined), training_rows=rows,
        versions=tuple(sorted(trained)), quoted_in=tuple(sorted(quoted)),
    )  # fmt: skip


def _bury(connection: Connection, project: str, found: _Found, at_us: int, actor: str) -> None:
    """Tombstones for the traces; their spans and feedback go, and what failed in them fails no more."""
    rows = [{"project": project, "trace_id": id_, "at_us": at_us} for id_ in found.traces]
    insert_or_ignore(connection, erased, rows)
    for id_ in found.traces:
        record_event(connection, project, at_us=at_us, actor=actor, event="erased", subject=id_)
    _delete(connection, spans, spans.c.id, found.spans)
    _delete(connection, feedback, feedback.c.id, found.feedback)
    open_ones = select(corrections.c.cluster_id).where(corrections.c.state.in_(("proposed", "deferred")))
    for part in in_parts(list(found.traces)):
        ids = listed(connection, part)
        connection.execute(update(traces).where(traces.c.id.in_(ids)).values(dict.fromkeys(_TRACE_FIELDS)))
        connection.execute(update(signals).where(signals.c.trace_id.in_(ids)).values(detail=ERASED))
        failed = failures.c.trace_id.in_(ids)
        connection.execute(update(failures).where(failed).values(withdrawn=True))
        connection.execute(update(failures).where(failed, failures.c.cluster_id.in_(open_ones)).values(cluster_id=None))
    _close_empty(connection, project)


def _close_empty(connection: Connection, project: str) -> None:
    """Corrections that waited for a person, and whose cluster holds no failure any more, wait no longer."""
    filled = select(failures.c.cluster_id).where(failures.c.cluster_id.is_not(None))
    connection.execute(
        update(corrections)
        .where(
            corrections.c.project == project,
            corrections.c.state.in_(("proposed", "deferred")),
            corrections.c.cluster_id.not_in(filled),
        )
        .values(state="rejected")
    )


def _unname(connection: Connection, project: str, found: _Found, pseudonym: str) -> None:
    """The user's name in what stays becomes a pseudonym of this erasure alone."""
    for column in (
        failures.c.source, dataset_rows.c.source, feedback.c.principal, facts.c.scope_id, facts.c.subject, facts.c.source,
    ):  # fmt: skip
        mine = (column.table.c.project == project, column.in_(found.names))
        connection.execute(update(column.table).where(*mine).values({column: pseudonym}))
    own = dataset_rows.c.trace_id.in_(listed(connection, found.traces))
    connection.execute(update(dataset_rows).where(dataset_rows.c.project == project, own).values(weight=0.0))


def _own(connection: Connection, found: _Found, pseudonym: str) -> Own:
    """What is to be taken out of decisions."""
    said = {
        text
        for value in _values(connection, found.traces)
        if isinstance(value, dict)
        for text in leaves(value.get("input"))
    }
    theirs = (*found.given_elsewhere, *_spoken_by(connection, found.feedback, found.names), *found.facts)
    said |= {text for value in _values(connection, theirs) for text in leaves(value)}
    spoken = tuple(word for word in found.words if word in said and _is_telling(word))
    return Own(names=tuple(sorted(found.names, key=lambda name: -len(name))), pseudonym=pseudonym, traces=found.traces,
               facts=found.facts, clusters=found.clusters, words=found.words, spoken=spoken)  # fmt: skip


def _is_telling(word: str) -> bool:
    """Whether hardly anybody else says just this: it is long, or has a number in it."""
    return len(word) > 2 * _WORDS or any(letter.isdigit() for letter in word)


def _spoken_by(connection: Connection, feedback_ids: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    mine = (_among(connection, feedback.c.id, feedback_ids), feedback.c.principal.in_(names))
    return _ids(connection, select(feedback.c.id).where(*mine))


def _said_by_others(connection: Connection, own: tuple[str, ...]) -> set[str]:
    """What stands as well in failing traces of others that share a cluster with one of these: it is not theirs alone."""
    shared = select(failures.c.cluster_id).where(failures.c.trace_id.in_(listed(connection, own)))
    statement = select(failures.c.trace_id).where(failures.c.cluster_id.in_(shared))
    others = tuple(set(_ids(connection, statement)) - set(own))
    owners = (*others, *_of_traces(connection, spans, others), *_of_traces(connection, feedback, others))
    return {text for value in _values(connection, owners) for text in leaves(value)}


def _naming(connection: Connection, project: str, names: tuple[str, ...], words: set[str]) -> tuple[str, ...]:
    """Pieces in quarantine that name the user or hold their words; the text of a piece may be no JSON."""
    marks = tuple(f'"{name}"' for name in names) + tuple(word for word in words if len(word) > 2 * _WORDS)
    ids = _ids(connection, select(quarantine.c.id).where(quarantine.c.project == project))
    found = []
    for part in in_parts(list(ids), 500):
        for id_, raw in bodies_of(connection, part).items():
            if any(mark in str(raw) for mark in marks) or any(name in str(raw).split(",") for name in names):
                found.append(id_)
    return tuple(found)


def _among(connection: Connection, column: ColumnElement[Any], ids: tuple[str, ...]) -> ColumnElement[bool]:
    return column.in_(listed(connection, ids))


def _of_traces(connection: Connection, table: Table, trace_ids: tuple[str, ...]) -> tuple[str, ...]:
    return _ids(connection, select(table.c.id).where(table.c.trace_id.in_(listed(connection, trace_ids))))


def _values(connection: Connection, owners: Iterable[str]) -> Iterator[Any]:
    for part in in_parts(list(owners)):
        statement = select(bodies.c.data).where(bodies.c.id.in_(listed(connection, part)))
        for data in connection.execute(statement).scalars():
            yield decode(data)


def _column(connection: Connection, table: Any, column: ColumnElement[Any], project: str) -> list[Any]:
    return list(connection.execute(select(column).where(table.c.project == project)).scalars())


def _delete(connection: Connection, table: Table, column: ColumnElement[Any], ids: tuple[str, ...]) -> None:
    for part in in_parts(list(ids)):
        connection.execute(delete(table).where(column.in_(listed(connection, part))))


def _ids(connection: Connection, statement: Any) -> tuple[str, ...]:
    return tuple(connection.execute(statement).scalars())
