"""What the schedule asks of its Prefect server, over plain HTTP on loopback.

Not through Prefect's own client: importing that takes four seconds of processor time and 80 MB, and a look at the
schedule, on the command line or in the console, should cost neither.
"""

import http.client
import json
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from store.errors import FilmroomError, NotAllowed

Json = dict[str, Any]

UNFINISHED = ("PENDING", "RUNNING", "CANCELLING")
ENDED = ("COMPLETED", "FAILED", "CRASHED")

_TIMEOUT_S = 20.0
_BUSY = (429, 502, 503)
"""Answers that did nothing and may be asked for again; Prefect's own client takes the same for it."""
_RETRIES = 20
_WAIT_S = 0.5


class CallRefused(NotAllowed):
    """Prefect's server refuses what was asked of it."""


class PrefectApi:
    """The server's API. Every method raises CallRefused where it refuses, FilmroomError where it is away."""

    def __init__(self, port: int) -> None:
        self.port = port

    def deployments(self) -> list[Json]:
        """Every deployment, with its schedules."""
        found: list[Json] = self._send("POST", "/deployments/filter", {})
        return found

    def runs(self, *states: str, of: str | None = None, sort: str, limit: int = 200) -> list[Json]:
        """At most `limit` runs in one of these states, of one deployment or of all, in Prefect's order `sort`."""
        wanted: Json = {"state": {"type": {"any_": states}}}
        if of is not None:
            wanted["deployment_id"] = {"any_": [of]}
        found: list[Json] = self._send("POST", "/flow_runs/filter", {"flow_runs": wanted, "sort": sort, "limit": limit})
        return found

    def run(self, run_id: str) -> Json:
        """One run."""
        found: Json = self._send("GET", f"/flow_runs/{run_id}")
        return found

    def logs(self, run_ids: Sequence[str], *, limit: int, offset: int = 0) -> list[Json]:
        """At most `limit` (Prefect gives 200) log lines of these runs, newest first, after the `offset` newest."""
        wanted = {"flow_run_id": {"any_": list(run_ids)}}
        found: list[Json] = self._send("POST", "/logs/filter", {"logs": wanted, "sort": "TIMESTAMP_DESC", "limit": limit,
                                                                "offset": offset})  # fmt: skip
        return found

    def update(self, deployment_id: str, change: Json) -> None:
        """Change a deployment: `{"paused": true}`, `{"schedules": [...]}`. Runs planned by its old self are dropped."""
        self._send("PATCH", f"/deployments/{deployment_id}", change)

    def trigger(self, deployment_id: str) -> Json:
        """A new run of a deployment, due now."""
        made: Json = self._send("POST", f"/deployments/{deployment_id}/create_flow_run", {})
        return made

    def crash(self, run_id: str, message: str) -> None:
        """Force a run to Crashed, which frees the place it holds in its deployment's limit."""
        state = {"type": "CRASHED", "name": "Crashed", "message": message}
        self._send("POST", f"/flow_runs/{run_id}/set_state", {"state": state, "force": True})

    def forget(self, run_id: str) -> None:
        """Delete a run."""
        self._send("DELETE", f"/flow_runs/{run_id}")

    def _send(self, verb: str, path: str, body: Json | None = None) -> Any:
        """The answer, after as many tries as a database that is busy for a moment needs."""
        status, text = self._try(verb, path, body)
        for _ in range(_RETRIES):
            if status not in _BUSY:
                break
            time.sleep(_WAIT_S)
            status, text = self._try(verb, path, body)
        if status >= http.client.BAD_REQUEST:
            raise CallRefused(f"Prefect refuses {verb} {path}: {status} {text[:200]}")
        return json.loads(text) if text else None

    def _try(self, verb: str, path: str, body: Json | None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_TIMEOUT_S)
        payload = None if body is None else json.dumps(body)
        try:
            connection.request(verb, f"/api{path}", payload, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise FilmroomError(f"Prefect on port {self.port} does not answer: {error}") from error
        finally:
            connection.close()


def microseconds(moment: str | None) -> int | None:
    """A time as Prefect writes it, in microseconds since 1970 UTC.

    >>> microseconds("1970-01-01T00:00:01.5Z")
    1500000
    """
    return None if moment is None else round(datetime.fromisoformat(moment).timestamp() * 1_000_000)
