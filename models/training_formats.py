"""Corrections as other systems' training files: TRL, OpenAI, Together, Hugging Face `datasets`, CSV.

One example is a question, the right answer, and what was answered instead where that is known. Formats are those of
TRL 1.x ("Dataset formats"), OpenAI's fine-tuning guides (supervised and direct preference optimisation), and Together's
("Data preparation").
"""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic import JsonValue

from models.steps import text_of
from store.records.production import Record

Row = dict[str, Any]


class Example(Record):
    """One question with its right answer."""

    prompt: tuple[dict[str, str], ...]
    """Messages, the last of them the user's: `{"role", "content"}`."""
    chosen: str
    rejected: str | None = None
    """What was answered instead; None: it is not known."""
    provenance: dict[str, JsonValue]
    """Where it comes from: trace, correction, who said so, when."""


def messages_of(value: JsonValue) -> tuple[dict[str, str], ...]:
    """The input of a trace as messages: those it holds, or one of the user's.

    >>> messages_of("hello"), messages_of([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}])[0]
    (({'role': 'user', 'content': 'hello'},), {'role': 'system', 'content': 'Be kind.'})
    """
    listed = value.get("messages") if isinstance(value, dict) else value
    if isinstance(listed, list) and listed:
        found = [_message(each) for each in listed]
        if all(each is not None for each in found) and found[-1] is not None and found[-1]["role"] == "user":
            return tuple(each for each in found if each is not None)
    return ({"role": "user", "content": text_of(value)},)


def trl_sft(example: Example) -> list[Row]:
    """Conversational prompt and completion."""
    return [{"prompt": list(example.prompt), "completion": [_answer(example.chosen)]}]


def trl_dpo(example: Example) -> list[Row]:
    """Conversational preference; nothing where the rejected answer is not known."""
    if example.rejected is None:
        return []
    return [
        {
            "prompt": list(example.prompt),
            "chosen": [_answer(example.chosen)],
            "rejected": [_answer(example.rejected)],
        }
    ]


def trl_kto(example: Example) -> list[Row]:
    """Unpaired preference: the right answer as desirable, the served one as undesirable."""
    good = {"prompt": list(example.prompt), "completion": [_answer(example.chosen)], "label": True}
    if example.rejected is None:
        return [good]
    return [good, {"prompt": list(example.prompt), "completion": [_answer(example.rejected)], "label": False}]


def chat(example: Example) -> list[Row]:
    """OpenAI's and Together's supervised format."""
    return [{"messages": [*example.prompt, _answer(example.chosen)]}]


def preference(example: Example) -> list[Row]:
    """OpenAI's and Together's preference format."""
    if example.rejected is None:
        return []
    return [
        {
            "input": {"messages": list(example.prompt)},
            "preferred_output": [_answer(example.chosen)],
            "non_preferred_output": [_answer(example.rejected)],
        }
    ]


def flat(example: Example) -> list[Row]:
    """One line of texts, for tables: prompt, chosen, rejected, and where it comes from."""
    prompt = "\n".join(each["content"] for each in example.prompt)
    return [{"prompt": prompt, "chosen": example.chosen, "rejected": example.rejected, **example.provenance}]


FORMATS: Mapping[str, Callable[[Example], list[Row]]] = MappingProxyType(
    {
        "trl-sft": trl_sft,
        "trl-dpo": trl_dpo,
        "trl-kto": trl_kto,
        "openai": chat,
        "openai-dpo": preference,
        "together": chat,
        "together-dpo": preference,
        "datasets": flat,
        "csv": flat,
    }
)
"""Name to what makes rows of an example."""


def json_lines(rows: Sequence[Row]) -> bytes:
    """One JSON object a line, ASCII: readers that split at any Unicode line end read it too."""
    return b"".join(json.dumps(row, ensure_ascii=True).encode("ascii") + b"\n" for row in rows)


def table(rows: Sequence[Row]) -> bytes:
    """CSV with a heading. What a spreadsheet would take for a formula is quoted by an apostrophe.

    >>> print(table([{"prompt": "=1+1", "chosen": "a"}]).decode().strip().replace(chr(13), ""))
    prompt,chosen
    '=1+1,a
    """
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["prompt", "chosen", "rejected"]
    made = io.StringIO()
    writer = csv.DictWriter(made, names)
    writer.writeheader()
    writer.writerows({name: _cell(row.get(name)) for name in names} for row in rows)
    return made.getvalue().encode("utf-8", "replace")


def dataset_card(name: str, rows: int) -> bytes:
    """The README of a `datasets` folder: which file is which split."""
    return (
        "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n    path: data/train.jsonl\n---\n\n"
        f"# {name}\n\n{rows} corrections, one a line: `prompt`, `chosen`, `rejected`, and where each comes from.\n"
    ).encode()


def _answer(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def _message(value: JsonValue) -> dict[str, str] | None:
    if not isinstance(value, dict) or value.get("role") not in ("system", "user", "assistant"):
        return None
    content = value.get("content")
    return {"role": str(value["role"]), "content": content} if isinstance(content, str) and content else None


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
