"""What runs logged, from Prefect's answers, and as the console shows it."""

import pytest

from filmroom.console.page import environment
from flows.prefect_api import Json, PrefectApi
from flows.schedule_logs import LogLine, run_log, shared_out
from store.errors import FilmroomError, NotFound


def run(name: str, second: int, deployment: str | None = "d") -> Json:
    return {"id": name, "state_name": "Completed", "start_time": at(second), "estimated_run_time": 1.0,
            "deployment_id": deployment}  # fmt: skip


def line(name: str, second: int) -> Json:
    return {"flow_run_id": name, "timestamp": at(second), "level": 20, "message": f"{name} {second}"}


def at(second: int) -> str:
    return f"1970-01-01T00:00:{second:02d}Z"


def test_lines_are_shared_out_among_their_runs_oldest_first() -> None:
    runs = [run("b", 20, None), run("a", 10)]
    found = shared_out(runs, [line("b", 22), line("b", 21), line("a", 11)])
    assert [[each.message for each in log.lines] for log in found] == [["b 21", "b 22"], ["a 11"]]
    assert [(log.run.by_hand, log.more) for log in found] == [(True, False), (False, False)]


def test_a_run_whose_lines_were_cut_off_says_that_there_are_more() -> None:
    runs = [run("b", 20), run("a", 10)]
    found = shared_out(runs, [line("b", 22), line("a", 12)], most=2)
    assert [log.more for log in found] == [False, True]


def test_what_a_run_logged_is_text_and_never_markup() -> None:
    lines = [LogLine(at_us=0, level="error", message="<script>alert(1)</script>\x1b[31m")]
    template = '{% from "parts.html" import log_lines %}{{ log_lines(lines) }}'
    shown = environment().from_string(template).render(lines=lines)
    assert ("<script>" in shown, "&lt;script&gt;" in shown, "\x1b" in shown) == (False, True, False)


def test_a_run_that_is_none_and_a_server_that_is_away_are_told_apart() -> None:
    with pytest.raises(NotFound, match="Prefect knows no run"):
        run_log(PrefectApi(9), "../../admin")
    with pytest.raises(FilmroomError, match="does not answer"):
        run_log(PrefectApi(9), "0" * 32)
