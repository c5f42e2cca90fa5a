"""Runs the user's replay function, one case a line, in the user's interpreter. Standard library only; nothing of ours.

    python runner.py MODULE:FUNCTION [MODULE:CHECK]

A request is one JSON line on stdin: `{"input", "release", "recorded", "safe", "case"}`. An answer is one JSON line on what
was stdout when it started; what the user's code prints goes to stderr.
"""

import importlib
import json
import os
import sys
from typing import Any


class NotRecorded(BaseException):
    """A tool was called in a way that the log does not hold. No `except Exception` of the user's code swallows it."""


class ToolError(Exception):
    """What the tool answered in the log was an error."""


class Tools:
    """Answers calls with what was recorded: `tools(name, arguments)`.

    A tool that is listed as safe may be called for real: `tools(name, arguments, function)`.
    """

    def __init__(self, recorded: Any, safe: Any) -> None:
        self._recorded = {_key(each["name"], each["arguments"]): list(each["answers"]) for each in recorded}
        self._safe = frozenset(safe)
        self.calls: Any = []
        self.missing: Any = []

    def __call__(self, name: str, arguments: Any = None, function: Any = None) -> Any:
        given = dict(arguments or {})
        call: Any = {"name": name, "arguments": given}
        self.calls.append(call)
        answers = self._recorded.get(_key(name, given))
        if answers:
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            if answer.get("error"):
                call["error"] = answer["error"]
                raise ToolError(answer["error"])
            call["output"] = answer.get("output")
            return answer.get("output")
        if name in self._safe and function is not None:
            call["output"] = function(**given)
            return call["output"]
        self.missing.append(name)
        raise NotRecorded(name)


def answer(replay: Any, check: Any, request: Any) -> Any:
    """The answer to one request; what goes wrong is part of it."""
    reply: Any
    tools = Tools(request["recorded"], request["safe"])
    try:
        found = replay(request["input"], request["release"], tools)
        if not isinstance(found, dict) or "output" not in found:
            raise TypeError("the replay function must return {'output', 'tool_calls', 'cost'}")
        reply = {
            "output": found["output"],
            "cost": found.get("cost"),
            "tool_calls": tools.calls,
            "said_calls": found.get("tool_calls") or [],
        }
        if check is not None and not tools.missing:
            reply["right"] = check(request["input"], found["output"], request["case"])
    except NotRecorded:
        reply = {}
    except Exception as error:  # noqa: BLE001  # whatever the user's code raises is its answer
        reply = {"error": f"{type(error).__name__}: {error}"[:500]}
    reply["missing"] = tools.missing
    return reply


def load(place: str) -> Any:
    """What `module:name` names."""
    module, _, name = place.partition(":")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _key(name: str, arguments: Any) -> str:
    return name + "\0" + json.dumps(arguments, sort_keys=True, default=str)


def main() -> None:
    """Answer requests until there are none."""
    sys.path[0] = os.getcwd()
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        replay = load(sys.argv[1])
        check = load(sys.argv[2]) if len(sys.argv) > 2 else None
        problem = ""
    except BaseException as error:  # noqa: BLE001  # also a module that ends the interpreter is told
        problem = f"{type(error).__name__}: {error}"[:500]
    for line in requests:
        request = json.loads(line)
        reply: Any = {"hook": problem} if problem else {"output": None}
        if not problem and not request.get("probe"):
            reply = answer(replay, check, request)
        try:
            text = json.dumps(reply)
        except (TypeError, ValueError, RecursionError) as error:
            text = json.dumps({"error": f"the answer is not JSON: {error}"[:500]})
        channel.write(text + "\n")
        channel.flush()


if __name__ == "__main__":
    main()
