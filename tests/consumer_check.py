"""Reads an exported file as its consumer would, with the consumer's own code. Run by the interpreter that has it:

python consumer_check.py trl-dpo FILE
"""

# mypy: ignore-errors
import json
import sys
from pathlib import Path

TEMPLATE = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"


def lines(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def tokenizer():
    """One without a model behind it; only its chat template is used."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    made = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"?": 0}, "?")))
    made.chat_template = TEMPLATE
    return made


def trl(path, keys):
    """TRL's own reading: it must see conversations, and make texts of them by a chat template."""
    from datasets import load_dataset
    from trl.data_utils import apply_chat_template, is_conversational

    found = load_dataset("json", data_files=str(path), split="train", cache_dir=str(Path(path).parent / ".cache"))
    assert set(found.column_names) == set(keys), found.column_names
    rows = list(found)
    assert all(is_conversational(row) for row in rows)
    texts = [apply_chat_template(row, tokenizer()) for row in rows]
    assert all(isinstance(text[key], str) and text[key] for text in texts for key in keys if key != "label")
    return len(rows)


def openai(path, *, is_preference=False):
    """OpenAI's own message types, inside the request lines of its OpenAPI document."""
    from openai.types.chat import ChatCompletionAssistantMessageParam, ChatCompletionMessageParam
    from pydantic import TypeAdapter

    messages = TypeAdapter(list[ChatCompletionMessageParam])
    answers = TypeAdapter(list[ChatCompletionAssistantMessageParam])
    rows = lines(path)
    for row in rows:
        if is_preference:
            assert set(row) == {"input", "preferred_output", "non_preferred_output"}, row
            messages.validate_python(row["input"]["messages"])
            answers.validate_python(row["preferred_output"])
            answers.validate_python(row["non_preferred_output"])
            assert row["input"]["messages"][-1]["role"] == "user"
            continue
        assert set(row) == {"messages"}, row
        messages.validate_python(row["messages"])
        assert row["messages"][-1]["role"] == "assistant"
    return len(rows)


def together(path):
    from together.lib.utils.files import check_file

    report = check_file(Path(path))
    assert report["is_check_passed"], report
    return report["num_samples"]


def datasets(folder):
    from datasets import load_dataset

    found = load_dataset(str(folder), split="train", cache_dir=str(Path(folder) / ".cache"))
    assert {"prompt", "chosen", "rejected", "trace", "correction", "source"} <= set(found.column_names)
    return found.num_rows


CHECKS = {
    "trl-sft": lambda path: trl(path, ("prompt", "completion")),
    "trl-dpo": lambda path: trl(path, ("prompt", "chosen", "rejected")),
    "trl-kto": lambda path: trl(path, ("prompt", "completion", "label")),
    "openai": openai,
    "openai-dpo": lambda path: openai(path, is_preference=True),
    "together": together,
    "together-dpo": together,
    "datasets": datasets,
}

if __name__ == "__main__":
    sys.stdout.write(json.dumps({"rows": CHECKS[sys.argv[1]](sys.argv[2])}))
