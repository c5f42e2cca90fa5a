"""Corrections as training data of other systems: read back by each consumer's own code, each row with where it comes from."""

import csv
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from filmroom.main import main
from flows.review import approve, reroute
from flows.turn import turn
from flows.workspace import Workspace
from models.training_formats import FORMATS, Example, messages_of, table
from store.review_queue import review_queue
from tests.peers import programs
from tests.shop_log import forgotten_fact, misread, satisfied, take_in, unwritten_rule, working_in

CHECK = Path(__file__).with_name("consumer_check.py")
NASTY = 'Ümläut "quotes" \\ <b>, line\nbreak, ,semi;colon and \u2028 separators'


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Approved corrections of a rule, a fact and a label; one answer holds what breaks careless writers."""
    with working_in(tmp_path_factory.mktemp("shop")) as opened:
        odd = unwritten_rule(59)
        odd[1]["corrected_output"] = NASTY
        take_in(opened, *(satisfied(n) for n in range(30)), *(unwritten_rule(n) for n in range(50, 55)), odd,
                *(forgotten_fact(n) for n in range(60, 63)), *(misread(n) for n in range(70, 75)))  # fmt: skip
        turn(opened)
        for row in review_queue(opened.store):
            if row["target"] in ("memory", "weights"):
                approve(opened, row["correction"])
            else:
                reroute(opened, row["correction"], to="context", answer=f"Offer a voucher, see {row['correction']}.")
        yield opened


def exported(workspace: Workspace, folder: Path, name: str, *more: str) -> tuple[Path, dict[str, Any]]:
    here = Path.cwd()
    os.chdir(workspace.settings.home)
    try:
        assert main(["export", "data", str(folder), "--as", name, *more]) == 0
    finally:
        os.chdir(here)
    told = [json.loads(line) for line in (folder / "provenance.jsonl").read_text().splitlines()]
    files = {"datasets": folder / "data" / "train.jsonl", "csv": folder / "corrections.csv"}
    return files.get(name, folder / f"{name}.jsonl"), {"told": told}


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


@pytest.mark.peers
@pytest.mark.parametrize("name", [name for name in FORMATS if name != "csv"])
def test_the_consumers_own_code_reads_it(workspace: Workspace, tmp_path: Path, name: str) -> None:
    python = programs("consumers") / "python"
    path, _ = exported(workspace, tmp_path / "out", name)
    given = path.parent.parent if name == "datasets" else path
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path), "DO_NOT_TRACK": "1"}
    done = subprocess.run([str(python), str(CHECK), name, str(given)], capture_output=True, text=True, check=False,
                          cwd=tmp_path, env={**os.environ, **offline})  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["rows"] == len(rows_of(path))


@pytest.mark.parametrize("name", FORMATS)
def test_every_row_says_where_it_comes_from(workspace: Workspace, tmp_path: Path, name: str) -> None:
    path, found = exported(workspace, tmp_path, name)
    assert [each["row"] for each in found["told"]] == list(range(len(rows_of(path))))
    assert len(found["told"]) >= 14
    for each in found["told"]:
        assert each["trace"].startswith("trc_")
        assert each["correction"].startswith("cor_")
        assert {"source", "authority", "at_us", "state", "model"} <= set(each)
    assert {each["source"] for each in found["told"]} >= {"staff:ann", "u3"}


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_comes_through_whatever_it_holds(workspace: Workspace, tmp_path: Path, name: str) -> None:
    path, _ = exported(workspace, tmp_path, name)
    texts = list(_texts(rows_of(path)))
    assert NASTY in texts


def test_what_nobody_accepted_is_left_out_unless_it_is_asked_for(tmp_path: Path) -> None:
    with working_in(tmp_path / "home") as opened:
        take_in(opened, *(satisfied(n) for n in range(20)), *(unwritten_rule(n) for n in range(50, 55)))
        turn(opened)
        path, _ = exported(opened, tmp_path / "out", "trl-sft")
        assert rows_of(path) == []
        path, found = exported(opened, tmp_path / "out", "trl-sft", "--all")
        assert [each["state"] for each in found["told"]] == ["proposed"] * 5


def test_the_training_rows_of_a_model(workspace: Workspace, tmp_path: Path) -> None:
    path, _ = exported(workspace, tmp_path, "csv", "--model", "intents")
    assert {(row["prompt"], row["chosen"], row["rejected"]) for row in rows_of(path)} == {
        ("take it back", "return", "status")
    }


def test_what_was_answered_is_undesirable_and_what_is_right_desirable(workspace: Workspace, tmp_path: Path) -> None:
    path, _ = exported(workspace, tmp_path, "trl-kto")
    labels = [(row["completion"][0]["content"], row["label"]) for row in rows_of(path)]
    assert ("return", True) in labels
    assert ("status", False) in labels


def test_a_pair_needs_both_answers() -> None:
    lone = Example(prompt=messages_of("hi"), chosen="hello", provenance={})
    assert [len(FORMATS[name](lone)) for name in ("trl-dpo", "openai-dpo", "together-dpo", "trl-kto")] == [0, 0, 0, 1]


def test_messages_of_the_log_stay_messages() -> None:
    given: Any = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]
    assert messages_of({"messages": given}) == tuple(given)
    assert messages_of([{"role": "tool", "content": "x"}])[0]["role"] == "user"


@pytest.mark.parametrize("text", ["=cmd()", "+1", "-1", "@x", "\t=1"])
def test_no_spreadsheet_takes_a_cell_for_a_formula(text: str) -> None:
    assert table([{"prompt": text}]).decode().splitlines()[1].strip('"').startswith("'")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
