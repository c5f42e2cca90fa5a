"""Turns on a schedule, against a real Prefect server in a process of its own."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flows.prefect_environment import api_url, prefect_environment, prefect_home
from flows.prefect_server import tracking_url
from flows.schedule import list_schedules, pause, resume, run_now, set_cron, set_interval
from flows.schedule_process import only_schedule, running_schedule
from flows.schedule_state import ScheduledRun, planned
from store.errors import NotAllowed, SettingsError
from store.settings import Settings
from tests.schedule_home import ROOT, TURN_S, Home, free_port, wait_until
from tests.test_engine import learnt


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home")
    yield made
    made.end()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A schedule that turns every ten seconds."""
    made = Home(tmp_path_factory.mktemp("running") / "home", interval_s=10)
    made.start()
    yield made
    made.end()


def test_the_environment_is_loopback_only_and_beside_the_store(tmp_path: Path) -> None:
    environment = prefect_environment(tmp_path, 4444)
    urls = {value for value in environment.values() if "://" in value}
    assert urls == {"http://127.0.0.1:4444/api", "http://127.0.0.1:4444"}
    assert environment["PREFECT_HOME"] == str(tmp_path.resolve() / ".filmroom" / "prefect")
    assert (environment["DO_NOT_TRACK"], environment["PREFECT_SERVER_ANALYTICS_ENABLED"]) == ("1", "false")


def run_python(code: str, tmp_path: Path) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "PREFECT_API_KEY": "theirs", "PREFECT_LOGGING_LEVEL": "ERROR", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", f"from pathlib import Path; home = Path({str(tmp_path)!r})\n{code}"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.mark.prefect
def test_prefect_reads_the_environment_that_was_applied_before_its_import(tmp_path: Path) -> None:
    done = run_python(
        "from flows.prefect_environment import apply; apply(home, 4444)\n"
        "from prefect.settings import get_current_settings; s = get_current_settings()\n"
        "print(s.api.url, s.home, s.api.key, s.server.ephemeral.enabled, s.runner.poll_frequency, s.logging.level)\n"
        "print(sorted(s.server.services.db_vacuum.enabled_vacuum_types), s.server.services.db_vacuum.retention_period)\n"
        "print(s.server.api.cors_allowed_origins, s.server.analytics_enabled, s.server.ui.api_url)",
        tmp_path,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"http://127.0.0.1:4444/api {prefect_home(tmp_path)} None False 2 ERROR",
        "['events', 'flow_runs', 'orphans'] 30 days, 0:00:00",
        "http://127.0.0.1:4444 False http://127.0.0.1:4444/api",
    ]


@pytest.mark.prefect
def test_applying_the_environment_after_the_import_is_an_error(tmp_path: Path) -> None:
    done = run_python("import prefect\nfrom flows.prefect_environment import apply; apply(home, 4444)", tmp_path)
    assert done.stderr.splitlines()[-1].startswith("RuntimeError: prefect was imported before its environment was set")


def test_one_schedule_at_a_time_holds_a_home(tmp_path: Path) -> None:
    with only_schedule(tmp_path, 4444):
        found = running_schedule(tmp_path)
        assert found is not None
        assert (found.pid, found.port) == (os.getpid(), 4444)
        with (
            pytest.raises(NotAllowed, match=r"port 4444\) is running on this home already"),
            only_schedule(tmp_path, 1),
        ):
            pass
    assert running_schedule(tmp_path) is None


def test_a_schedule_that_is_away_is_shown_as_planned_with_the_stores_last_turn(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    last = ScheduledRun(id="run_1", state="completed", started_us=1, seconds=2.0)
    assert list_schedules(settings, last_turn=last) == [planned(settings, last)]
    assert planned(settings, last).state == "not running"


@pytest.mark.parametrize("ask", [pause, resume, run_now])
def test_asking_a_schedule_that_is_away_says_how_to_start_it(ask: Callable[[Settings], object], tmp_path: Path) -> None:
    with pytest.raises(NotAllowed, match="not running: start it with `filmroom schedule start`"):
        ask(Settings(home=tmp_path))


def test_a_taken_port_is_said_in_one_line(home: Home) -> None:
    port = home.settings.schedule.port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        assert home.launch().wait(timeout=60) == 1
    assert home.said == f"port {port} is taken by another program: set another `[schedule] port`\n"


def test_nothing_answers_within_a_second_where_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", api_url(free_port()))
    began = time.monotonic()
    assert tracking_url(tmp_path) is None
    assert time.monotonic() - began < 1.5


@pytest.mark.prefect
@pytest.mark.slow
def test_a_planned_turn_runs_and_is_listed(running: Home) -> None:
    wait_until(lambda: running.last_state == "completed", TURN_S)
    [state] = list_schedules(running.settings)
    assert (state.name, state.interval_s, state.state, running.turns > 0) == ("default", 10.0, "active", True)
    assert state.next_run_us is not None
    assert state.next_run_us % 10_000_000 == 0
    assert tracking_url(running.folder) == api_url(running.settings.schedule.port)


@pytest.mark.prefect
@pytest.mark.slow
def test_a_paused_schedule_plans_nothing_and_still_turns_when_asked(running: Home) -> None:
    assert (pause(running.settings).state, list_schedules(running.settings)[0].next_run_us) == ("paused", None)
    wait_until(lambda: running.is_idle, TURN_S)
    asked = run_now(running.settings)
    wait_until(lambda: was_last(running, asked.id), TURN_S)
    resumed = resume(running.settings)
    assert (resumed.state, resumed.next_run_us is not None) == ("active", True)


def was_last(home: Home, run_id: str) -> bool:
    last = list_schedules(home.settings)[0].last_run
    return last is not None and (last.id, last.state) == (run_id, "completed")


@pytest.mark.prefect
@pytest.mark.slow
def test_the_rhythm_can_be_changed_while_it_turns(running: Home) -> None:
    state = set_cron(running.settings, "0 3 * * *", timezone="Europe/Paris")
    assert (state.cron, state.interval_s, state.timezone) == ("0 3 * * *", None, "Europe/Paris")
    assert set_interval(running.settings, 7200).rhythm == "every 2 h"
    with pytest.raises(SettingsError, match="'hourly-ish' is not a cron expression"):
        set_cron(running.settings, "hourly-ish")


TRACKED = """
import json, os, sys
from pathlib import Path
from flows.prefect_environment import apply

if __name__ == "__main__":
    apply(Path(sys.argv[1]), int(sys.argv[2]))
    import distributed
    from flows.improve import run_tracked
    from tests.test_engine import learnt

    def tracked(workspace):
        assert run_tracked(workspace.settings.home / "filmroom.toml", "staff:ann") is not None

    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None, host="127.0.0.1") as cluster:
        found = learnt(Path(sys.argv[3]) / "dask", f'[engine]\\ndask = "{cluster.scheduler_address}"\\n', tracked)
        print("LEARNT", json.dumps(found), flush=True)
    os._exit(0)  # without Prefect's wait for its logs
"""


@pytest.mark.prefect
@pytest.mark.slow
def test_prefects_dask_runner_serves_the_model_of_an_untracked_turn(running: Home, tmp_path: Path) -> None:
    pytest.importorskip("prefect_dask", reason="Dask is not installed: filmroom[dask]")
    script = tmp_path / "tracked.py"
    script.write_text(TRACKED)
    command = [sys.executable, str(script), str(running.folder), str(running.settings.schedule.port), str(tmp_path)]
    done = subprocess.run(command, env=running.env, capture_output=True, text=True, check=False, timeout=120)
    found = [
        json.loads(line.removeprefix("LEARNT ")) for line in done.stdout.splitlines() if line.startswith("LEARNT ")
    ]
    alone = json.loads(json.dumps(learnt(tmp_path / "alone", "")))
    assert (found, alone["decision"]) == ([alone], "promoted"), done.stderr[-2000:]


@pytest.mark.prefect
@pytest.mark.slow
def test_a_second_start_says_in_one_line_that_one_is_running(running: Home) -> None:
    second = subprocess.run(running.command, env=running.env, capture_output=True, text=True, check=False)
    assert second.returncode == 1
    assert re.fullmatch(
        r"a schedule \(process \d+, port \d+\) is running on this home already: see `filmroom schedule list`\n",
        second.stderr,
    )


@pytest.mark.prefect
@pytest.mark.slow
def test_a_signal_ends_the_schedule_a_running_turn_and_the_server(running: Home) -> None:
    (running.folder / "hold").touch()
    set_interval(running.settings, 10)
    wait_until(lambda: running.last_state == "running", TURN_S)
    assert len(running.children()) == 2
    assert running.process is not None
    running.process.terminate()
    assert running.process.wait(timeout=60) == 0
    assert running.children() == []


@pytest.mark.prefect
@pytest.mark.slow
def test_a_turn_whose_machine_died_does_not_block_the_next(home: Home) -> None:
    home.start()
    (home.folder / "hold").touch()
    run_now(home.settings)
    wait_until(lambda: home.last_state == "running", TURN_S)
    home.end()
    (home.folder / "hold").unlink()
    (home.folder / "lease").touch()
    home.start()
    assert "a turn of an earlier start is still at work" in home.said
    assert home.last_state == "running"
    (home.folder / "lease").unlink()
    wait_until(lambda: home.last_state == "crashed", TURN_S)
    asked = run_now(home.settings)
    wait_until(lambda: was_last(home, asked.id), TURN_S)


@pytest.mark.prefect
@pytest.mark.slow
def test_it_turns_where_there_is_no_network_but_loopback(tmp_path: Path) -> None:
    alone = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], check=False).returncode:
        pytest.skip("no network namespace can be made here (unshare -rn)")
    home = Home(tmp_path / "home", interval_s=10)
    try:
        home.start(*alone)
        wait_until(lambda: home.turns, TURN_S)
    finally:
        home.end()
