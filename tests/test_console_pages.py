"""What single pages of the console show and do."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from filmroom.console.chain import picture
from filmroom.console.markdown import rendered
from filmroom.console.page import environment
from filmroom.console.proposed import operation_lines
from filmroom.main import main
from flows.apply import no_place
from flows.compare import compare
from flows.opinions import give_opinion, take_back
from flows.workspace import Workspace
from store.errors import NotAllowed
from store.records import GateStage, Operation, Retrain
from store.records.replays import Replay
from store.records.weights import ChangedAnswer
from store.releases import live_release
from store.replays import put_replay
from store.retrains import put_retrain
from tests.console_home import client, console, correction_in, reviewing
from tests.live_server import two_models


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with reviewing(tmp_path, tools=2) as opened:
        yield opened


def test_two_models_are_compared_by_the_rows_they_answer_differently(workspace: Workspace) -> None:
    first, second = two_models(workspace)
    found = compare(workspace, first, second)
    assert (found.rows, found.newly_right, found.newly_wrong > 0) == (40, len(found.right), True)
    assert {each.label for each in found.wrong} == {"status"}


def test_two_states_of_the_rules_are_compared_by_their_entries(workspace: Workspace) -> None:
    with workspace.store.read() as connection:
        before = live_release(connection, workspace.project).context
    give_opinion(workspace, correction_in(workspace, "context"), "approve", answer="Offer a voucher.")
    with workspace.store.read() as connection:
        after = live_release(connection, workspace.project)
    found = compare(workspace, before, after.context)
    assert ([each["argument"] for each in found.added], found.removed, found.rows) == (["Offer a voucher."], (), None)
    with pytest.raises(NotAllowed, match="cannot be compared"):
        compare(workspace, before, after.tooling)


def test_a_diff_has_what_goes_and_what_comes() -> None:
    operation = Operation(
        target="context", verb="edit", key="rule_1", value={"action": "say", "argument": "b", "scope": {}}
    )
    before = {"id": "rule_1", "action": "say", "argument": "a", "author": "staff:ann"}
    assert operation_lines(operation, before) == [
        {"sign": " ", "text": "action: say"}, {"sign": "-", "text": "argument: a"}, {"sign": "+", "text": "argument: b"},
        {"sign": "+", "text": "scope: {}"},
    ]  # fmt: skip


def test_the_picture_draws_a_cause_before_its_effect() -> None:
    trace = {"id": "trc_1", "kind": "trace", "causes": []}
    failure = {"id": "fail_1", "kind": "failure", "causes": [trace]}
    cluster = {"id": "clu_1", "kind": "cluster", "causes": [failure]}
    correction = {"id": "cor_1", "kind": "correction", "causes": [cluster]}
    review = {"id": "rev_1", "kind": "review", "causes": [{"id": "cor_1", "kind": "correction", "causes": []}]}
    found = {"id": "chg_1", "kind": "change", "causes": [correction, review], "effects": []}
    drawn = picture(found)
    x = {node.kind: node.x for node in drawn.nodes}
    assert sorted(x, key=lambda kind: x[kind]) == ["trace", "failure", "cluster", "correction", "review", "change"]
    assert all(line.x1 < line.x2 for line in drawn.lines)


def test_a_verdict_by_script_brings_the_next_correction_along(workspace: Workspace) -> None:
    id_ = correction_in(workspace, "tooling")
    with console(workspace) as url, client(workspace, url, "ann") as ann:
        page = ann.get(f"/review/{id_}").text
        token = page.split('name="csrf" value="')[1].split('"')[0]
        fields = {"csrf": token, "filter": "target=tooling", "reason": "seen"}
        straight = ann.post(f"/review/{id_}/reject", data=fields, headers={"hx-request": "true"})
        plain = ann.post(f"/review/{correction_in(workspace, 'tooling')}/reject", data=fields)
    assert (straight.status_code, straight.headers["hx-push-url"].endswith("?target=tooling")) == (200, True)
    assert ("rejected" in straight.text, 'name="reason" rows="1" maxlength="2000"></textarea>' in straight.text) == (
        True,
        True,
    )
    assert plain.status_code == 303


def test_what_is_refused_keeps_what_was_written(workspace: Workspace) -> None:
    id_ = correction_in(workspace, "memory")
    with console(workspace) as url, client(workspace, url, "ann") as ann:
        token = ann.get(f"/review/{id_}").text.split('name="csrf" value="')[1].split('"')[0]
        fields = {"csrf": token, "filter": "", "answer": "no JSON <b>", "reason": "because"}
        refused = ann.post(f"/review/{id_}/approve", data=fields)
    assert (refused.status_code, "the answer must be" in refused.text) == (409, True)
    assert ("no JSON &lt;b&gt;</textarea>" in refused.text, ">because</textarea>" in refused.text) == (True, True)


def test_a_bulk_verdict_does_nothing_once_the_queue_has_changed(workspace: Workspace) -> None:
    with console(workspace) as url, client(workspace, url, "ann") as ann:
        seen = ann.post("/api/corrections/bulk/preview", json={"target": "tooling"}).json()
        give_opinion(workspace, seen["ids"][0], "reject")
        body = {"filter": {"target": "tooling"}, "verdict": "approve", "digest": seen["digest"]}
        stale = ann.post("/api/corrections/bulk", json=body)
        again = ann.post("/api/corrections/bulk/preview", json={"target": "tooling"}).json()
        done = ann.post("/api/corrections/bulk", json={**body, "digest": again["digest"]}).json()
    assert (stale.status_code, "look again" in stale.json()["message"]) == (409, True)
    assert ([each["correction"] for each in done["done"]], done["failed"]) == (again["ids"], {})


def test_a_bulk_verdict_leaves_out_what_somebody_else_is_at(workspace: Workspace) -> None:
    with console(workspace) as url, client(workspace, url, "ann") as ann, client(workspace, url, "bob") as bob:
        id_ = correction_in(workspace, "tooling")
        bob.post(f"/api/corrections/{id_}/claim")
        seen = ann.post("/api/corrections/bulk/preview", json={"target": "tooling"}).json()
    assert (id_ in seen["ids"], seen["claimed"], seen["matching"]) == (False, 1, len(seen["ids"]) + 1)


def test_the_newest_replay_stands_beside_the_proposed_change(workspace: Workspace) -> None:
    id_ = correction_in(workspace, "tooling")
    with workspace.store.write() as connection:
        live = live_release(connection, workspace.project)
        value = Replay(correction_id=id_, digest="0" * 64, release_id=live.id, at_us=1, hook="agent:replay",
                       verdict="repairs", sentence="8 of 8 cases mended", numbers={"cases": 8.0})  # fmt: skip
        put_replay(connection, value, [])
    with console(workspace) as url, client(workspace, url, "eva", "viewer") as eva:
        page = eva.get(f"/review/{id_}").text
    assert ("8 of 8 cases mended" in page, "Replay: not measured" in page) == (True, False)


STRANGE = (
    "\x00",
    "\ud800",
    "é" * 60,
    "' OR 1=1 --",
    "../../etc/passwd",
    "%00",
    "9" * 40,
    "-1",
    "{}",
    "<x>",
    "cor_\U0001f600",
)

ODD_BODY = b'{"id": "\\ud800", "reason": "\\u0000", "name": "x", "to": "memory", "filter": {}, "number": 1e400}'
JSON = {"content-type": "application/json"}


def test_nothing_strange_breaks_the_api(workspace: Workspace) -> None:
    """Every endpoint with values that no client sends: told why not, never 500."""
    with console(workspace) as url, client(workspace, url, "root", "admin") as root:
        schema = root.get("/api/openapi.json").json()
        broken = {}
        for path, methods in schema["paths"].items():
            for method, endpoint in methods.items():
                asked = [each["name"] for each in endpoint.get("parameters", []) if each["in"] == "query"]
                for text in STRANGE:
                    spelt = quote(text.encode("utf-8", "surrogatepass"), safe="")
                    query = "&".join(f"{name}={spelt}" for name in asked)
                    address = (
                        "/api" + path.replace("{id}", spelt).replace("{name}", spelt) + (f"?{query}" if query else "")
                    )
                    answer = root.request(method, address, content=None if method == "get" else ODD_BODY, headers=JSON)
                    if answer.status_code >= 500:
                        broken[f"{method} {path} {text!r}"] = answer.text[:200]
    assert broken == {}


SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>"


def test_markdown_comes_out_without_scripts_links_or_styles() -> None:
    text = (
        f"# `{SCRIPT}`\n\n{SCRIPT}\n\n[x](javascript:alert(1)) ![x](https://a/b) <javascript:alert(1)> [r]\n\n"
        f"[r]: javascript:alert(1)\n\n| a |\n|:-:|\n| {SCRIPT} |\n"
    )
    found = str(rendered(text))
    tags = set(re.findall(r"<([a-z0-9]+)", found))
    assert tags == {"h2", "code", "p", "div", "table", "thead", "tr", "th", "tbody", "td"}
    assert (" style=" in found, " href=" in found, " src=" in found.replace("src=x", "")) == (False, False, False)


def test_a_models_page_has_its_card_its_gate_and_the_answers_it_changed(workspace: Workspace) -> None:
    first, second = two_models(workspace)
    changed = {"trace_id": "trc_9", "row": "r", "truth": SCRIPT, "champion": "b", "challenger": None}
    made = Retrain(
        id="ret_1", model="intents", at_us=1, decision="promoted", reason=SCRIPT, version=second, parent=first,
        gate=(GateStage(stage="global", verdict="passed", numbers={"loss_bound": 0.02}, sentence=f"fine {SCRIPT}"),),
        examples=(ChangedAnswer(change="newly wrong", **changed), ChangedAnswer(change="newly right", **changed)),
    )  # fmt: skip
    with workspace.store.write() as connection:
        put_retrain(connection, made)
    with console(workspace) as url, client(workspace, url, "eva", "viewer") as eva:
        page, told = eva.get(f"/versions/{second}"), eva.get(f"/api/versions/{second}").json()
    assert (page.status_code, "<script>" in page.text.split("<main")[1], "<img" in page.text) == (200, False, False)
    for said in ("Model card", "How it was judged", "at most 2.0 % lost", "Newly wrong", "turned away", "trc_9"):
        assert said in page.text, said
    assert (told["retrain"], told["card"][:9], len(told["newly_right"])) == ("ret_1", "# `intent", 1)


def test_a_model_whose_file_is_gone_still_has_its_page(workspace: Workspace) -> None:
    _, second = two_models(workspace)
    for manifest in workspace.artifacts.glob("*.json"):
        manifest.unlink()
    with console(workspace) as url, client(workspace, url, "eva", "viewer") as eva:
        page = eva.get(f"/versions/{second}")
    assert (page.status_code, "The card cannot be written" in page.text) == (200, True)


def test_what_was_undone_says_so_with_its_approval_and_its_end(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    done = give_opinion(workspace, correction_in(workspace, "context"), "approve", answer="Offer a voucher.")
    take_back(workspace, str(done.change), reason="wrong")
    with console(workspace) as url, client(workspace, url, "eva", "viewer") as eva:
        page, listed = eva.get(f"/changes/{done.change}").text, eva.get("/changes").text
        told = eva.get(f"/api/why/{done.change}").json()
        watched = eva.get("/api/changes?state=holding").json()["changes"]
    assert [each["event"] for each in told["events"]] == ["approved", "applied", "undone"]
    assert ("undone" in page, "holding</span>" in page + listed, told["undone"], watched) == (True, False, True, [])
    main(["--settings", str(workspace.settings.home / "filmroom.toml"), "why", str(done.change)])
    printed = capsys.readouterr().out
    assert ("undone: while it was live" in printed, "holding" in printed) == (True, False)


def test_after_a_verdict_comes_the_next_of_the_list_and_not_the_first(workspace: Workspace) -> None:
    with console(workspace) as url, client(workspace, url, "ann") as ann:
        ids = [each["correction"] for each in ann.get("/api/corrections?target=tooling").json()["items"]]
        token = ann.get(f"/review/{ids[1]}").text.split('name="csrf" value="')[1].split('"')[0]
        fields = {"csrf": token, "filter": "target=tooling"}
        second = ann.post(f"/review/{ids[1]}/approve", data=fields)
        last = ann.post(f"/review/{ids[-1]}/reject", data=fields)
    assert (len(ids), second.status_code) == (3, 303)
    assert [each.headers["location"].split("?")[0][8:32] for each in (second, last)] == [ids[2], ids[0]]


def test_a_long_text_is_folded_and_whole() -> None:
    text = "say `this` " + "x" * 5000
    template = '{% from "parts.html" import folded, diff %}{{ folded(text) }}{{ diff(each) }}'
    each = {"what": "add rule", "lines": [{"sign": "+", "text": text}], "missing": False}
    shown = environment().from_string(template).render(text=text, each=each)
    assert (shown.count("<details"), shown.count("x" * 5000), shown.count("5,011 characters")) == (2, 2, 2)
    assert "<code>this</code>" in shown


def test_home_shows_nothing_spent_without_a_sign_and_code_as_code(workspace: Workspace) -> None:
    with console(workspace) as url, client(workspace, url, "eva", "viewer") as eva:
        page = eva.get("/").text.split("<main")[1]
    assert ("\N{MINUS SIGN}0.00" in page, "0.00 USD" in page) == (False, True)
    assert "`" not in page


def test_without_a_place_an_approval_says_what_to_do() -> None:
    told = no_place("cor_1")
    assert "nothing to approve: `filmroom review reroute cor_1 --to PLACE` sends it to context, memory" in told
