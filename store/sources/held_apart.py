"""Evaluation data that a log carries beside what happened: gold answers, expectations, reference outputs.

It is taken out of metadata and of the inputs of evaluators and put into `Trace.held_apart`, where no router sees it.
"""

import re
from typing import Any

from pydantic import JsonValue

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ALWAYS = frozenset(
    (
        *("reference_output", "reference_outputs", "reference_answer", "expected_outputs", "expectations"),
        *("ground_truth", "ground_truths", "groundtruth", "gold", "gold_answer", "gold_label", "gold_output"),
        *("golden", "golden_answer", "golden_output", "ideal_answer", "ideal_output", "ideal_response"),
    )
)
_IN_METADATA = _ALWAYS | {
    *("expected_output", "expected_answer", "expected_response", "expected_result", "expected_value", "expected"),
    *("expected_facts", "expected_tools", "expected_tool_calls", "expected_action", "expected_actions"),
    *(
        "expected_retrieved_context",
        "reference",
        "ideal",
        "target_output",
        "correct_answer",
        "dataset_item_expected_output",
    ),
}
"""Names that mean it in metadata, or beside an `input`; alone in an input they may be the program's own field."""
_ENDINGS = ("_expected_output", "_expected_outputs", "_reference_output", "_reference_outputs", "_ground_truth")
_DEPTH = 3


def plain_name(key: str) -> str:
    """A field's name without its path and in one spelling.

    >>> plain_name("langfuse.experiment.item.expectedOutput")
    'expected_output'
    """
    return _WORD_START.sub("_", key.rsplit(".", 1)[-1]).lower().replace("-", "_")


def parted(metadata: dict[str, JsonValue], apart: dict[str, JsonValue], depth: int = 0) -> dict[str, JsonValue]:
    """The metadata without its evaluation data, which is added to `apart`.

    >>> apart = {}
    >>> parted({"tier": "a", "run": {"expected_output": "no"}}, apart), apart
    ({'tier': 'a', 'run': {}}, {'expected_output': 'no'})
    """
    kept: dict[str, JsonValue] = {}
    for key, value in metadata.items():
        name = plain_name(key)
        if name in _IN_METADATA or name.endswith(_ENDINGS):
            put(apart, name, value)
        elif isinstance(value, dict) and depth < _DEPTH:
            kept[key] = parted(value, apart, depth + 1)
        else:
            kept[key] = value
    return kept


def part_io(value: JsonValue, apart: dict[str, JsonValue]) -> JsonValue:
    """An input or output without the evaluation data at its top level, which is added to `apart`.

    >>> apart = {}
    >>> part_io({"inputs": {"q": 1}, "expected": "no"}, apart), part_io({"expected": "Monday"}, apart), apart
    ({'inputs': {'q': 1}}, {'expected': 'Monday'}, {'expected': 'no'})
    """
    if not isinstance(value, dict):
        return value
    names = _IN_METADATA if {"input", "inputs"} & value.keys() else _ALWAYS
    found = [key for key in value if plain_name(key) in names]
    for key in found:
        put(apart, plain_name(key), value[key])
    return {key: item for key, item in value.items() if key not in found} if found else value


def put(apart: dict[str, Any], name: str, value: JsonValue) -> None:
    """Add a value under its name; another value of the same name gets a number."""
    number, key = 1, name
    while key in apart and apart[key] != value:
        number += 1
        key = f"{name} {number}"
    apart[key] = value
