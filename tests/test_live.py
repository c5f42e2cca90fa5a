"""`filmroom_live.Live` in a running program: it takes what is live, whole and for whom it is meant."""

import hashlib
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st

from filmroom.signing_key import signing_key
from filmroom_live import Live
from flows.champion import live_model
from flows.serving import promote
from flows.workspace import Workspace
from models.artifacts import artifact_path
from store.records import Version
from tests.live_program import feedback_in, live_of, one_of_everything, run_filmroom, same, until
from tests.live_server import change, fact, rule, serving, swap_all, two_models
from tests.live_server import live as live_release_of
from tests.shop_log import working_in

TEXTS = ["where is order 5"]
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A project with one of everything."""
    with one_of_everything(tmp_path / "shop") as opened:
        yield opened


def test_all_four_targets_of_the_live_release(workspace: Workspace) -> None:
    with serving(workspace) as url, live_of(url) as live:
        assert live.release.id == live_release_of(workspace).id
        assert live.context("cancel it", intent="cancel") == "## Rules\n- Offer a voucher first.\n- Be brief."
        assert [fact.value for fact in live.memory("u3", wait_s=10)] == ["Elm Street"]
        assert live.tool_call("update_order", {"order_id": " 104"}).arguments == {"order_id": "#104"}
        predicted, expected = live.predict("intents", TEXTS[0]), live_model(workspace, "intents").predict(TEXTS[:1])[0]
    assert predicted == (expected.label, expected.confidence, expected.rejected)


def test_a_model_of_a_kind_that_is_not_known_here_keeps_no_release_back(workspace: Workspace) -> None:
    data = skops.io.dumps({"format": 1, "kind": "of a later filmroom", "parts": {}})
    digest = hashlib.sha256(data).hexdigest()
    artifact_path(workspace.artifacts, digest).write_bytes(data)
    made = Version(project=workspace.project, target="weights", model="later", content={"artifact": digest},
                   created_us=workspace.clock())  # fmt: skip
    with workspace.store.write() as connection:
        promote(connection, workspace, "later", made, reason="test")
    with serving(workspace) as url, live_of(url, in_process=True) as live:
        assert live.release.id == live_release_of(workspace).id
        assert same(live.predict("intents", TEXTS[0]), live_model(workspace, "intents").predict(TEXTS[:1])[0])
        assert sorted(live.pin().models) == ["intents"]


def test_a_new_release_is_taken_without_asking(workspace: Workspace) -> None:
    with serving(workspace) as url, live_of(url) as live:
        before = live.pin()
        change(workspace, "context", [rule("rule_2", "Be long.", verb="edit")])
        assert until(lambda: "Be long." in live.context())
        assert "Be brief." in before.context()


def test_what_is_known_selects_a_rule_and_what_is_not_is_spelled_out(workspace: Workspace) -> None:
    with serving(workspace) as url, live_of(url) as live:
        assert live.context(intent="status") == "## Rules\n- Be brief."
        assert live.context() == "## Rules\n- When the intent is cancel: Offer a voucher first.\n- Be brief."
        assert [found.id for found in live.rules(intent="cancel")] == ["rule_1", "rule_2"]


def test_memory_is_there_at_the_second_call_and_never_waits_for_the_network(workspace: Workspace) -> None:
    with serving(workspace) as url, live_of(url) as live:
        assert live.memory("u3") == ()
        assert until(lambda: [fact.value for fact in live.memory("u3")] == ["Elm Street"])
        assert live.memory("u4", wait_s=10) == ()


def test_a_release_comes_with_the_facts_of_those_who_are_active(workspace: Workspace) -> None:
    with serving(workspace) as url, live_of(url) as live:
        live.memory("u3", wait_s=10)
        release = change(workspace, "memory", [fact("fact_2", "u3", "pickup_shop", "Main Street")])
        assert until(lambda: live.release.id == release.id)
        assert [fact.value for fact in live.memory("u3")] == ["Main Street"]


def test_feedback_arrives_once(workspace: Workspace) -> None:
    with serving(workspace) as url:
        with live_of(url) as live:
            live.feedback("t1", name="thumb", score=0, comment="wrong shop", principal="u3")
            assert until(lambda: live.status.feedback_waiting == 0)
        assert feedback_in(workspace) == 1


def test_files_in_a_folder_serve_the_same(workspace: Workspace, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_filmroom(workspace, "export", "release", str(out), "--memory")
    key = signing_key(workspace.settings.home)
    with Live(folder=out, key=key) as live:
        assert live.ready()
        assert (live.context(intent="cancel"), (out / "context.md").read_text()) == (
            "## Rules\n- Offer a voucher first.\n- Be brief.",
            "## Rules\n- When the intent is cancel: Offer a voucher first.\n- Be brief.\n")  # fmt: skip
        assert ([fact.value for fact in live.memory("u3")], live.memory("u4")) == (["Elm Street"], ())
        assert same(live.predict("intents", TEXTS[0]), live_model(workspace, "intents").predict(TEXTS[:1])[0])
        change(workspace, "context", [rule("rule_2", "Be long.", verb="edit")])
        run_filmroom(workspace, "export", "release", str(out))
        assert until(lambda: "Be long." in live.context())
        assert live.memory("u3") == ()


@settings(max_examples=20, deadline=None)
@given(
    facts=st.lists(
        st.tuples(st.sampled_from(["user", "tenant", "global"]), st.sampled_from(["ann", "bob", "eve", "*"])), max_size=12),
    askers=st.lists(st.tuples(st.sampled_from(["ann", "bob", "eve", "*"]), st.none() | st.sampled_from(["ann", "bob"])),
                    min_size=1, max_size=4),
)  # fmt: skip
def test_one_users_memory_never_reaches_another(
    facts: list[tuple[str, str]], askers: list[tuple[str, str | None]], memory_home: tuple[Workspace, str, Live]
) -> None:
    workspace, _, live = memory_home
    mark = f"p{time.time_ns()}"
    operations = [
        fact(f"fact_{mark}_{n}", whose, f"{mark}_{n}", [scope, whose], scope=scope)
        for n, (scope, whose) in enumerate(facts)
    ]
    release = change(workspace, "memory", operations) if operations else live_release_of(workspace)
    assert until(lambda: live.release.id == release.id)
    for user, tenant in askers:
        found = [each.value for each in live.memory(user, tenant=tenant, wait_s=20) if each.predicate.startswith(mark)]
        allowed = [["user", user], ["tenant", tenant]]
        expected = [list(each) for each in facts if each[0] == "global" or list(each) in allowed]
        assert sorted(map(repr, found)) == sorted(map(repr, expected))


@pytest.fixture(scope="module")
def memory_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workspace, str, Live]]:
    with (
        working_in(tmp_path_factory.mktemp("memory")) as opened,
        serving(opened) as url,
        Live(url=url, key=signing_key(opened.settings.home)) as live,
    ):
        yield opened, url, live


@pytest.mark.slow
def test_a_hundred_swaps_of_all_four_targets_under_load(workspace: Workspace) -> None:
    """No request fails, and none is answered from two releases."""
    with working_in(workspace.settings.home.parent / "swaps") as swapped:
        labels = dict(zip(two_models(swapped), ("status", "renamed"), strict=True))
        versions = list(labels)
        expected = {swap_all(swapped, 0, versions[0]).id: (0, "status")}
        seen: set[tuple[str, str, tuple[Any, ...], int, str | None]] = set()
        counts: list[int] = []
        stop = threading.Event()
        with serving(swapped) as url, live_of(url) as live:
            live.memory("u3", wait_s=20)

            def ask() -> None:
                asked = 0
                while not stop.is_set():
                    held = live.pin()
                    predicted = (
                        held.predict("intents", "where is order 5 now", timeout_s=60) if asked % 10 == 0 else None
                    )
                    facts = tuple(found.value for found in held.memory("u3"))
                    label = predicted.label if predicted else ("failed" if asked % 10 == 0 else None)
                    retries = held.tool_call("update_order", {}).retries
                    seen.add((held.release.id, held.context(), facts, retries, label))
                    asked += 1
                    time.sleep(0.005)
                counts.append(asked)

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            for number in range(1, 101):
                version = versions[number % 2]
                release = swap_all(swapped, number, version)
                expected[release.id] = (number, labels[version])
                until(lambda release=release: live.release.id == release.id)  # type: ignore[misc]
            stop.set()
            for thread in threads:
                thread.join()
    for id_, context, facts, retries, predicted_label in seen:
        number, label = expected[id_]
        assert (context, facts, retries) == (f"## Rules\n- Say {number}.", (number,), number)
        assert predicted_label in (None, label)
    assert len({id_ for id_, *_ in seen}) > 90
    assert sum(counts) > 1000


@pytest.mark.slow
def test_a_forked_child_goes_on_by_itself(workspace: Workspace, tmp_path: Path) -> None:
    code = """
        import os, sys, time, warnings
        warnings.simplefilter("ignore")
        from filmroom_live import Live
        live = Live(url=sys.argv[1], cache=sys.argv[2])
        assert live.ready() and live.memory("u3", wait_s=10)
        child = os.fork()
        if child == 0:
            assert "Be brief." in live.context()
            live.feedback("t1", name="child", score=1)
            ends = time.monotonic() + 30
            while "Be long." not in live.context() and time.monotonic() < ends:
                time.sleep(0.05)
            ok = "Be long." in live.context() and live.memory("u3", wait_s=10)[0].value == "Elm Street"
            live.close()
            os._exit(0 if ok else 3)
        print("forked", flush=True)
        live.feedback("t1", name="parent", score=1)
        _, status = os.waitpid(child, 0)
        live.close()
        sys.exit(os.waitstatus_to_exitcode(status))
    """
    with serving(workspace) as url:
        command = [sys.executable, "-c", textwrap.dedent(code), url, str(tmp_path / "cache")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "client")}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        with process.stdout:
            assert process.stdout.readline() == "forked\n"
            change(workspace, "context", [rule("rule_2", "Be long.", verb="edit")])
            assert process.wait(60) == 0
    assert feedback_in(workspace) == 2
