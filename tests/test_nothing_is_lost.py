"""Rewriting is impossible: whatever is done in whatever order, nothing goes that was not ended by its name, and nobody sees
what is another's."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filmroom.release_document import memory_document
from flows.edit import edit
from flows.rollback import rollback
from flows.undo import undo
from flows.workspace import Workspace
from store.database import Store
from store.errors import NotAllowed, NotFound, Refused
from store.facts import facts_at
from store.records import Change
from store.releases import found_project, live_release, version
from tests.shop_log import working_in

T = TypeVar("T")
quick = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
numbers = itertools.count()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with working_in(tmp_path_factory.mktemp("shop")) as opened:
        yield opened


def empty(home: Workspace) -> Workspace:
    """An empty project in the same store."""
    project = f"p{next(numbers)}"
    store = Store(home.store.engine, project)
    with store.write() as connection:
        found_project(connection, project, actor="staff:ann", now_us=0)
    return replace(home, store=store)


def entries(workspace: Workspace) -> dict[str, Any]:
    with workspace.store.read() as connection:
        document: Any = version(connection, live_release(connection, workspace.project).context).content
    return {each["id"]: each for section in document.values() for each in section}


def facts(workspace: Workspace) -> dict[str, Any]:
    with workspace.store.read() as connection:
        position = live_release(connection, workspace.project).memory
        found = facts_at(connection, workspace.project, position, workspace.clock())
    return {
        each.id: (each.scope, each.scope_id, each.subject, each.predicate, each.value, each.source) for each in found
    }


def tried(work: Callable[..., T], *given: Any, **named: Any) -> T | None:
    """What it returns; None where it is refused."""
    try:
        return work(*given, **named)
    except (Refused, NotAllowed, NotFound):
        return None


keys = st.integers(0, 5)
acts = st.tuples(st.sampled_from(["add", "edit", "retire", "undo"]), keys, st.integers(0, 3))


@quick
@given(st.lists(acts, max_size=14))
def test_no_sequence_loses_or_rewords_a_rule_that_was_not_named(
    home: Workspace, steps: list[tuple[str, int, int]]
) -> None:
    workspace = empty(home)
    done: list[Change] = []
    for verb, number, word in steps:
        before = entries(workspace)
        named = {f"rule_{number}"}
        if verb == "undo" and done:
            gone = done[number % len(done)]
            named = {operation.key for operation in gone.operations}
            tried(undo, workspace, gone.id)
        elif verb != "undo":
            value = {"action": "say", "argument": f"word {word}"} if verb != "retire" else {}
            made = tried(edit, workspace, "context", verb, key=f"rule_{number}", value=value)
            done += [made] if made else []
        after = entries(workspace)
        assert {key: each for key, each in after.items() if key not in named} == {
            key: each for key, each in before.items() if key not in named
        }


@quick
@given(
    st.lists(st.tuples(st.sampled_from(["add", "forget", "undo"]), st.integers(0, 7), keys, st.booleans()), max_size=14)
)
def test_no_sequence_loses_a_fact_that_was_not_forgotten_or_superseded_by_name(
    home: Workspace, steps: list[tuple[str, int, int, bool]]
) -> None:
    workspace = empty(home)
    done: list[Change] = []
    for verb, number, word, is_said in steps:
        before = facts(workspace)
        made: Change | None = None
        ended: set[str] = set()
        if verb == "undo" and done:
            gone = done[number % len(done)]
            ended = {operation.key for operation in gone.operations if operation.verb != "forget"}
            tried(undo, workspace, gone.id)
        elif verb == "add":
            predicate = "said" if is_said else f"p{word % 2}"
            value = {"scope_id": f"u{number % 2}", "predicate": predicate, "value": f"word {word}"}
            made = tried(edit, workspace, "memory", "add", key=f"fact_{number}_{word}", value=value)
        elif verb == "forget" and before:
            key = sorted(before)[number % len(before)]
            ended = {key}
            made = tried(edit, workspace, "memory", "forget", key=key)
        done += [made] if made else []
        after = facts(workspace)
        lost = before.keys() - after.keys() - ended
        assert all(_was_superseded(workspace, id_) for id_ in lost)
        assert {id_: after[id_] for id_ in before.keys() & after.keys()} == {
            id_: before[id_] for id_ in before.keys() & after.keys()
        }


def _was_superseded(workspace: Workspace, fact_id: str) -> bool:
    """Whether a fact that is in force names it as the one it took the place of."""
    with workspace.store.read() as connection:
        position = live_release(connection, workspace.project).memory
        found = facts_at(connection, workspace.project, position, workspace.clock())
    return any(each.supersedes == fact_id for each in found)


@quick
@given(st.lists(acts, min_size=1, max_size=8))
def test_taking_back_everything_last_first_leaves_what_was_there(
    home: Workspace, steps: list[tuple[str, int, int]]
) -> None:
    workspace = empty(home)
    edit(workspace, "context", "add", key="rule_0", value={"action": "say", "argument": "first"})
    edit(workspace, "memory", "add", key="fact_0", value={"scope_id": "u0", "predicate": "p0", "value": "first"})
    before = entries(workspace), facts(workspace)
    done = []
    for verb, number, word in steps:
        value = {"action": "say", "argument": f"word {word}"} if verb != "retire" else {}
        done.append(tried(edit, workspace, "context", verb, key=f"rule_{number}", value=value))
        told = {"scope_id": f"u{number % 2}", "predicate": f"p{word % 2}", "value": f"word {word}"}
        done.append(tried(edit, workspace, "memory", "add", value=told))
    for change in reversed([each for each in done if each is not None]):
        undo(workspace, change.id)
    assert (entries(workspace), facts(workspace)) == before


@quick
@given(st.lists(st.tuples(keys, keys), min_size=1, max_size=6), st.data())
def test_a_rollback_serves_every_entry_of_that_release(
    home: Workspace, steps: list[tuple[int, int]], data: st.DataObject
) -> None:
    workspace = empty(home)
    states = {}
    for number, word in steps:
        rule = {"action": "say", "argument": f"word {word}"}
        tried(edit, workspace, "context", "add", key=f"rule_{number}", value=rule)
        fact = {"scope_id": f"u{number % 2}", "predicate": "p", "value": word}
        tried(edit, workspace, "memory", "add", value=fact)
        with workspace.store.read() as connection:
            states[live_release(connection, workspace.project).id] = (entries(workspace), facts(workspace))
    wanted = data.draw(st.sampled_from(sorted(states)))
    tried(rollback, workspace, wanted, reason="test")
    assert (entries(workspace), facts(workspace)) == states[wanted]


ids = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6) | st.sampled_from(
    ["ann", "Ann", "ann ", "*", "%", "_", "a' OR '1'='1", "u1", "u11", "global", "user", "tenant"]
)
told = st.tuples(st.sampled_from(["user", "tenant", "global"]), ids, st.integers(0, 3))


@quick
@given(st.lists(told, max_size=12), ids, st.none() | ids)
def test_a_users_memory_reaches_nobody_else(
    home: Workspace, said: list[tuple[str, str, int]], user: str, tenant: str | None
) -> None:
    workspace = empty(home)
    other = empty(home)
    for scope, whose, number in [*said, ("user", user, 0)]:
        for place, mark in ((workspace, "ours"), (other, "theirs")):
            value = {"scope": scope, "scope_id": whose, "predicate": f"p{number}", "value": f"{mark} {scope} {whose}"}
            tried(edit, place, "memory", "add", value=value)
    with workspace.store.read() as connection:
        served = memory_document(connection, workspace.project, user=user, tenant=tenant, now_us=workspace.clock())
    allowed = {f"ours user {user}", *([f"ours tenant {tenant}"] if tenant else [])}
    assert {each["value"] for each in served["facts"] if each["scope"] != "global"} <= allowed
    assert f"ours user {user}" in {each["value"] for each in served["facts"]}
    assert all(each["value"].startswith("ours ") for each in served["facts"])
