"""`filmroom_live.Live` in a running program: it takes what is live, and nothing that happens to the server is noticed."""

import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import filmroom_live.normalise
import filmroom_live.schema
import models.normalise
import models.schema
from filmroom.release_document import release_document
from filmroom.signature import signed
from filmroom.signing_key import signing_key
from filmroom_live import Live, Prediction, Release, ToolCall
from filmroom_live.documents import BadDocument, read_document, read_release
from filmroom_live.model import load
from filmroom_live.rule_text import plain
from filmroom_live.tool_call import tool_call
from flows.champion import found_model, live_model
from flows.workspace import Workspace
from models.artifacts import Manifest, artifact_path, environment, save
from models.exceptions import ExceptionModel
from models.text_model import TextModel
from store.traces import count_traces
from tests.live_server import change, fact, policy, rule, serving, swap_all, two_models
from tests.live_server import live as live_release_of
from tests.shop_log import working_in

ROOT = Path(__file__).resolve().parent.parent
TEXTS = ["where is order 5", "i want to return item 9", "hello there", "return order status", ""]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A project with one of everything."""
    with working_in(tmp_path / "shop") as opened:
        found_model(opened, "intents")
        change(
            opened, "context", [rule("rule_1", "Offer a voucher first.", intent="cancel"), rule("rule_2", "Be brief.")]
        )
        change(opened, "memory", [fact("fact_1", "u3", "pickup_shop", "Elm Street")])
        change(opened, "tooling", [policy("update_order", normalisers={"order_id": ["trim", "prefix:#"]}, retries=2)])
        yield opened


@contextmanager
def live_of(url: str, **more: Any) -> Iterator[Live]:
    with Live(url=url, **more) as live:
        assert live.ready(30)
        yield live


def until(holds: Callable[[], bool], timeout_s: float = 20.0) -> bool:
    ends = time.monotonic() + timeout_s
    while not holds() and time.monotonic() < ends:
        time.sleep(0.02)
    return holds()


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_all_four_targets_of_the_live_release(workspace: Workspace) -> None:
    with serving(workspace) as url, live_of(url) as live:
        assert live.release.id == live_release_of(workspace).id
        assert live.context("cancel it", intent="cancel") == "## Rules\n- Offer a voucher first.\n- Be brief."
        assert [fact.value for fact in live.memory("u3", wait_s=10)] == ["Elm Street"]
        assert live.tool_call("update_order", {"order_id": " 104"}).arguments == {"order_id": "#104"}
        predicted, expected = live.predict("intents", TEXTS[0]), live_model(workspace, "intents").predict(TEXTS[:1])[0]
    assert predicted == (expected.label, expected.confidence, expected.rejected)


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


def feedback_in(workspace: Workspace) -> int:
    with workspace.store.read() as connection:
        return count_traces(connection, workspace.project)["feedback"]


def test_feedback_waits_on_the_disk_while_the_server_is_away(workspace: Workspace, tmp_path: Path) -> None:
    port, cache = free_port(), tmp_path / "cache"
    with Live(url=f"http://127.0.0.1:{port}", cache=cache) as live:
        for number in range(500):
            live.feedback("t1", name="thumb", score=number)
    assert sum(len(file.read_text().splitlines()) for file in (cache / "feedback").iterdir()) == 500
    with serving(workspace, port=port) as url, live_of(url, cache=cache) as live:
        assert until(lambda: live.status.feedback_waiting == 0)
    assert (feedback_in(workspace), list((cache / "feedback").iterdir())) == (500, [])


def test_the_last_good_release_is_served_when_the_server_is_away(workspace: Workspace, tmp_path: Path) -> None:
    key = signing_key(workspace.settings.home)
    with serving(workspace) as url, live_of(url, cache=tmp_path / "cache", key=key) as live:
        release = live.release
        assert until((tmp_path / "cache" / "release.json").exists)
    with Live(url=url, cache=tmp_path / "cache", key=key) as live:
        assert (live.release, "Be brief." in live.context()) == (release, True)
        assert until(lambda: "refused" in live.status.error)


def test_a_release_on_the_disk_that_was_tampered_with_is_not_served(workspace: Workspace, tmp_path: Path) -> None:
    document = signed_release(workspace)
    document["context"]["rules"][0]["text"] = "Obey."
    (tmp_path / "release.json").write_text(json.dumps(document))
    with Live(url=f"http://127.0.0.1:{free_port()}", cache=tmp_path, key=signing_key(workspace.settings.home)) as live:
        assert (live.context(), live.release.id) == ("", "")


def signed_release(workspace: Workspace) -> dict[str, Any]:
    with workspace.store.read() as connection:
        document = release_document(connection, workspace.project, {})
    return json.loads(json.dumps(signed(document, signing_key(workspace.settings.home))))  # type: ignore[no-any-return]


@contextmanager
def answering(answer: Callable[[socket.socket], object]) -> Iterator[str]:
    """A server that does this with every connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stop = threading.Event()

        def talk(connection: socket.socket) -> None:
            with connection:
                try:
                    connection.recv(65_536)
                    answer(connection)
                except OSError:
                    return

        def listen() -> None:
            listener.settimeout(0.1)
            while not stop.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stop.set()
            thread.join()


def ok(body: bytes, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\nETag: x\r\n\r\n" % (status.encode(), len(body)) + body


def drip(connection: socket.socket) -> None:
    for byte in ok(b"{}" * 500):
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


RUBBISH: dict[str, Callable[[socket.socket], object]] = {
    "nothing": lambda connection: None,
    "no http": lambda connection: connection.sendall(b"\x00\xff" * 1000),
    "a page": lambda connection: connection.sendall(ok(b"<html>welcome</html>")),
    "an error": lambda connection: connection.sendall(ok(b"{}", "500 Oh")),
    "not changed": lambda connection: connection.sendall(ok(b"", "304 Not Modified")),
    "another document": lambda connection: connection.sendall(ok(b'{"format": 1, "release": "rel_x"}')),
    "a list": lambda connection: connection.sendall(ok(b"[" * 100_000)),
    "half": lambda connection: connection.sendall(ok(b'{"format": 1' + b" " * 100)[:-50]),
    "a redirect": lambda connection: connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n"),
    "silence": lambda connection: time.sleep(3),
    "drops": drip,
}


@pytest.mark.parametrize("kind", RUBBISH)
def test_a_broken_server_is_not_noticed(workspace: Workspace, tmp_path: Path, kind: str) -> None:
    (tmp_path / "release.json").write_text(json.dumps(signed_release(workspace)))
    slowest = 0.0
    with answering(RUBBISH[kind]) as url, Live(url=url, cache=tmp_path) as live:
        for number in range(300):
            started = time.perf_counter()
            assert live.context(intent="cancel").count("\n") == 2
            assert live.tool_call("update_order", {"order_id": "1"}).arguments == {"order_id": "#1"}
            assert live.memory(f"u{number}") == ()
            live.feedback("t1", score=1)
            slowest = max(slowest, time.perf_counter() - started)
            time.sleep(0.001)
        started = time.perf_counter()
        assert live.predict("intents", "hello", timeout_s=0.2) is None
        assert time.perf_counter() - started < 2
    assert slowest < 1


def test_nothing_unsigned_is_taken_where_a_key_is_given(workspace: Workspace) -> None:
    with serving(workspace) as url, Live(url=url, key="another key") as live:
        assert until(lambda: "not signed" in live.status.error)
        assert live.release.id == ""


def test_a_wrong_token_is_told_by_the_status(workspace: Workspace) -> None:
    with serving(workspace, token="secret") as url:  # noqa: S106  # the test's own
        with Live(url=url, token="wrong") as live:  # noqa: S106
            assert until(lambda: "401" in live.status.error)
        with live_of(url, token="secret") as live:  # noqa: S106
            assert live.status.error == ""


def test_files_in_a_folder_serve_the_same(workspace: Workspace, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(workspace, "export", "release", str(out), "--memory")
    key = signing_key(workspace.settings.home)
    with Live(folder=out, key=key) as live:
        assert live.ready()
        assert (live.context(intent="cancel"), (out / "context.md").read_text()) == (
            "## Rules\n- Offer a voucher first.\n- Be brief.",
            "## Rules\n- When the intent is cancel: Offer a voucher first.\n- Be brief.\n")  # fmt: skip
        assert ([fact.value for fact in live.memory("u3")], live.memory("u4")) == (["Elm Street"], ())
        assert same(live.predict("intents", TEXTS[0]), live_model(workspace, "intents").predict(TEXTS[:1])[0])
        change(workspace, "context", [rule("rule_2", "Be long.", verb="edit")])
        run(workspace, "export", "release", str(out))
        assert until(lambda: "Be long." in live.context())
        assert live.memory("u3") == ()


def run(workspace: Workspace, *arguments: str) -> str:
    command = [sys.executable, "-m", "filmroom", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=workspace.settings.home, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


def same(found: Prediction | None, expected: Any) -> bool:
    assert found is not None
    is_close = abs(found.confidence - expected.confidence) < 1e-6
    return is_close and (found.label, found.rejected) == (expected.label, expected.rejected)


@pytest.mark.parametrize("learner", ["linear_svc", "logistic", "complement_nb"])
@pytest.mark.parametrize("reject", [False, True])
@pytest.mark.parametrize("exceptions", [False, True])
def test_a_model_in_process_answers_as_in_filmroom(
    tmp_path: Path, learner: str, reject: bool, exceptions: bool
) -> None:
    labels = ["status", "return", "refund"]
    texts = [f"{label} of order {n} please" for n in range(12) for label in labels]
    outside = [f"what is the weather in town {n}" for n in range(12 if reject else 0)]
    beneath = TextModel(learner=learner, out_of_scope="other")
    beneath.fit(texts + outside, labels * 12 + ["other"] * len(outside))
    model: TextModel | ExceptionModel = beneath
    if exceptions:
        model = ExceptionModel(beneath).fit(
            ["take it back", "bring it back", "sing a song"], ["return", "return", "other"]
        )
    made = Manifest(training="", arm="", code_version="", environment=environment())
    digest = save(model, tmp_path, made)
    loaded = load(artifact_path(tmp_path, digest).read_bytes(), digest)
    asked = [*texts, *outside, *TEXTS, "take it back now", "sing a song"]
    assert all(same(loaded.predict(text), expected) for text, expected in zip(asked, model.predict(asked), strict=True))


def test_a_model_file_that_is_not_its_digest_is_refused() -> None:
    with pytest.raises(BadDocument, match="is not"):
        load(b"PK", "0" * 64)


def test_normalisers_and_schema_exist_once() -> None:
    pairs = [(models.normalise, filmroom_live.normalise), (models.schema, filmroom_live.schema)]
    assert all(Path(str(ours.__file__)).samefile(str(theirs.__file__)) for ours, theirs in pairs)


def release_with(**value: Any) -> Release:
    schema = {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "string"}, "cabin": {"enum": ["basic_economy", "business"]}},
    }
    document = {
        "release": "rel_1", "number": 1, "context": {"rules": []}, "memory": {"position": 0}, "models": {},
        "tooling": {"policies": [{"tool": "book", **value}], "tickets": [], "schemas": {"book": schema}},
    }  # fmt: skip
    return read_release(document)


def test_a_call_is_normalised_and_explained() -> None:
    release = release_with(
        normalisers={"cabin": ["enum"], "items.0.id": ["prefix:#"]},
        schema_patch={"properties": {"id": {"pattern": "^#"}}},
    )
    given: dict[str, Any] = {"cabin": "Basic economy", "items": [{"id": "1"}], "id": "7"}
    call = tool_call(release, "book", given)
    assert call.arguments == {"cabin": "basic_economy", "items": [{"id": "#1"}], "id": "7"}
    assert [(each.path, each.before) for each in call.changed] == [("cabin", "Basic economy"), ("items.0.id", "1")]
    assert (call.problems, call.ok) == (('id: "7" does not match the pattern ^#',), False)
    assert given == {"cabin": "Basic economy", "items": [{"id": "1"}], "id": "7"}


def test_a_normaliser_never_breaks_what_the_schema_accepts() -> None:
    call = tool_call(release_with(normalisers={"cabin": ["upper"]}), "book", {"id": "1", "cabin": "business"})
    assert (call.arguments["cabin"], call.changed) == ("business", ())


def test_a_tool_that_is_switched_off_says_so() -> None:
    call = tool_call(release_with(disabled=True, retries=3), "book", {"id": "1"})
    assert (call.disabled, call.ok, call.problems, call.retries) == (True, False, ("book is switched off",), 3)


def test_a_tool_without_a_policy_is_called_as_it_is() -> None:
    assert tool_call(release_with(), "other", {"a": 1}) == ToolCall("other", {"a": 1})


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "cabin", "0", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
CHAINS = st.lists(
    st.sampled_from(["trim", "lower", "upper", "digits", "date_iso", "enum", "prefix:#", "unknown"]), max_size=3
)


@given(arguments=ANYTHING, path=st.sampled_from(["id", "cabin", "x.0", "x.id", "", "9"]), chain=CHAINS)
def test_any_arguments_come_back_and_a_second_time_unchanged(arguments: Any, path: str, chain: list[str]) -> None:
    release = release_with(normalisers={path: chain[:1]})
    once = tool_call(release, "book", arguments)
    again = tool_call(release, "book", once.arguments)
    assert repr(again.arguments) == repr(once.arguments)
    assert all(isinstance(each, str) and len(each) < 3000 for each in once.problems)


@given(
    data=st.binary(max_size=200)
    | st.text(max_size=200).map(str.encode)
    | ANYTHING.map(lambda each: repr(each).encode())
)
def test_no_bytes_break_the_reader(data: bytes) -> None:
    for key in (None, "key"):
        with pytest.raises(BadDocument):
            read_release(read_document(data, key))


@given(text=st.text())
def test_a_sentence_is_one_visible_line(text: str) -> None:
    shown = plain(text)
    assert shown == plain(shown)
    assert "\n" not in shown
    assert shown.isprintable() or {each for each in shown if not each.isprintable()} <= {"\u200c", "\u200d"}


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


def test_a_source_that_is_none_is_told_at_once() -> None:
    with pytest.raises(ValueError, match="either url or folder"):
        Live()
    with pytest.raises(ValueError, match="not an http address"):
        Live(url="ftp://example")
