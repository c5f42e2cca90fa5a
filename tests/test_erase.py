"""`filmroom erase USER`: no byte of their texts is left, ids and decisions stay, and nothing brings it back."""

import json
import secrets
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from store.database import open_store
from store.ingest import ingest
from store.sources.contract import SourceOptions
from store.sources.native import feedback_items
from tests.commands import Run, value
from tests.shop_log import bad_argument, forgotten_fact, make_home, misread, satisfied, trace, write_lines

STREET = "Quittenweg 17b"


@pytest.fixture(autouse=True)
def home(tmp_path: Path) -> None:
    make_home(tmp_path)


def told_street(number: int) -> list[dict[str, Any]]:
    """A user has to say again where they live."""
    lines = json.loads(json.dumps(forgotten_fact(number, user="walburga")).replace("Elm Street", STREET))
    return list(lines)


def log(folder: Path) -> str:
    write_lines(folder / "log.jsonl", *(told_street(n) for n in range(40, 46)), *(satisfied(n) for n in range(20)),
                *(bad_argument(n) for n in range(20, 26)))  # fmt: skip
    with (folder / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(f'{{"type": "trace", "id": "cut", "user": "walburga", "input": "I live at {STREET}"\n')
    return "log.jsonl"


def holds(folder: Path, text: str) -> list[str]:
    """The files of the store that hold the text; bodies are compressed only from a size that none here has."""
    return [file.name for file in folder.glob("filmroom.db*") if text.encode() in file.read_bytes()]


def remember(run: Run) -> str:
    """Approve the memory correction; returns its change."""
    [item] = [each for each in value(run("review", "list", "--json")) if STREET in json.dumps(each)]
    code, out, err = run("review", "reroute", item["correction"], "--to", "memory", "--json")
    assert code == 0, err
    return str(json.loads(out)["change"])


def test_no_byte_of_a_users_text_is_left_after_a_turn_and_an_applied_memory(run: Run, tmp_path: Path) -> None:
    run("init")
    value(run("ingest", log(tmp_path), "--json"))
    value(run("run", "--json"))
    change = remember(run)
    assert holds(tmp_path, STREET)
    done = value(run("erase", "walburga", "--yes", "--json"))
    assert (done["erased"], done["traces"], done["feedback"], done["quarantined"]) == (True, 6, 6, 1)
    assert done["facts"] >= 1
    assert done["left"] is None
    assert (holds(tmp_path, STREET), holds(tmp_path, "walburga")) == ([], [])
    assert value(run("run", "--json"))["run"]
    assert "erased" in json.dumps(value(run("why", change, "--json")))


def test_a_fact_given_by_hand_and_what_quotes_the_user_go_too(run: Run, tmp_path: Path) -> None:
    sentence = "Please leave it with the neighbour on the left"
    run("init")
    write_lines(tmp_path / "log.jsonl", [trace(1, user="zeduser", input=sentence, output="Noted.")])
    value(run("ingest", "log.jsonl", "--json"))
    fact = {"scope_id": "zeduser", "predicate": "pickup_shop", "value": "Elmstreetx"}
    change = value(
        run("edit", "memory", "add", "--value", json.dumps(fact), "--reason", "zeduser asked for Elmstreetx", "--json")
    )
    rule = {"scope": {"user": "zeduser"}, "action": "say", "argument": f"As you said: {sentence}."}
    quoting = value(
        run("edit", "context", "add", "--value", json.dumps(rule), "--reason", "so zeduser is heard", "--json")
    )
    other = {"action": "say", "argument": "What zedusers say is theirs"}
    value(run("edit", "context", "add", "--value", json.dumps(other), "--json"))
    shown = value(run("erase", "zeduser", "--yes", "--json"))
    assert len(shown["quoted_in"]) == 2
    assert [holds(tmp_path, text) for text in (sentence, "Elmstreetx", "zeduser asked", "zeduser ", '"zeduser"')] == [
        []
    ] * 5
    live = run("live")[1]
    assert ("As you said: [erased]." in live, "What zedusers say is theirs" in live, "pickup_shop" in live) == (
        True,
        True,
        False,
    )
    assert "erased-" in json.dumps(value(run("why", change["change"], "--json")))
    assert value(run("undo", quoting["change"], "--json"))


def test_one_of_several_users_of_a_correction_is_erased(run: Run, tmp_path: Path) -> None:
    run("init")
    streets = ("Birch Lane", "Cedar Lane", "Maple Lane", "Aspen Lane")
    told = [[json.loads(json.dumps(line).replace("Elm Street", street)) for line in forgotten_fact(n, user=f"user{n}")]
            for n, street in enumerate(streets)]  # fmt: skip
    write_lines(tmp_path / "log.jsonl", *told, *(satisfied(n) for n in range(20, 40)))
    value(run("ingest", "log.jsonl", "--json"))
    value(run("run", "--json"))
    [item] = [each for each in value(run("review", "list", "--json")) if "Lane" in json.dumps(each)]
    code, out, err = run(
        "review", "reroute", item["correction"], "--to", "memory", "--reason", "user3 is right", "--json"
    )
    assert code == 0, err
    change = json.loads(out)["change"]
    assert holds(tmp_path, "user3: ")
    value(run("erase", "user3", "--yes", "--json"))
    assert (holds(tmp_path, "user3"), holds(tmp_path, "Aspen Lane")) == ([], [])
    shown = "".join(
        run(*command)[1] for command in (("release",), ("review", "show", item["correction"]), ("why", change))
    )
    assert "user3" not in shown
    assert "user2: " in shown
    assert holds(tmp_path, "Cedar Lane")


def test_reading_the_log_again_does_not_bring_it_back(run: Run, tmp_path: Path) -> None:
    run("init")
    value(run("ingest", log(tmp_path), "--json"))
    value(run("erase", "walburga", "--yes", "--json"))
    again = value(run("ingest", "log.jsonl", "--json"))
    assert again["stored"] == 0
    value(run("quarantine", "discard", "--all", "--json"))
    value(run("erase", "walburga", "--yes", "--json"))
    assert holds(tmp_path, STREET) == []


def test_what_others_said_stays(run: Run, tmp_path: Path) -> None:
    run("init")
    value(run("ingest", log(tmp_path), "--json"))
    value(run("run", "--json"))
    value(run("erase", "u2", "--yes", "--json"))
    queue = json.dumps(value(run("review", "list", "--json")))
    assert "update_order" in queue
    assert STREET in queue
    assert "[erased]" not in queue


def test_erasing_shows_first_and_does_nothing_without_a_yes(run: Run, tmp_path: Path) -> None:
    run("init")
    value(run("ingest", log(tmp_path), "--json"))
    shown = value(run("erase", "walburga", "--json"))
    assert (shown["erased"], shown["traces"]) == (False, 6)
    code, out, _ = run("erase", "walburga")
    assert "of walburga: 6 traces with 0 spans, 6 feedback" in out
    assert code != 0
    assert holds(tmp_path, STREET)


def test_somebody_unknown_is_said_to_be(run: Run) -> None:
    run("init")
    code, out, _ = run("erase", secrets.token_hex(4), "--yes")
    assert (code, "knows nothing" in out, "nothing was erased" in out) == (0, True, True)
    assert value(run("erase", secrets.token_hex(4), "--yes", "--json"))["erased"] is False


def test_erasing_names_the_model_versions_that_learnt_from_the_user(run: Run, tmp_path: Path) -> None:
    from store.database import open_store
    from store.records import Retrain
    from store.retrains import put_retrain

    run("init")
    write_lines(tmp_path / "log.jsonl", misread(1), misread(2))
    value(run("ingest", "log.jsonl", "--json"))
    store = open_store(f"sqlite:///{tmp_path / 'filmroom.db'}")
    with store.write() as connection:
        ids = list(connection.exec_driver_sql("SELECT id FROM traces ORDER BY external_id").scalars())
        fields = {
            "id": "ret_1",
            "model": "intents",
            "at_us": 1,
            "decision": "promoted",
            "reason": "r",
            "version": "ver_1",
            "trace_ids": (ids[0],),
        }
        put_retrain(connection, Retrain(**fields))
    store.close()
    assert value(run("erase", "u1", "--json"))["versions"] == ["ver_1"]
    assert value(run("erase", "u2", "--json"))["versions"] == []


def test_feedback_that_comes_later_on_an_erased_trace_is_not_kept(run: Run, tmp_path: Path) -> None:
    run("init")
    value(run("ingest", log(tmp_path), "--json"))
    value(run("erase", "walburga", "--yes", "--json"))
    said = {"trace": told_street(40)[0]["id"], "name": "thumb", "score": 0, "comment": f"I moved to {STREET}"}
    with closing(open_store(f"sqlite:///{tmp_path / 'filmroom.db'}")) as store:
        ingest(store, feedback_items([said], SourceOptions(source="otlp"), place="/v1/feedback"))
    assert holds(tmp_path, STREET) == []
