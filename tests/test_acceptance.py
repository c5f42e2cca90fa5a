"""Real logs through the commands' own code."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from filmroom.main import main
from tests.shop_log import satisfied, write_lines

RETAIL, AIRLINE = "tau/retail_100runs.json.gz", "tau/airline_gpt4o_200runs.json.gz"

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run one command in an empty folder and return its JSON."""
    monkeypatch.chdir(tmp_path)

    def run_command(*arguments: str) -> Any:
        capfd.readouterr()
        code = main([*arguments, "--json"])
        out, err = capfd.readouterr()
        assert code == 0, err
        return json.loads(out)

    return run_command


def test_exactly_the_failed_retail_runs_are_picked_up_once(run: Run, shared: Path) -> None:
    """18 of the 73 that passed have a tool error, a transfer or a call made three times."""
    run("init", "--from", str(shared / "data" / RETAIL))
    assert run("ingest", str(shared / "data" / RETAIL))["traces"] == 100
    assert run("run")["failures"] == 27
    again = run("run")
    assert (again["traces_seen"], again["failures"]) == (0, 0)


def test_appending_airline_runs_picks_up_only_the_new_failures(run: Run, shared: Path) -> None:
    run("init")
    run("ingest", str(shared / "data" / RETAIL))
    run("run")
    assert run("ingest", str(shared / "data" / AIRLINE))["traces"] == 200
    assert run("run")["failures"] == 116


def newcomer(number: int, *, corrected: bool) -> list[dict[str, Any]]:
    """One of 500 traces of somebody's agent: one in ten forgets to ask before it cancels."""
    if number % 10:
        return satisfied(number)
    trace, thumb = satisfied(number)
    trace |= {"input": f"cancel order {number}", "output": f"Order {number} is cancelled."}
    thumb |= {"score": 0}
    if corrected:
        thumb |= {"comment": "Always ask before you cancel.", "corrected_output": f"Shall I cancel order {number}?"}
    return [trace, thumb]


@pytest.mark.parametrize("corrected", [True, False], ids=["corrections", "thumbs only"])
def test_a_newcomers_own_log_ends_in_an_applied_correction(run: Run, tmp_path: Path, corrected: bool) -> None:
    log = str(write_lines(tmp_path / "mine.jsonl", *(newcomer(n, corrected=corrected) for n in range(500))))
    run("init", "--from", log)
    assert run("scan", log)["failures"] == 50
    run("ingest", log)
    run("run")
    [item] = run("review", "list")
    assert (item["failures"], item["target"]) == (50, "context" if corrected else None)
    answer = ("--answer", "Ask before you cancel an order.")
    verdict = ("approve", item["correction"]) if corrected else ("reroute", item["correction"], "--to", "context")
    done = run("review", *verdict, *answer)
    assert done["live"]
    assert run("why", done["change"])["effects"]
