"""The closed simulation: faults are drawn repeatably, and truth is what the fix does."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fault_scenario import Draw, Scenario
from benchmarks.fault_truth import Stream, streamed, valid_targets
from benchmarks.faults import FAMILIES, judged_clusters, main, measure, read_families

NAMES = [family.name for family in read_families([FAMILIES])]


def stream_of(name: str, seed: int = 3) -> Stream:
    family = next(each for each in read_families([FAMILIES]) if each.name == name)
    drawing = Draw(np.random.default_rng(seed))
    scenario: Scenario = family.draw(drawing)
    return streamed(scenario, drawing.requests(60), drawing.rng)


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("argument_prefix", {"tooling"}),
        ("policy_change", {"context"}),
        ("contradictory_users", {"memory"}),
        ("new_class", {"weights"}),
        ("compound", {"none"}),
    ],
)
def test_the_place_that_repairs_the_failures_is_the_right_one(name: str, places: set[str]) -> None:
    stream = stream_of(name)
    hit = {each.id for each in stream.scenario.hit}
    wrong = sorted(id for id in stream.wrong if stream.requests[id].id in hit)
    assert valid_targets(stream, wrong) == places


def test_nothing_is_to_be_repaired_where_the_answers_were_right() -> None:
    stream = stream_of("benign_drift")
    fine = [id for id in stream.requests if id not in stream.wrong]
    assert valid_targets(stream, fine[:10]) == {"none"}


def test_a_scenario_is_drawn_alike_from_the_same_seed() -> None:
    assert stream_of("forgotten_fact").episodes == stream_of("forgotten_fact").episodes


def test_there_are_twelve_families_and_more() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 12


def test_a_folder_adds_families(tmp_path: Path) -> None:
    text = (FAMILIES / "expired_key.py").read_text(encoding="utf-8").replace('Family("expired_key"', 'Family("another"')
    (tmp_path / "another.py").write_text(text, encoding="utf-8")
    assert [family.name for family in read_families([FAMILIES, tmp_path])] == [*NAMES, "another"]


def test_a_broken_tool_is_sent_to_tooling() -> None:
    family = next(each for each in read_families([FAMILIES]) if each.name == "missing_argument")
    assert {row.choice for row in judged_clusters(family, 1)} == {"tooling"}


def test_the_figures_have_the_keys_that_outside_checks_read() -> None:
    figures, _ = measure([each for each in read_families([FAMILIES]) if each.name == "transient_outage"], 1, 2)
    assert set(figures) >= {"any_valid", "coverage", "realised_risk", "families"}
    assert json.loads(json.dumps(figures))["families"]["transient_outage"]["any_valid"] == 1.0


def test_help_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["faults.py", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert "--families" in capsys.readouterr().out
