"""A record that comes again is merged: whatever the order and however often, the same records end in the same store."""

import contextlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select

from store.assembled import assemble
from store.bodies import decode
from store.database import Store, open_store
from store.errors import InputError
from store.ingest import ingest
from store.kinds import ORIGIN
from store.records import Feedback, Span, Trace
from store.sources import SourceOptions, read
from store.tables import arrivals, bodies, feedback, spans, traces
from store.traces import episodes

Item = Trace | Span | Feedback
SAMPLES = Path(__file__).parent.parent.parent / "shared" / "samples"

times = st.none() | st.integers(1, 4)
words = st.none() | st.sampled_from(["a", "b"])
objects = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from([1, "a", None]), max_size=2)


_STORE = open_store("sqlite://", create=True)


@contextlib.contextmanager
def empty_store() -> Iterator[Store]:
    """One store for all examples, emptied each time: making one takes longer than an example."""
    with _STORE.write() as connection:
        for table in (traces, spans, feedback, bodies, arrivals):
            connection.execute(delete(table))
    yield _STORE


@st.composite
def explicit(draw: st.DrawFn) -> Trace:
    return Trace(
        source="s", external_id=draw(st.sampled_from("12")), started_us=draw(times), ended_us=draw(times),
        user=draw(words), input=draw(words), output=draw(words), status=draw(st.sampled_from(["unset", "ok", "error"])),
        attributes=draw(objects), held_apart=draw(objects),
    )  # fmt: skip


@st.composite
def step(draw: st.DrawFn) -> Span:
    started = draw(times)
    return Span(
        source="s", trace_external_id=draw(st.sampled_from("12")), external_id=draw(st.sampled_from("ab")),
        parent_external_id=draw(st.sampled_from([None, "a"])), kind=draw(st.sampled_from(["other", "llm"])),
        started_us=started, started_ns=0 if started is None else draw(st.integers(0, 2)), ended_us=draw(times), input=draw(words),
        output=draw(words), input_tokens=draw(times), attributes=draw(objects), documents=draw(st.sampled_from([(), ("d",)])),
    )  # fmt: skip


@st.composite
def said(draw: st.DrawFn) -> Feedback:
    return Feedback(
        source="s", trace_external_id=draw(st.sampled_from("12")), external_id=draw(st.sampled_from("f")),
        score=draw(st.sampled_from([0, 1])), comment=draw(words), given_us=draw(st.none() | st.integers(1, 3)),
    )  # fmt: skip


@st.composite
def export(draw: st.DrawFn) -> list[Item]:
    """What one file holds: traces that stand in it, spans with the traces put together from them, feedback."""
    steps = draw(st.lists(step(), max_size=4))
    whole: dict[str, dict[str, Span]] = {each.trace_external_id: {} for each in steps}
    for each in steps:
        whole[each.trace_external_id][each.external_id] = each
    together = [assemble(list(found.values()), draw(objects)) for found in whole.values()]
    return [*draw(st.lists(explicit(), max_size=2)), *steps, *together, *draw(st.lists(said(), max_size=2))]


def content(store: Store) -> dict[str, Any]:
    """Everything that is known of traces, spans and feedback."""
    with store.read() as connection:
        texts = {row.id: decode(row.data) for row in connection.execute(select(bodies))}
        rows = [row for table in (traces, spans, feedback) for row in connection.execute(select(table))]
    return {row.id: (dict(row._mapping), texts[row.id]) for row in rows}


def after(files: Sequence[Sequence[Item]]) -> dict[str, Any]:
    with empty_store() as store:
        for file in files:
            ingest(store, file, clock=lambda: 1)
        return content(store)


@settings(max_examples=100, deadline=None)
@given(st.lists(export(), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_any_order_and_repetition_of_the_same_files_gives_the_same_store(
    files: list[list[Item]], chance: random.Random
) -> None:
    again = [*files, *chance.choices(files, k=2)]
    chance.shuffle(again)
    assert after(again) == after(files) == after([[item for file in files for item in file]])


@settings(max_examples=100, deadline=None)
@given(st.lists(explicit(), min_size=1, max_size=3), explicit())
def test_reading_an_older_export_again_takes_nothing_away(newer: list[Trace], older: Trace) -> None:
    with empty_store() as store:
        ingest(store, newer)
        before = content(store)
        ingest(store, [older])
        for id_, (row, texts) in before.items():
            now, found = content(store)[id_]
            assert {name for name, value in row.items() if value is not None} <= {
                k for k, v in now.items() if v is not None
            }
            assert texts.keys() - {ORIGIN} <= found.keys()


def trace_of(store: Store) -> Trace:
    with store.read() as connection:
        [id_] = connection.execute(select(traces.c.id)).scalars()
        return episodes(connection, [id_])[0].trace


def test_the_later_end_wins_and_what_it_does_not_say_stays() -> None:
    early = Trace(
        source="s", external_id="1", started_us=1, ended_us=None, user="ann", output="wait", attributes={"a": 1}
    )
    late = Trace(source="s", external_id="1", started_us=1, ended_us=9, output="done", attributes={"b": 2})
    with empty_store() as store:
        ingest(store, [late])
        ingest(store, [early])
        assert trace_of(store) == late.model_copy(update={"user": "ann", "attributes": {"a": 1, "b": 2}})


def test_a_second_reading_of_merged_records_is_all_duplicates() -> None:
    early = Trace(source="s", external_id="1", started_us=1, user="ann")
    late = Trace(source="s", external_id="1", started_us=1, ended_us=9)
    with empty_store() as store:
        ingest(store, [early])
        ingest(store, [late])
        tally = ingest(store, [early, late])
        assert (tally.read, tally.stored, tally.duplicate) == (2, 0, 2)


def test_a_revised_feedback_keeps_nothing_of_the_earlier_one() -> None:
    given_at = {"source": "s", "trace_external_id": "1", "external_id": "f"}
    wrong = Feedback(**given_at, score=0, corrected_output="b", given_us=1)
    right = Feedback(**given_at, score=1, given_us=2)
    with empty_store() as store:
        ingest(store, [Trace(source="s", external_id="1"), right, wrong])
        with store.read() as connection:
            [found] = episodes(connection, list(connection.execute(select(traces.c.id)).scalars()))
        assert found.feedback == (right,)


def test_feedback_without_times_is_revised_by_a_later_line_of_its_file_and_not_by_the_order_of_files(
    tmp_path: Path,
) -> None:
    (tmp_path / "march.csv").write_text("id,label\n1,bye\n1,greet\n1,greet\n", encoding="utf-8")
    (tmp_path / "april.csv").write_text("id,label\n1,a longer label\n", encoding="utf-8")
    said = [
        [item for item in read(tmp_path / name) if isinstance(item, Feedback)] for name in ("march.csv", "april.csv")
    ]
    march, april = said
    for files in ([march, april], [april, march, april], [march, april, march]):
        [(row, texts)] = after(files).values()
        assert (texts["corrected_output"], texts["attributes"], row["given_us"]) == ("greet", {"revision": 2}, None)


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples are not here")
def test_samples_read_in_any_order_and_again_give_the_same_store() -> None:
    files = sorted(path for path in SAMPLES.rglob("*") if path.is_file() and path.suffix in (".json", ".jsonl", ".csv"))
    readable = []
    for path in files:
        options = SourceOptions(timezone="UTC", source=path.parent.name)
        with contextlib.suppress(InputError):
            readable.append([item for item in read(path, options=options) if isinstance(item, Trace | Span | Feedback)])
    chance = random.Random(7)
    shuffled = [*readable, *chance.sample(readable, 20)]
    chance.shuffle(shuffled)
    one, other = after(shuffled), after(readable)
    assert {id_ for id_ in one.keys() | other.keys() if one.get(id_) != other.get(id_)} == set()
