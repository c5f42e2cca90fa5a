"""Logged runs of a tool-calling agent: a list of messages a run, in the manner of tau-bench.

A run is one trace; every turn of the user, every answer of the model and every tool call with its result is a span.
What a benchmark knows and the agent did not (the task, its expected actions, the graded result) is held apart.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from store.records import Feedback, Span, Trace
from store.sources.contract import BadRecord, Item, Sample, SourceOptions
from store.sources.fields import Occurrences, as_id, as_number, as_text, make, short, unwrapped
from store.sources.json_records import JsonRecord, read_objects
from store.sources.times import parse_time

name = "chat_runs"

_MESSAGE_KEYS = ("traj", "messages", "trajectory", "conversation")
_ID_KEYS = ("id", "run_id", "trace_id")
_PLAIN_KEYS = ("task_id", "trial", "domain", "environment", "tags")
"""What identifies a run and tells nothing of its outcome: goes to the trace's attributes."""
_FIELD_KEYS = ("user", "session", "model", "source")
_SAID = ("role", "content", "tool_calls", "function_call", "tool_call_id", "name", "timestamp")
_SYSTEM_ROLES = ("system", "developer")
_RESULT_ROLES = ("tool", "function")

Values = dict[str, Any]
Message = dict[str, JsonValue]


def recognise(sample: Sample) -> str | None:
    """Recognises objects with a list of messages that have roles."""
    for run in sample.objects:
        key = _messages_key(run)
        if key is not None and "type" not in run:
            return f"runs with messages under {key!r}"
    return None


def read(path: Path, options: SourceOptions) -> Iterator[Item]:
    """The runs of a file, each a trace, its spans and its reward."""
    owner = {"project": options.project, "source": options.source or name}
    occurrences = Occurrences()
    return read_objects(path, lambda record: _run(record, owner, occurrences, options))


def _messages_key(run: dict[str, JsonValue]) -> str | None:
    for key in _MESSAGE_KEYS:
        found = run.get(key)
        if isinstance(found, list) and found and all(isinstance(item, dict) and "role" in item for item in found):
            return key
    return None


def _run(record: JsonRecord, owner: Values, occurrences: Occurrences, options: SourceOptions) -> list[Item]:
    run = record.value
    key = _messages_key(run)
    if key is None:
        raise BadRecord(f"no messages with a `role` under any of {', '.join(_MESSAGE_KEYS)}")
    messages = [item for item in _as_list(run[key]) if isinstance(item, dict)]
    named = next((found for field in _ID_KEYS if (found := as_id(run.get(field)))), None)
    external_id = named or occurrences.id_of(run)
    steps = _Steps(messages, as_text(run.get("model")) or options.model, options)
    trace = _trace(run, key, messages, steps.system) | owner | {"external_id": external_id}
    spans = [make(Span, step | owner | {"trace_external_id": external_id}) for step in steps.drafts]
    return [make(Trace, trace | _times(steps.drafts)), *spans, *_reward(run, owner, external_id)]


def _trace(run: dict[str, JsonValue], key: str, messages: list[Message], system: list[JsonValue]) -> Values:
    asked = [message.get("content") for message in messages if message["role"] == "user"]
    answered = [message["content"] for message in messages if message["role"] == "assistant" and message.get("content")]
    attributes = {field: run[field] for field in _PLAIN_KEYS if field in run}
    if system:
        attributes["system"] = system[0] if len(system) == 1 else system
    plain = {key, *_ID_KEYS, *_PLAIN_KEYS, *_FIELD_KEYS}
    return {
        "input": asked[0] if asked else None,
        "output": answered[-1] if answered else None,
        "user": as_text(run.get("user")),
        "session": as_text(run.get("session")),
        "model": as_text(run.get("model")),
        "attributes": attributes,
        "held_apart": {field: value for field, value in run.items() if field not in plain},
    }


def _times(drafts: list[Values]) -> Values:
    started = [draft["started_us"] for draft in drafts if "started_us" in draft]
    return {"started_us": min(started), "ended_us": max(started)} if started else {}


def _reward(run: dict[str, JsonValue], owner: Values, external_id: str) -> list[Item]:
    """The reward as feedback of a program; one that is no number is its label."""
    reward = run.get("reward")
    if reward is None or reward == "":
        return []
    values: Values = {"name": "reward", "external_id": "reward", "source_kind": "program"}
    try:
        values["score"] = as_number(reward)
    except BadRecord:
        values["label"] = as_text(reward)
    return [make(Feedback, values | owner | {"trace_external_id": external_id})]


class _Steps:
    """The spans of one run, as values; a tool's result is joined to its call."""

    def __init__(self, messages: list[Message], model: str | None, options: SourceOptions) -> None:
        self.drafts: list[Values] = []
        self.system: list[JsonValue] = []
        self._model = model
        self._zone = options.zone
        self._open: list[Values] = []
        """Calls that have no result yet, in order."""
        for message in messages:
            self._add(message)

    def _add(self, message: Message) -> None:
        role = message["role"]
        if role in _SYSTEM_ROLES:
            self.system.append(message.get("content"))
        elif role == "user":
            self._step(message, kind="user", input=message.get("content"))
        elif role == "assistant":
            self._answer(message)
        elif role in _RESULT_ROLES:
            self._result(message)
        else:
            self._step(message, kind="other", name=as_text(role), output=message.get("content"))

    def _step(self, message: Message, **values: Any) -> Values:
        position = len(self.drafts)
        draft: Values = {"external_id": str(position), "position": position, **values}
        moment = parse_time(message.get("timestamp"), self._zone)
        if moment is not None:
            draft |= {"started_us": moment.us, "started_ns": moment.ns}
        others = {key: value for key, value in message.items() if key not in _SAID and value is not None}
        draft["attributes"] = draft.get("attributes", {}) | others
        self.drafts.append(draft)
        return draft

    def _answer(self, message: Message) -> None:
        calls = [_call(item) for item in _as_list(message.get("tool_calls"))]
        if message.get("function_call"):
            calls.append(_call({"function": message["function_call"]}))
        output = message.get("content")
        if calls:
            asked: list[JsonValue] = [{"name": call["name"], "arguments": call["input"]} for call in calls]
            output = {"content": output, "tool_calls": asked}
        answer = self._step(message, kind="llm", name=self._model, model=self._model, output=output)
        for call in calls:
            draft = self._step({}, kind="tool", parent_external_id=answer["external_id"], **call)
            self._open.append(draft)

    def _result(self, message: Message) -> None:
        content = message.get("content")
        draft = self._call_of(message)
        if draft is None:
            call_id = as_text(message.get("tool_call_id"))
            draft = self._step(message, kind="tool", name=as_text(message.get("name")), tool_call_id=call_id)
        draft["output"] = unwrapped(content)
        draft["status"] = "ok"
        if isinstance(content, str) and content.lstrip().startswith("Error"):
            draft |= {"status": "error", "error": content}

    def _call_of(self, message: Message) -> Values | None:
        """The call that this is the result of: by its id, else the first of its name that waits; None: there is none."""
        call_id, tool = message.get("tool_call_id"), message.get("name")
        for draft in self._open:
            same = draft["tool_call_id"] == call_id if call_id else tool in (None, draft["name"])
            if same:
                self._open.remove(draft)
                return draft
        return None


def _call(item: JsonValue) -> Values:
    if not isinstance(item, dict):
        raise BadRecord(f"a tool call is not an object: {short(item)}")
    function = item.get("function")
    said = function if isinstance(function, dict) else item
    return {
        "name": as_text(said.get("name")),
        "input": unwrapped(said.get("arguments")),
        "tool_call_id": as_text(item.get("id")),
    }


def _as_list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
