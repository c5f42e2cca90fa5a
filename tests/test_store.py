"""The store on both databases: what is written once stays, what is half-written is not there."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, insert, select, text

from store.bodies import body_of, decode, encode, put_body
from store.console_tables import metadata
from store.database import Store, insert_or_ignore, open_store
from store.erasure import erase
from store.errors import LiveMoved, NotFound, SettingsError, StoreMissing, StoreTooNew, StoreUnreachable
from store.failures import cluster_for, cursor, move_cursor, record_failures, unclustered
from store.ingest import Tally, ingest
from store.ledger import causes_of, effects_of, events_of, record_event
from store.quarantine import quarantined
from store.records import Failure, Feedback, Fingerprint, Rejected, Span, Trace
from store.redaction import redactor_for
from store.releases import found_project, live_release, move_live, releases_of
from store.settings import PolicySection
from store.tables import arrivals, cursors
from store.traces import arrived_after, episodes
from store.why import why


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    opened = open_store(store_url, create=True)
    yield opened
    opened.close()


def trace(number: int, **values: Any) -> Trace:
    return Trace(source="native", external_id=str(number), started_us=number * 1_000_000, **values)


def write(store: Store, *items: Trace | Span | Feedback | Rejected, at_us: int = 1) -> Tally:
    return ingest(store, items, clock=lambda: at_us)


def and_then_fail(work: Callable[[], object]) -> None:
    work()
    raise KeyError("the failure in the middle of a transaction")


def test_migrated_schema_equals_the_tables(store: Store) -> None:
    with store.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_reading_never_creates_a_database(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing, match="filmroom init"):
        open_store(f"sqlite:///{tmp_path / 'typo.db'}")
    assert list(tmp_path.iterdir()) == []


def test_store_from_a_newer_version_is_refused_and_left_alone(store_url: str) -> None:
    open_store(store_url, create=True).close()
    engine = create_engine(store_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for create in (True, False):
        with pytest.raises(StoreTooNew, match="upgrade filmroom"):
            open_store(store_url, create=create)
    engine.dispose()


def test_a_url_that_does_not_answer_is_one_clear_line() -> None:
    with pytest.raises(StoreUnreachable, match=r"127\.0\.0\.1.*does not answer"):
        open_store("postgresql+psycopg://nobody:secret@127.0.0.1:9/none")


def test_a_password_is_not_shown_in_the_error() -> None:
    with pytest.raises(StoreUnreachable) as caught:
        open_store("postgresql+psycopg://nobody:secret@127.0.0.1:9/none")
    assert "secret" not in str(caught.value)


def test_a_url_of_no_known_database_is_a_settings_error() -> None:
    with pytest.raises(SettingsError, match="not a database URL"):
        open_store("oracle://somewhere")


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_text("these are my notes, and they are long enough to be read as a header " * 20)
    with pytest.raises(StoreUnreachable, match="not a SQLite database"):
        open_store(f"sqlite:///{path}")


def test_ddl_rolls_back_with_the_rest_on_sqlite(sqlite_url: str) -> None:
    store = open_store(sqlite_url, create=True)
    with pytest.raises(KeyError), store.write() as connection:
        and_then_fail(lambda: connection.execute(text("CREATE TABLE half (x INTEGER)")))
    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM sqlite_master WHERE name = 'half'")).scalar() == 0
    store.close()


def test_ingesting_twice_stores_nothing_twice(store: Store) -> None:
    items: list[Trace | Span] = [
        trace(1, input="hi", output="there"),
        Span(source="native", trace_external_id="1", external_id="s"),
    ]
    assert write(store, *items) == Tally(read=2, stored=2, traces=1, spans=1)
    assert write(store, *items) == Tally(read=2, duplicate=2)


def test_a_changed_record_is_stored_and_arrives_again(store: Store) -> None:
    write(store, trace(1, output="a"))
    assert write(store, trace(1, output="b", ended_us=2_000_000)) == Tally(read=1, stored=1, traces=1)
    with store.read() as connection:
        last, touched = arrived_after(connection, "default", 0, before_us=10, limit=10)
        assert (last, touched) == (2, [trace(1).id])
        assert episodes(connection, touched)[0].trace.output == "b"


def test_an_episode_comes_back_word_for_word(store: Store) -> None:
    first = trace(1, input={"q": "ü \ud7ff"}, output=["x", 1.5, None], user="u", attributes={"a": {"b": 2**70}})
    span = Span(source="native", trace_external_id="1", external_id="s", kind="retrieval", documents=({"id": 1},))
    said = Feedback(source="native", trace_external_id="1", external_id="f", corrected_output={"k": "v"}, comment="no")
    write(store, said, span, first)
    with store.read() as connection:
        found = episodes(connection, [first.id])[0]
    assert (found.trace, found.spans, found.feedback) == (first, (span,), (said,))


def test_feedback_before_its_trace_is_parked_and_joined(store: Store) -> None:
    said = Feedback(source="native", trace_external_id="1", external_id="f", score=0.0)
    write(store, said)
    with store.read() as connection:
        assert episodes(connection, [said.trace_id]) == []
    write(store, trace(1))
    with store.read() as connection:
        assert episodes(connection, [said.trace_id])[0].feedback == (said,)


def test_arrivals_wait_until_they_have_settled(store: Store) -> None:
    write(store, trace(1), at_us=100)
    write(store, trace(2), at_us=200)
    with store.read() as connection:
        assert arrived_after(connection, "default", 0, before_us=150, limit=10) == (1, [trace(1).id])


def test_arrival_numbers_are_never_reused_on_sqlite(sqlite_url: str) -> None:
    store = open_store(sqlite_url, create=True)
    write(store, trace(1))
    with store.write() as connection:
        connection.execute(arrivals.delete())
    write(store, trace(2))
    with store.read() as connection:
        assert connection.execute(select(arrivals.c.seq)).scalar_one() == 2
    store.close()


def test_a_reject_is_kept_with_file_line_and_reason_once(store: Store) -> None:
    reject = Rejected(path="log.jsonl", line=7, reason="not JSON", raw="{oops")
    assert write(store, reject) == Tally(read=1, quarantined=1)
    write(store, reject)
    [kept] = quarantined(store)
    assert (kept["path"], kept["line"], kept["reason"]) == ("log.jsonl", 7, "not JSON")


def test_bad_values_poison_no_table(store: Store) -> None:
    write(store, trace(1, input={"x": float("nan")}), trace(2, input="ok"))
    with store.read() as connection:
        found = [episode.trace.input for episode in episodes(connection, [trace(1).id, trace(2).id])]
    assert found == [{"x": None}, "ok"]


@pytest.mark.parametrize("value", [None, "x" * 5000, {"big": 2**80}, [1, {"a": None}], "\u0000"])
def test_a_body_decodes_to_what_was_encoded(value: object) -> None:
    assert decode(encode(value)) == value


def test_a_body_is_replaced_not_doubled(store: Store) -> None:
    with store.write() as connection:
        put_body(connection, "default", "x", {"a": 1})
        put_body(connection, "default", "x", {"a": 2})
        assert body_of(connection, "x") == {"a": 2}


def test_inserting_or_ignoring_says_how_many_were_new(store: Store) -> None:
    row = {"project": "p", "name": "pickup", "seq": 1}
    with store.write() as connection:
        assert insert_or_ignore(connection, cursors, [row]) == 1
        assert insert_or_ignore(connection, cursors, [row, {**row, "name": "other"}]) == 1
        assert insert_or_ignore(connection, cursors, [row]) == 0


def test_a_transaction_that_fails_leaves_nothing(store: Store) -> None:
    with pytest.raises(KeyError), store.write() as connection:
        and_then_fail(lambda: move_cursor(connection, "default", "pickup", 5))
    with store.read() as connection:
        assert cursor(connection, "default", "pickup") == 0


def test_a_trace_fails_once_at_most(store: Store) -> None:
    write(store, trace(1))
    failure = Failure(trace_id=trace(1).id, picked_us=1, probability=0.9)
    with store.write() as connection:
        assert record_failures(connection, [failure, failure]) == [failure.id]
        assert record_failures(connection, [failure]) == []
        assert [case.failure for case in unclustered(connection, "default", 10)] == [failure]


def test_a_cluster_keeps_its_id(store: Store) -> None:
    print_ = Fingerprint(version=1, component="update_order", kind="tool", error_class="validation")
    with store.write() as connection:
        first = cluster_for(connection, "default", print_, "update_order fails", 1)
        assert cluster_for(connection, "default", print_, "another name", 2) == first


def test_the_live_pointer_moves_once_from_a_release(store: Store) -> None:
    with store.write() as connection:
        first = found_project(connection, "default", actor="me", now_us=1)
        second = first.model_copy(update={"parent": first.id, "number": 1, "memory": 1})
        move_live(connection, first, second)
    rival = first.model_copy(update={"parent": first.id, "number": 2, "memory": 2})
    with pytest.raises(LiveMoved), store.write() as connection:
        move_live(connection, first, rival)
    with store.read() as connection:
        assert live_release(connection, "default") == second
        assert releases_of(connection, "default") == [second, first]


def test_founding_a_project_twice_changes_nothing(store: Store) -> None:
    with store.write() as connection:
        first = found_project(connection, "default", actor="me", now_us=1)
        assert found_project(connection, "default", actor="you", now_us=2) == first


def test_why_walks_both_ways(store: Store) -> None:
    with store.write() as connection:
        record_event(connection, "default", at_us=1, actor="me", event="picked up", subject="fail_1", causes=["trc_1"])
        record_event(connection, "default", at_us=2, actor="me", event="clustered", subject="clu_1", causes=["fail_1"])
        found = why(connection, "default", "fail_1")
    assert found["causes"] == [{"id": "trc_1", "kind": "trace", "causes": []}]
    assert found["effects"] == [{"id": "clu_1", "kind": "cluster", "effects": []}]
    assert [event["event"] for event in found["events"]] == ["picked up"]


def test_why_of_an_unknown_id_says_where_to_find_ids(store: Store) -> None:
    with store.read() as connection, pytest.raises(NotFound, match="filmroom history"):
        why(connection, "default", "chg_unknown")


def test_a_ledger_tells_events_in_order(store: Store) -> None:
    with store.write() as connection:
        for event in ("made", "changed"):
            record_event(connection, "default", at_us=1, actor="me", event=event, subject="x", detail={"n": 1})
        assert [row["event"] for row in events_of(connection, "default", "x")] == ["made", "changed"]
        assert (causes_of(connection, "default", "x"), effects_of(connection, "default", "x")) == ([], [])


def test_commits_of_two_writers_are_numbered_in_commit_order(postgresql_url: str) -> None:
    """While one writer holds its transaction open, the other's arrivals wait for it."""
    store = open_store(postgresql_url, create=True)
    script = (
        "import sys; from store.database import open_store; from store.ingest import ingest; from store.records import Trace\n"
        "store = open_store(sys.argv[1]); print('ready', flush=True)\n"
        "ingest(store, [Trace(source='b', external_id='b')]); print('done', flush=True); store.close()"
    )
    with store.write() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('filmroom arrivals default'))"))
        row = {"project": "default", "kind": "trace", "trace_id": "trc_a", "at_us": 1}
        other = subprocess.Popen([sys.executable, "-c", script, postgresql_url], stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        connection.execute(insert(arrivals), [row])
        assert other.poll() is None
    assert other.wait(60) == 0
    other.stdout.close()
    with store.read() as connection:
        order = list(connection.execute(select(arrivals.c.trace_id).order_by(arrivals.c.seq)).scalars())
    assert order == ["trc_a", Trace(source="b", external_id="b").id]
    store.close()


def test_a_sqlite_store_can_be_read_by_any_sqlite(sqlite_url: str) -> None:
    store = open_store(sqlite_url, create=True)
    write(store, trace(1, user="ann"))
    store.close()
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    assert connection.execute("SELECT user FROM traces").fetchall() == [("ann",)]
    connection.close()


def test_a_user_is_erased_and_stays_erased(store: Store) -> None:
    own = trace(1, user="ann", input="the words of ann")
    said = Feedback(
        source="native", trace_external_id="2", external_id="f", principal="ann", comment="by ann, on another"
    )
    write(store, own, trace(2, user="bob"), said)
    with store.write() as connection:
        done = erase(connection, "default", ("ann",), at_us=2, actor="staff:eve")
    assert (done.traces, done.feedback) == (1, 1)
    left = store.scrub()
    assert (left is None) == (store.engine.dialect.name == "sqlite")
    assert write(store, own).stored == 0
    with store.read() as connection:
        one, two = episodes(connection, [own.id, trace(2).id])
        assert why(connection, "default", own.id)["erased"]
    assert (one.trace.input, one.trace.user, two.trace.user, two.feedback[0].comment) == (None, None, "bob", None)


def test_a_key_that_is_redacted_is_made_once_a_store(store: Store) -> None:
    policy = PolicySection(redact=("email",))
    assert len({redactor_for(store, policy).text("a@example.org")[0] for _ in range(3)}) == 1
