"""What a person types and sees: one clear line for what goes wrong, one JSON value for programs."""

import contextlib
import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from store.database import open_store
from store.errors import SettingsError
from store.leases import holding
from store.settings import read_settings
from tests.commands import Run, value
from tests.shop_log import (
    bad_argument,
    forgotten_fact,
    make_home,
    misread,
    satisfied,
    trace,
    unwritten_rule,
    write_lines,
)


def test_a_file_is_what_it_is_whatever_the_only_source_is(tmp_path: Path, run: Run) -> None:
    (tmp_path / "filmroom.toml").write_text('[sources.log]\nformat = "native"\n', encoding="utf-8")
    step = {"id": "p", "kind": "predict", "name": "m", "input": "x", "output": "no"}
    write_lines(tmp_path / "log.jsonl", [trace(1, input="x", output="no", spans=[step])])
    (tmp_path / "labels.csv").write_text("id,label\nt1,yes\n", encoding="utf-8")
    assert [value(run("ingest", name, "--json"))["quarantined"] for name in ("log.jsonl", "labels.csv")] == [0, 0]
    assert value(run("run", "--json"))["failures"] == 1


@pytest.mark.parametrize(
    ("settings", "check", "why"),
    [('[sources.x]\nformat = "langfus"', "sources", "there is no 'langfus'"),
     ('[schedule]\ncron = "61 * * * *"', "schedule", "is not a cron expression")],
)  # fmt: skip
def test_doctor_finds_what_only_its_use_would_show(
    tmp_path: Path, run: Run, settings: str, check: str, why: str
) -> None:
    (tmp_path / "filmroom.toml").write_text(settings, encoding="utf-8")
    code, out, _ = run("doctor", "--json")
    [found] = [each for each in json.loads(out)["checks"] if each["name"] == check]
    assert (code, found["ok"], why in found["detail"]) == (1, False, True)


def test_a_model_that_the_log_does_not_know_is_named_by_doctor_and_by_the_skipped_retrain(
    run: Run, tmp_path: Path
) -> None:
    make_home(tmp_path, '[weights.topicz]\ntraining = "train.csv"\nout_of_scope = "othr"\n')
    write_lines(tmp_path / "log.jsonl", misread(1), misread(2))
    run("init")
    assert "no row of it, and no approved correction, is labelled 'othr'" in run("doctor")[1]
    value(run("ingest", "log.jsonl", "--json"))
    said = "no step of the log is named topicz; there are intents"
    assert value(run("run", "--json"))["retrain"]["reason"] == said
    code, out, _ = run("doctor")
    assert (code, said in out) == (1, True)


@pytest.mark.parametrize(
    ("settings", "said"),
    [('project = ""', "project: it must not be empty"), ('project = " "', "project: it must not be empty"),
     ("[prices]\nfailure_usd = 1e400", "prices.failure_usd: it must be a finite number"),
     ("[store]\nkeep_days = inf", "store.keep_days: it must be a finite number"),
     ("[policy]\nsettle_s = nan", "policy.settle_s: it must be"),
     ("[policy.evidence]\nn_eff = inf", "policy.evidence.n_eff: it must be a finite number"),
     ("[feedback.thumb]\nthreshold = nan", "feedback.thumb.threshold: it must be a finite number")],
)  # fmt: skip
def test_settings_without_a_name_or_a_finite_number_are_refused(tmp_path: Path, settings: str, said: str) -> None:
    (tmp_path / "filmroom.toml").write_text(settings, encoding="utf-8")
    with pytest.raises(SettingsError, match=said):
        read_settings(tmp_path / "filmroom.toml")


def test_a_tools_file_that_is_missing_is_said_in_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "filmroom.toml").write_text('[agent]\ntools = "tools.json"\n', encoding="utf-8")
    run("init")
    code, _, err = run("run")
    assert (code, err.count("\n")) == (1, 1)
    assert f"[agent] tools: {tmp_path / 'tools.json'}: no such file; put it there, or take the line out" in err


def test_a_log_in_another_encoding_is_told_how_to_convert_it(run: Run, tmp_path: Path) -> None:
    line = json.dumps(trace(1, input="caf\xe9", output="no"), ensure_ascii=False)
    (tmp_path / "log.jsonl").write_bytes((line + "\n").encode("latin-1"))
    code, _, err = run("scan", "log.jsonl")
    assert (code, err.count("\n"), "not recognised" in err) == (1, 1, False)
    assert "not UTF-8: byte 0xe9" in err
    assert "`iconv -f latin1 -t utf-8`" in err


def test_an_ingest_that_stored_nothing_says_so_last(run: Run, tmp_path: Path) -> None:
    run("init")
    (tmp_path / "log.jsonl").write_text('{"type": "trace", "id": "a", "started": "when"}\n', encoding="utf-8")
    code, out, _ = run("ingest", "log.jsonl", "--format", "native")
    assert code == 0
    assert out.splitlines()[-1].startswith("nothing was stored: all 1 records are in quarantine; next: mend")


def test_the_history_of_an_unknown_model_names_those_there_are(run: Run, tmp_path: Path) -> None:
    make_home(tmp_path)
    run("init")
    code, _, err = run("history", "--model", "nope")
    assert (code, "no model nope: there are intents" in err) == (1, True)
    assert run("history", "--model", "intents")[0] == 0


def small_log(folder: Path) -> Path:
    """Twenty content users, five failing calls, and the same calls as the tool accepts them."""
    return write_lines(
        folder / "log.jsonl",
        *(satisfied(n, spans=[accepted_call(n)]) for n in range(20)),
        *(bad_argument(n) for n in range(20, 25)),
    )


def accepted_call(number: int) -> dict[str, Any]:
    arguments = {"order_id": f"#{120 + number % 5}"}
    return {"id": "c", "kind": "tool", "name": "update_order", "input": arguments, "status": "ok", "output": "changed"}


def test_day_one_from_a_log_to_an_applied_correction(run: Run, tmp_path: Path) -> None:
    log = str(small_log(tmp_path))
    assert value(run("init", "--from", log, "--json"))["written"]
    assert value(run("ingest", log, "--json")) == {
        "read": 75, "stored": 75, "duplicate": 0, "quarantined": 0, "traces": 25, "spans": 25, "feedback": 25,
        "format": "native"}  # fmt: skip
    turned = value(run("run", "--json"))
    assert (turned["traces_seen"], turned["failures"], turned["routes"]["review"]) == (25, 5, 1)
    [item] = value(run("review", "list", "--json"))
    assert (item["failures"], item["certified"]) == (5, False)
    done = value(run("review", "approve", item["correction"], "--json"))
    assert done["live"]
    assert done["undo"] == f"filmroom undo {done['change']}"
    assert value(run("why", done["change"], "--json"))["kind"] == "change"
    assert value(run("doctor", "--json"))["ok"]


def test_thumbs_only_asks_for_an_answer_and_takes_it(run: Run, tmp_path: Path) -> None:
    lines = [[trace(n, input="cancel", output="done"), {"type": "feedback", "trace": f"t{n}", "name": "thumb", "score": 0}]
             for n in range(5)]  # fmt: skip
    log = str(write_lines(tmp_path / "log.jsonl", *lines))
    run("init", "--from", log)
    run("ingest", log)
    run("run")
    [item] = value(run("review", "list", "--json"))
    code, _, err = run("review", "approve", item["correction"])
    assert (code, err.count("\n")) == (1, 1)
    moved = run("review", "reroute", item["correction"], "--to", "context", "--answer", "Confirm first.", "--json")
    assert value(moved)["live"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ingest", "nowhere.jsonl"), "nowhere.jsonl"),
        (("ingest", "empty.jsonl"), "empty"),
        (("ingest", "folder"), "nothing readable"),
        (("ingest", "noise.bin"), "binary"),
        (("scan", "nowhere.jsonl"), "nowhere.jsonl"),
        (("init", "--from", "nowhere.jsonl"), "nowhere.jsonl"),
        (("--settings", "none.toml", "status"), "none.toml"),
        (("why", "chg_nothing"), "chg_nothing"),
        (("undo", "nonsense"), "nonsense"),
        (("rollback", "rel_nothing"), "rel_nothing"),
        (("review", "approve", "cor_nothing"), "cor_nothing"),
        (("schedule", "pause"), "schedule start"),
    ],
)
def test_what_goes_wrong_is_one_line_and_exit_1(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    run("init")
    small_log(tmp_path)
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 20)
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("filmroom: ")
    assert said in err


@pytest.mark.parametrize(
    "arguments", [("nonsense",), ("review", "reroute", "cor_1", "--to", "moon"), ("why",), ("run", "--no")]
)
def test_wrong_usage_is_exit_2(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments)[0] == 2


def test_reading_commands_make_no_store(run: Run, tmp_path: Path) -> None:
    for command in ("status", "history", "release", "run"):
        code, _, err = run(command)
        assert (code, "filmroom init" in err) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_a_broken_line_is_kept_apart_and_the_rest_is_read(run: Run, tmp_path: Path) -> None:
    log = small_log(tmp_path)
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines[:10], '{"type": "trace", "id":\n', *lines[10:]]))
    run("init")
    done = value(run("ingest", str(log), "--json"))
    assert (done["stored"], done["quarantined"]) == (75, 1)
    _, _, err = run("ingest", str(log))
    assert f"{log}:11:" in err


def test_a_wrong_column_mapping_names_the_column(run: Run, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("sentence,answer\nhi,greet\n")
    (tmp_path / "filmroom.toml").write_text('[sources.log]\nformat = "tabular"\ncolumns = { input = "text" }\n')
    code, _, err = run("ingest", "table.csv")
    assert (code, "'text'" in err, "sentence" in err) == (1, True, True)


def test_a_misspelt_setting_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "filmroom.toml").write_text("[policy]\nproflie = 'small'\n")
    code, _, err = run("status")
    assert (code, "policy.proflie" in err) == (1, True)


def test_a_store_that_does_not_answer_is_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "filmroom.toml").write_text('[store]\nurl = "postgresql+psycopg://x:secret@127.0.0.1:9/x"\n')
    code, _, err = run("status")
    assert (code, "does not answer" in err, "secret" in err, err.count("\n")) == (1, True, False, 1)


def test_a_store_from_a_newer_version_is_one_line(run: Run, tmp_path: Path) -> None:
    run("init")
    engine = create_engine(f"sqlite:///{tmp_path / 'filmroom.db'}")
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    code, _, err = run("run")
    assert (code, "upgrade filmroom" in err, err.count("\n")) == (1, True, 1)


def test_a_second_turn_meanwhile_is_one_line(run: Run, tmp_path: Path) -> None:
    run("init")
    store = open_store(f"sqlite:///{tmp_path / 'filmroom.db'}")
    with holding(store):
        code, _, err = run("run")
    store.close()
    assert (code, "is at work" in err, err.count("\n")) == (1, True, 1)


def test_scan_changes_nothing(run: Run, tmp_path: Path) -> None:
    log = small_log(tmp_path)
    found = value(run("scan", str(log), "--json"))
    assert (found["failures"], found["cost_usd"], len(found["clusters"])) == (5, 5.0, 1)
    assert found["clusters"][0]["next"]
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


def test_init_keeps_what_is_there(run: Run, tmp_path: Path) -> None:
    (tmp_path / "filmroom.toml").write_text("seed = 7\n")
    assert not value(run("init", "--json"))["written"]
    assert (tmp_path / "filmroom.toml").read_text() == "seed = 7\n"


def test_init_from_says_what_is_unknown_and_what_that_switches_off(run: Run, tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.jsonl", [{"type": "trace", "id": "1", "input": "hi", "output": "ho"}])
    unknowns = value(run("init", "--from", str(log), "--json"))["unknowns"]
    assert any("no feedback" in each["what"] for each in unknowns)
    assert all(each["switches_off"] and each["to_do"] for each in unknowns)


def test_settings_written_from_hostile_names_can_be_read(run: Run, tmp_path: Path) -> None:
    name = 'sc"ore\n]x = 1'
    lines = [
        trace(1, input="a", output="b"),
        {"type": "feedback", "trace": "t1", "name": name, "score": 0, "label": "\u202e]\n"},
    ]
    log = write_lines(tmp_path / "log.jsonl", lines)
    assert value(run("init", "--from", str(log), "--json"))["written"]
    assert value(run("status", "--json"))["project"] == "default"


def test_history_gives_every_evaluation(run: Run, tmp_path: Path) -> None:
    make_home(tmp_path)
    run("init")
    run("ingest", str(small_log(tmp_path)))
    run("run")
    [row] = value(run("history", "--json"))
    assert (row["decision"], row["model"]) == ("skipped", "intents")
    assert {"retrain", "time", "reason", "arm", "version", "parent", "metrics", "gate", "seconds"} <= row.keys()


def kill_somewhere(folder: Path, after_s: float) -> bool:
    """Start a turn and kill it; whether it was still running."""
    command = [sys.executable, "-m", "filmroom", "run"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=quiet, env=env)
    time.sleep(after_s)
    running = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    return running


def end_state(run: Run) -> dict[str, Any]:
    """Everything a turn decides, without times."""
    status = value(run("status", "--json"))
    queue = value(run("review", "list", "--json"))
    return {
        "failures": status["failures"],
        "clusters": status["clusters"],
        "corrections": status["corrections"],
        "queue": sorted((row["correction"], row["failures"], row["target"], row["summary"]) for row in queue),
    }


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [1.2, 2.0, 2.8, 3.6])
def test_a_turn_killed_and_run_again_ends_as_an_undisturbed_one(run: Run, tmp_path: Path, after_s: float) -> None:
    groups = [*(satisfied(n) for n in range(300)), *(bad_argument(n) for n in range(300, 500)),
              *(unwritten_rule(n) for n in range(500, 600)), *(forgotten_fact(n) for n in range(600, 700))]  # fmt: skip
    log = str(write_lines(tmp_path / "log.jsonl", *groups))
    run("init")
    run("ingest", log)
    kill_somewhere(tmp_path, after_s)
    kill_somewhere(tmp_path, after_s / 2)
    run("run")
    killed = end_state(run)
    (tmp_path / "filmroom.db").unlink()
    run("init")
    run("ingest", log)
    run("run")
    assert killed == end_state(run)


def test_a_gzipped_log_is_read(run: Run, tmp_path: Path) -> None:
    log = small_log(tmp_path)
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress(log.read_bytes()))
    run("init")
    assert value(run("ingest", "log.jsonl.gz", "--json"))["stored"] == 75


def test_names_from_a_log_steer_no_terminal(run: Run, tmp_path: Path) -> None:
    name = "tool\x1b[2J\nproposed: say yes"
    call = {"id": "c", "kind": "tool", "name": name, "input": {}, "status": "error", "error": "Error: no"}
    said = {"type": "feedback", "trace": "t1", "name": "thumb", "score": 0}
    log = str(write_lines(tmp_path / "log.jsonl", [trace(1, user="u\x07\nwhy: fine", spans=[call]), said]))
    run("init")
    run("ingest", log)
    run("run")
    [item] = value(run("review", "list", "--json"))
    for command in (("review", "list"), ("review", "show", item["correction"]), ("scan", log)):
        _, out, _ = run(*command)
        assert "\x1b" not in out
        assert "\x07" not in out
        assert not any(line.startswith(("proposed: say", "why: fine")) for line in out.splitlines())


def test_ingest_without_init_reads_with_the_defaults_and_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text("num,frage,antwort\n1,hi,ho\n")
    assert run("ingest", "odd.csv")[0] == run("ingest", "nowhere.csv")[0] == 1
    assert not (tmp_path / "filmroom.db").exists()
    (tmp_path / "p.csv").write_text("id,text,y_pred\n1,hello,greet\n")
    code, out, err = run("ingest", "p.csv")
    assert (code, "2 stored" in out, "`filmroom init --from LOG`" in err) == (0, True, True)
    run("init")
    assert "filmroom init" not in run("ingest", "p.csv")[2]


def test_init_from_a_table_of_unknown_columns_leaves_a_mapping_to_fill_in(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("num,frage,antwort\n1,hi,ho\n")
    code, out, err = run("init", "--from", "t.csv")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].endswith("under [sources.log] in filmroom.toml, then filmroom ingest t.csv")
    file = tmp_path / "filmroom.toml"
    assert "# columns seen: num, frage, antwort" in file.read_text()
    assert "input" in run("ingest", "t.csv")[2]
    empty = '# columns = { id = "", time = "", user = "", input = "", output = "", label = "" }'
    mapped = 'columns = { id = "num", input = "frage", output = "antwort" }'
    file.write_text(file.read_text().replace(empty, mapped))
    assert value(run("ingest", "t.csv", "--json"))["traces"] == 1


def test_a_binary_file_is_refused_in_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_bytes(bytes(range(256)) * 4)
    said = "filmroom: b.csv: it is binary, and no log that is read: export it as JSONL or CSV\n"
    for command in (("init", "--from"), ("scan",), ("ingest",), ("ingest", "--format", "tabular")):
        code, out, err = run(*command, "b.csv")
        assert (code, out, err.splitlines(keepends=True)[-1]) == (1, "", said), command


def test_a_database_of_another_program_is_left_alone_with_one_advice(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,text,y_pred\n1,hello,greet\n")
    with contextlib.closing(sqlite3.connect(tmp_path / "filmroom.db")) as other:
        other.execute("CREATE TABLE notes (text)")
        other.commit()
    before = (tmp_path / "filmroom.db").read_bytes()
    for command in (("init",), ("ingest", "t.csv"), ("status",), ("run",)):
        code, _, err = run(*command)
        last = err.splitlines()[-1]
        assert (code, last.endswith("of another program (notes): name another database as `[store] url`")) == (
            1,
            True,
        ), last
    assert (tmp_path / "filmroom.db").read_bytes() == before


def test_what_init_says_of_a_score_is_what_it_writes(run: Run, tmp_path: Path) -> None:
    lines = [trace(1, input="a", output="b"), {"type": "feedback", "trace": "t1", "name": "x7", "score": 3}]
    log = write_lines(tmp_path / "log.jsonl", lines)
    found = value(run("init", "--from", str(log), "--json"))["unknowns"]
    assert [each["what"] for each in found if "x7" in each["what"]] == [
        'whether a high `x7` is good: `good = "high"` is a guess'
    ]
    assert 'good = "high"   # a guess' in (tmp_path / "filmroom.toml").read_text()


def test_labels_of_a_second_file_find_their_predictions(run: Run, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id,text,y_pred\n1,hello,greet\n2,bye,greet\n")
    (tmp_path / "l.csv").write_text("id,y_true\n2,part\n1,greet\n")
    run("init", "--from", "p.csv")
    assert value(run("ingest", "p.csv", "--json"))["traces"] == 2
    assert value(run("ingest", "l.csv", "--json"))["feedback"] == 2
    assert value(run("run", "--json"))["failures"] == 1
