"""The environment of the embedded Prefect: its own home, loopback only, no telemetry.

Prefect reads its settings once, at its first import; so they are set before it, here and nowhere else.
"""

import os
import sys
import sysconfig
from pathlib import Path

RETENTION_DAYS = 30
"""Finished runs older than this are pruned from Prefect's own database; the ledger in the store keeps everything."""

_OURS_TO_LEAVE = "PREFECT_LOGGING_"


def prefect_home(home: Path) -> Path:
    """The folder of the embedded Prefect: beside the store, so that a home is moved and deleted as one."""
    return home.resolve() / ".filmroom" / "prefect"


def api_url(port: int) -> str:
    """The API of the embedded server.

    >>> api_url(4210)
    'http://127.0.0.1:4210/api'
    """
    return f"http://127.0.0.1:{port}/api"


def prefect_environment(home: Path, port: int) -> dict[str, str]:
    """Every variable under which the embedded Prefect runs, for the store in `home` and the loopback `port`."""
    return {
        "PREFECT_HOME": str(prefect_home(home)),
        "PREFECT_API_URL": api_url(port),
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        **_alone(port),
        **_paced(),
    }


def _alone(port: int) -> dict[str, str]:
    """No request leaves this machine, and no web page but the server's own may call its API from a browser."""
    return {
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_SERVER_UI_API_URL": api_url(port),
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": f"http://127.0.0.1:{port}",
    }


def _paced() -> dict[str, str]:
    """Waits in seconds: a trigger starts its run within 3 s instead of 15; old runs go."""
    return {
        "PREFECT_RUNNER_POLL_FREQUENCY": "2",
        "PREFECT_SERVER_DEPLOYMENTS_CONCURRENCY_SLOT_WAIT_SECONDS": "5",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "90",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": str(RETENTION_DAYS * 24 * 3600),
    }


def apply(home: Path, port: int) -> None:
    """Make the folder, and set this process's environment; every other `PREFECT_*` variable but logging's is dropped.

    A variable of another installation (a key, a profile, a database) must not reach ours.
    Raises RuntimeError when Prefect is imported already under other settings: they would be ignored in silence.
    """
    wanted = prefect_environment(home, port)
    if wanted.items() <= os.environ.items():
        return
    if "prefect" in sys.modules:
        raise RuntimeError("prefect was imported before its environment was set: call apply() first")
    for name in [name for name in os.environ if name.startswith("PREFECT_") and not name.startswith(_OURS_TO_LEAVE)]:
        del os.environ[name]
    os.environ.update(wanted)
    prefect_home(home).mkdir(parents=True, exist_ok=True)


def importable() -> dict[str, str]:
    """The `PYTHONPATH` under which a child process finds this very code; empty where the code is installed.

    Where it is not empty, it must not reach the user's own interpreter: our package names are common words.
    """
    root = str(Path(__file__).resolve().parents[1])
    if root == sysconfig.get_path("purelib"):
        return {}
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != root]
    return {"PYTHONPATH": os.pathsep.join([root, *others])}
