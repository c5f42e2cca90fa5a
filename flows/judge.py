"""The optional judge: any OpenAI-compatible endpoint, asked about each cluster once, within a time and a cost.

It is never needed: without an answer its evidence is not measured, and everything goes on.
"""

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from flows.workspace import Workspace
from models.judge_opinion import Opinion, as_evidence, messages_for, read_opinion
from store.records import Case, content_hash

FOLDER = Path(".filmroom") / "judge"
"""Below the home: one file a question, named after the digest of its words."""
MOST_BYTES = 1 << 20
"""Longest answer that is read."""


class Judge:
    """Asks, remembers what was said under `.filmroom/judge`, and stops at the cost of a turn."""

    def __init__(self, workspace: Workspace) -> None:
        self._agent = workspace.settings.agent
        self._folder = workspace.settings.home / FOLDER
        self.asked = 0
        self.spent_usd = 0.0
        self.problems: list[str] = []

    @property
    def is_set(self) -> bool:
        return self._agent.judge is not None

    def evidence(self, name: str, cases: Sequence[Case]) -> dict[str, float | None]:
        """The judge's columns for a cluster; all None where there is no judge, or none that answers."""
        return as_evidence(self._opinion(name, cases) if self.is_set and cases else None)

    @property
    def line(self) -> str:
        """What a person should know of it, in one line."""
        problem = f"; {self.problems[-1]}" if self.problems else ""
        return f"judge: asked {self.asked} times, {self.spent_usd:.4f} USD{problem}"

    def _opinion(self, name: str, cases: Sequence[Case]) -> Opinion | None:
        messages = messages_for(name, cases)
        kept = self._folder / f"{content_hash([self._agent.judge, self._agent.judge_model, messages])}.json"
        known = _remembered(kept)
        if known is not None:
            return known
        if self.spent_usd >= self._agent.judge_cost_usd:
            self.problems.append("the cost cap of the turn was reached")
            return None
        answer = self._ask(messages)
        found = None if answer is None else read_opinion(answer)
        if answer is not None and found is None:
            self.problems.append("an answer without an opinion in it")
        if found is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            kept.write_text(found.model_dump_json(), encoding="utf-8")
        return found

    def _ask(self, messages: list[dict[str, str]]) -> str | None:
        """The answer's text, from a thread, so that not even a slow dribble holds longer than the limit; None: none came."""
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(self._post(messages)), name="filmroom-judge", daemon=True)
        self.asked += 1
        thread.start()
        thread.join(self._agent.judge_timeout_s)
        if not found:
            self.problems.append(f"no answer within {self._agent.judge_timeout_s:g} s")
            return None
        if isinstance(found[0], str):
            self.problems.append(found[0])
            return None
        return self._text_in(found[0])

    def _post(self, messages: list[dict[str, str]]) -> dict[str, Any] | str:
        """The reply, or what went wrong in a phrase."""
        body = {"model": self._agent.judge_model, "messages": messages, "temperature": 0, "max_tokens": 60,
                "response_format": {"type": "json_object"}}  # fmt: skip
        key = os.environ.get(self._agent.judge_key_env or "", "")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        url = f"{str(self._agent.judge).rstrip('/')}/chat/completions"
        try:
            with (
                httpx.Client(trust_env=False, timeout=self._agent.judge_timeout_s) as client,
                client.stream("POST", url, json=body, headers=headers) as response,
            ):
                data = bytearray()
                for part in response.iter_bytes():
                    data += part
                    if len(data) > MOST_BYTES:
                        return "an answer of more than 1 MiB"
                if response.status_code != 200:
                    return f"it answers {response.status_code}"
            reply = json.loads(data)
        except httpx.HTTPError as error:
            return f"{type(error).__name__}: {error}"[:200]
        except (ValueError, RecursionError):
            return "the answer is not JSON"
        return reply if isinstance(reply, dict) else "the answer is not a JSON object"

    def _text_in(self, reply: dict[str, Any]) -> str | None:
        usage = reply.get("usage")
        tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
        if isinstance(tokens, int) and tokens > 0:
            self.spent_usd += tokens * self._agent.judge_usd_per_million / 1_000_000
        try:
            text = reply["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            text = None
        if not isinstance(text, str):
            self.problems.append("an answer without text")
            return None
        return text


def forget_opinions(home: Path) -> int:
    """Remove all that the judge was asked and said; returns how many questions. Which of them quote whom cannot be told from
    their digests, and one that comes again is asked again.
    """
    kept = list((home / FOLDER).glob("*"))
    for file in kept:
        file.unlink(missing_ok=True)
    return len(kept)


def _remembered(path: Path) -> Opinion | None:
    try:
        return read_opinion(path.read_text(encoding="utf-8"))
    except OSError:
        return None
