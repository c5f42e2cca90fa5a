"""Replay: a change tried on the log's cases by the user's own function, in a real child process and behind a real URL."""

import http.server
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from filmroom.health import checks
from filmroom.session import Session
from flows.replay import replay_correction
from flows.replay.child import ChildHook
from flows.replay.hook import MOST_BYTES, Asked, HookFailed
from flows.replay.trial import open_hook
from flows.replay.url import UrlHook
from flows.review import approve, reroute
from flows.turn import turn
from flows.workspace import Workspace
from models.replay import judge_replay
from store.changes import change
from store.errors import NotAllowed, Refused
from store.records import Replay, ReplayResult
from store.replays import results_of
from store.review_queue import review_item, review_queue
from tests.shop_log import SETTINGS, bad_argument, satisfied, take_in, unwritten_rule, working_in

AGENT = '''
"""An agent: it updates the order it is asked about, as the release says, and greets whoever greets."""

def replay(input, release, tools):
    if input != "change my order":
        return {"output": "good day", "tool_calls": [], "cost": 0.01}
    policies = {each["tool"]: each for each in release["tooling"]["policies"]}
    number = "140"
    if "prefix:#" in policies.get("update_order", {}).get("normalisers", {}).get("order_id", []):
        number = "#" + number
    try:
        return {"output": tools("update_order", {"order_id": number}), "tool_calls": [], "cost": 0.01}
    except Exception as error:
        return {"output": "that did not work", "tool_calls": [], "cost": 0.01}

def voucher(input, release, tools):
    said = " ".join(each["argument"] for each in release["context"]["rules"])
    if "no more" in said:
        return {"output": "no", "cost": 0}
    if input == "hello":
        return {"output": "good day", "cost": 0}
    return {"output": "Before I cancel, may I offer you a voucher?" if "voucher" in said else "It is cancelled.", "cost": 0}

def live_call(input, release, tools):
    return {"output": tools("transfer_money", {"amount": 1}, lambda amount: "moved"), "cost": 0}

def swallows(input, release, tools):
    try:
        tools("transfer_money", {"amount": 1})
    except Exception:
        pass
    return {"output": "good day", "cost": 0}

def hangs(input, release, tools):
    import time
    time.sleep(60)

def crashes(input, release, tools):
    import os
    os._exit(3)

def raises(input, release, tools):
    raise ValueError("no model here")

def garbage(input, release, tools):
    return "no dict"

def not_json(input, release, tools):
    return {"output": object(), "cost": 0}

def prints(input, release, tools):
    print("x" * 100_000)
    import sys, os
    os.write(1, b"raw words\\n")
    sys.stdout.flush()
    return {"output": "good day", "cost": 0}

def endless(input, release, tools):
    while True:
        print("x" * 65_000, flush=True)

def huge(input, release, tools):
    return {"output": "x" * 8_000_000, "cost": 0}

def costly(input, release, tools):
    return {"output": "good day", "cost": 0.4}

def with_child(input, release, tools):
    import subprocess, sys
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).wait()

def check(input, output, case):
    return output == (case["corrected_output"] or case["output"])
'''


@contextmanager
def shop(folder: Path, hook: str, *groups: Any, check: str = "", **settings: Any) -> Iterator[Workspace]:
    """A project with a failing tool call, `hook` as its agent; what `#140` answers is in the log."""
    folder.mkdir(exist_ok=True)
    (folder / "shop_agent.py").write_text(AGENT)
    place = hook if hook.startswith("http") else f"shop_agent:{hook}"
    lines = [f'replay = "{place}"', *([f'check = "shop_agent:{check}"'] if check else []),
             *(f"{name} = {json.dumps(value)}" for name, value in settings.items())]  # fmt: skip
    with working_in(folder, SETTINGS.replace("[agent]\n", "[agent]\n" + "\n".join(lines) + "\n")) as opened:
        right = {"id": "c", "kind": "tool", "name": "update_order", "input": {"order_id": "#140"}, "output": "changed"}
        take_in(opened, *(satisfied(n) for n in range(8)), satisfied(9, spans=[right]), *groups)
        yield opened


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with shop(tmp_path, "replay", *(bad_argument(40) for _ in range(1)), *same_call(6)) as opened:
        yield opened


def same_call(count: int) -> list[list[dict[str, Any]]]:
    """The same failing call in `count` conversations."""
    found = []
    for number in range(50, 50 + count):
        lines = bad_argument(number)
        lines[0]["spans"][0]["input"] = {"order_id": "140"}
        found.append(lines)
    return found


def routed(workspace: Workspace) -> str:
    turn(workspace.acting(settings=without_hook(workspace)))
    return str(review_queue(workspace.store)[0]["correction"])


def without_hook(workspace: Workspace) -> Any:
    agent = workspace.settings.agent.model_copy(update={"replay": None})
    return workspace.settings.model_copy(update={"agent": agent})


def results(workspace: Workspace, made: Replay | None) -> list[ReplayResult]:
    assert made is not None
    with workspace.store.read() as connection:
        return results_of(connection, made.id)


def reasons(workspace: Workspace, made: Replay | None) -> set[str]:
    return {each.why for each in results(workspace, made)}


def test_a_fix_that_repairs_is_shown_and_no_longer_on_probation(workspace: Workspace) -> None:
    correction = routed(workspace)
    made = replay_correction(workspace, correction)
    assert made is not None
    assert (made.verdict, made.numbers["cases"], made.numbers["fixed"], made.numbers["control_fixed"]) == (
        "repairs",
        7,
        7,
        0,
    )
    assert (made.numbers["neighbours"], made.numbers["broken"], made.hook) == (
        9,
        1,
        "shop_agent:replay",
    ) or made.numbers["broken"] == 0
    assert review_item(workspace.store, correction)["replay"]["sentence"] == made.sentence
    done = approve(workspace, correction)
    with workspace.store.read() as connection:
        assert change(connection, workspace.project, str(done.change)).probation is False


def test_the_turn_replays_what_waits_once(workspace: Workspace) -> None:
    turn(workspace)
    correction = str(review_queue(workspace.store)[0]["correction"])
    first = review_item(workspace.store, correction)["replay"]
    turn(workspace)
    assert first["verdict"] == "repairs"
    assert review_item(workspace.store, correction)["replay"]["replay"] == first["replay"]


def test_trying_changes_nothing_that_is_served(workspace: Workspace) -> None:
    correction = routed(workspace)
    before = review_item(workspace.store, correction)["state"]
    with workspace.store.read() as connection:
        live = connection.exec_driver_sql("SELECT release_id, moved_us FROM live").all()
        versions = connection.exec_driver_sql("SELECT count(*) FROM versions").scalar_one()
    replay_correction(workspace, correction)
    with workspace.store.read() as connection:
        assert connection.exec_driver_sql("SELECT release_id, moved_us FROM live").all() == live
        assert connection.exec_driver_sql("SELECT count(*) FROM versions").scalar_one() == versions
    assert review_item(workspace.store, correction)["state"] == before


def test_without_a_hook_a_change_goes_on_probation(workspace: Workspace) -> None:
    bare = workspace.acting(settings=without_hook(workspace))
    done = approve(bare, routed(workspace))
    with workspace.store.read() as connection:
        assert change(connection, workspace.project, str(done.change)).probation is True


def test_an_answer_is_tried_before_it_is_applied_and_harm_is_refused(tmp_path: Path) -> None:
    with shop(tmp_path, "voucher", *(unwritten_rule(n) for n in range(60, 66)), check="check") as workspace:
        correction = routed(workspace)
        with pytest.raises(Refused, match=r"the replay refuses.*it does harm"):
            approve(workspace, correction, answer="Say no more.")
        assert review_item(workspace.store, correction)["state"] == "proposed"
        done = approve(workspace, correction, answer="Offer a voucher first.")
        assert "repaired its cases in replay" in done.next


def test_what_repairs_nothing_by_the_users_own_check_is_refused(tmp_path: Path) -> None:
    with shop(tmp_path, "voucher", *(unwritten_rule(n) for n in range(60, 66)), check="check") as workspace:
        correction = routed(workspace)
        with pytest.raises(Refused, match="it repairs nothing: 0 of 6 cases right"):
            approve(workspace, correction, answer="Be kind.")


@pytest.mark.parametrize("hook", ["live_call", "swallows"])
def test_a_call_that_is_not_recorded_is_not_measured_also_when_it_is_swallowed(tmp_path: Path, hook: str) -> None:
    with shop(tmp_path, hook, *same_call(3)) as workspace:
        made = replay_correction(workspace, routed(workspace))
        assert reasons(workspace, made) == {"a call that is not recorded: transfer_money"}
        assert made is not None
        assert made.verdict == "not_measured"


def test_a_tool_that_is_listed_as_safe_may_be_called(tmp_path: Path) -> None:
    with shop(tmp_path, "live_call", *same_call(3), safe_tools=["transfer_money"]) as workspace:
        made = replay_correction(workspace, routed(workspace))
        assert {each.output for each in results(workspace, made)} == {"moved"}


BROKEN = [
    ("hangs", "the hook failed: no answer within the time limit"), ("crashes", "the hook failed: the process ended"),
    ("raises", "the hook failed: ValueError: no model here"), ("garbage", "the hook failed: TypeError: the replay function"),
    ("not_json", "the hook failed: the answer is not JSON"), ("endless", "the hook failed: no answer within the time limit"),
    ("huge", f"the hook failed: an answer of more than {MOST_BYTES >> 20} MiB"),
    ("with_child", "the hook failed: no answer within the time limit"), ("missing", "the hook failed: AttributeError"),
]  # fmt: skip


@pytest.mark.parametrize(("hook", "why"), BROKEN)
def test_a_hook_that_fails_is_no_failure_of_the_fix(tmp_path: Path, hook: str, why: str) -> None:
    limits: dict[str, Any] = {"replay_timeout_s": 0.5, "replay_cases": 2, "replay_neighbours": 0}
    with shop(tmp_path, hook, *same_call(2), **limits) as workspace:
        correction = routed(workspace)
        started = time.monotonic()
        made = replay_correction(workspace, correction)
        assert time.monotonic() - started < 20
        assert [each.outcome for each in results(workspace, made)] == ["not_measured"] * 4
        assert all(each.startswith(why) for each in reasons(workspace, made))
        assert approve(workspace, correction).live


def test_a_hook_that_does_not_exist_fails_the_hook_only(tmp_path: Path) -> None:
    with shop(tmp_path, "replay", *same_call(2), python="/no/python") as workspace:
        made = replay_correction(workspace, routed(workspace))
        assert all("/no/python" in each for each in reasons(workspace, made))


def asked(input: str = "hello") -> Asked:
    return Asked(input=input, release={"tooling": {"policies": []}, "context": {"rules": []}}, recorded=[], case={})


@contextmanager
def child(folder: Path, hook: str, timeout_s: float = 20.0) -> Iterator[ChildHook]:
    (folder / "shop_agent.py").write_text(AGENT)
    made = ChildHook(f"shop_agent:{hook}", python=sys.executable, home=folder, check=None, timeout_s=timeout_s, safe=())
    try:
        yield made
    finally:
        made.close()


def test_what_the_function_prints_is_not_its_answer(tmp_path: Path) -> None:
    with child(tmp_path, "prints") as hook:
        assert [hook.ask(asked()).output for _ in range(3)] == ["good day"] * 3


def test_a_child_that_was_killed_is_followed_by_a_new_one(tmp_path: Path) -> None:
    with child(tmp_path, "hangs", timeout_s=0.5) as hook:
        for _ in range(2):
            with pytest.raises(HookFailed, match="time limit"):
                hook.ask(asked())


def test_an_input_of_megabytes_goes_through(tmp_path: Path) -> None:
    with child(tmp_path, "replay") as hook:
        assert hook.ask(asked("x" * 3_000_000)).output == "good day"


def test_asking_stops_at_the_cost_cap(tmp_path: Path) -> None:
    with shop(tmp_path, "costly", *same_call(3), replay_cost_usd=1.0, replay_workers=1) as workspace:
        made = replay_correction(workspace, routed(workspace))
        found = [each.why for each in results(workspace, made)]
        assert made is not None
        assert found.count("the cost cap was reached") == len(found) - 3
        assert made.cost_usd == pytest.approx(1.2)


def test_repeats_are_asked_and_the_majority_counts(tmp_path: Path) -> None:
    with shop(tmp_path, "replay", *same_call(2), replay_repeats=3, replay_neighbours=0) as workspace:
        assert len(results(workspace, replay_correction(workspace, routed(workspace)))) == 2 * 3 * 2
    votes = ["right", "right", "wrong"]
    answers = [ReplayResult(trace_id="t", role="case", arm=arm, repeat=n, outcome=outcome)
               for arm, found in (("fix", votes), ("control", ["wrong"] * 3)) for n, outcome in enumerate(found)]  # fmt: skip
    assert judge_replay(answers).numbers["fixed"] == 1


@contextmanager
def service(answer: Callable[[Any, Any], None]) -> Iterator[str]:
    """A server on loopback whose POST is `answer(handler, body)`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/replay"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def sends(handler: Any, value: Any, status: int = 200) -> None:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    handler.send_response(status)
    handler.send_header("Location", "http://127.0.0.1:9/")
    handler.end_headers()
    handler.wfile.write(body)


def as_agent(handler: Any, body: Any) -> None:
    policies = {each["tool"]: each for each in body["release"]["tooling"]["policies"]}
    fixed = "update_order" in policies and body["input"] == "change my order"
    call = {"name": "update_order", "arguments": {"order_id": "#140" if fixed else "140"}}
    known = {json.dumps([each["name"], each["arguments"]]): each["answers"][0] for each in body["tools"]}
    if body["input"] != "change my order":
        return sends(handler, {"output": "good day", "tool_calls": [], "cost": 0})
    answer = known[json.dumps([call["name"], call["arguments"]])]
    return sends(handler, {"output": answer.get("output"), "tool_calls": [{**call, **answer}], "cost": 0})


def test_a_hook_behind_a_url_does_the_same(tmp_path: Path) -> None:
    with service(as_agent) as url, shop(tmp_path, url, *same_call(6)) as workspace:
        made = replay_correction(workspace, routed(workspace))
        assert made is not None
        assert (made.verdict, made.numbers["fixed"], made.numbers["control_fixed"]) == ("repairs", 6, 0)


def drips(handler: Any, _: Any) -> None:
    for _ in range(200):
        handler.wfile.write(b"H")
        handler.wfile.flush()
        time.sleep(0.05)


def floods(handler: Any, _: Any) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b"x" * 1_000_000)


BAD_SERVICES: list[tuple[str, Callable[[Any, Any], Any], str]] = [
    ("hangs", lambda handler, _: time.sleep(3), "time limit"),
    ("drips", drips, "time limit|Protocol"),
    ("floods", floods, "more than"),
    ("crashes", lambda handler, _: handler.connection.close(), "Error"),
    ("rubbish", lambda handler, _: sends(handler, b"<html>"), "not JSON"),
    ("no_output", lambda handler, _: sends(handler, {"cost": 1}), "no `output`"),
    ("list", lambda handler, _: sends(handler, [1]), "not an object"),
    ("error", lambda handler, _: sends(handler, {}, 500), "answers 500"),
    ("redirect", lambda handler, _: sends(handler, {}, 302), "answers 302"),
    ("bad_cost", lambda handler, _: sends(handler, {"output": 1, "cost": "much"}), "no amount of money"),
]


@pytest.mark.parametrize(("answer", "why"), [each[1:] for each in BAD_SERVICES], ids=[each[0] for each in BAD_SERVICES])
def test_a_service_that_is_broken_is_said_to_be(answer: Callable[[Any, Any], Any], why: str) -> None:
    with service(answer) as url:
        hook = UrlHook(url, timeout_s=0.5, safe=())
        started = time.monotonic()
        with pytest.raises(HookFailed, match=why):
            hook.ask(asked())
        assert time.monotonic() - started < 5
        hook.close()


def test_a_service_that_reports_a_call_that_is_not_recorded_is_not_measured() -> None:
    reported = {"output": "x", "cost": 0, "tool_calls": [{"name": "pay", "arguments": {"eur": 1}}]}
    with service(lambda handler, _: sends(handler, reported)) as url:
        assert UrlHook(url, timeout_s=5, safe=()).ask(asked()).missing == ["pay"]
        assert UrlHook(url, timeout_s=5, safe=("pay",)).ask(asked()).missing == []


def test_what_lacks_an_answer_cannot_be_replayed_and_says_so(workspace: Workspace) -> None:
    correction = routed(workspace)
    reroute(workspace, correction, to="context")
    with pytest.raises(NotAllowed, match="before it has what it needs"):
        replay_correction(workspace, correction)


def test_the_hook_is_chosen_by_its_name(workspace: Workspace) -> None:
    hook = open_hook(workspace)
    assert isinstance(hook, ChildHook)
    hook.close()


def test_the_doctor_says_whether_the_hook_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for hook, ok in (("hangs", True), ("missing", False)):
        with shop(tmp_path / hook, hook, *same_call(1)):
            monkeypatch.chdir(tmp_path / hook)
            [found] = [each for each in checks(Session()) if each["name"] == "replay"]
            assert (found["ok"], "shop_agent" in found["detail"]) == (ok, True)


def test_a_few_cases_say_nothing_and_many_without_effect_do() -> None:
    def both(count: int, fix: str) -> list[ReplayResult]:
        return [ReplayResult(trace_id=f"t{n}", role="case", arm=arm, outcome=outcome)
                for n in range(count) for arm, outcome in (("fix", fix), ("control", "wrong"))]  # fmt: skip

    assert [judge_replay(both(n, "wrong")).verdict for n in (0, 2, 3)] == ["not_measured", "not_measured", "no_effect"]
    assert [judge_replay(both(n, "right")).verdict for n in (4, 5)] == ["not_measured", "repairs"]
