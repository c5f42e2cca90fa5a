"""Token counts of every system in one convention: `input` counts cached tokens too.

OpenAI, OpenTelemetry, OpenInference and LangChain report the whole prompt and say how much of it was cached. Anthropic
reports what was not cached and adds the cache beside it. Langfuse keeps whichever came in, with a total.
"""

from typing import NamedTuple

from pydantic import JsonValue

from store.sources.contract import BadRecord
from store.sources.fields import as_count
from store.sources.payload import object_of

_INPUT = ("input_tokens", "prompt_tokens", "inputTokens", "promptTokens", "promptTokenCount", "input")
_OUTPUT = ("output_tokens", "completion_tokens", "outputTokens", "completionTokens", "candidatesTokenCount", "output")
_TOTAL = ("total_tokens", "totalTokens", "totalTokenCount", "total")
_READ = ("cache_read_input_tokens", "cache_read_tokens", "cachedContentTokenCount", "input_cached_tokens")
_WRITE = ("cache_creation_input_tokens", "cache_write_input_tokens", "cache_write_tokens")
_INPUT_DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details", "prompt_token_details")
_OUTPUT_DETAILS = (
    *("completion_tokens_details", "output_tokens_details"),
    *("output_token_details", "completion_token_details"),
)


class Tokens(NamedTuple):
    """Tokens of one step; None: not said."""

    input: int | None = None
    """All of the prompt, cached or not."""
    output: int | None = None
    """All of the answer, reasoning included."""
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    @property
    def counts(self) -> dict[str, int]:
        """`input_tokens` and `output_tokens`, those that are known."""
        pairs = {"input_tokens": self.input, "output_tokens": self.output}
        return {name: count for name, count in pairs.items() if count is not None}

    @property
    def attributes(self) -> dict[str, JsonValue]:
        """The finer counts, those that are known."""
        names = ("cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
        return {name: count for name, count in zip(names, self[2:], strict=True) if count is not None}


def inclusive(usage: JsonValue) -> Tokens:
    """Of a system that counts cached tokens in its input: OpenAI, LangChain, OpenTelemetry.

    >>> inclusive({"prompt_tokens": 57, "completion_tokens": 17, "prompt_tokens_details": {"cached_tokens": 2}})
    Tokens(input=57, output=17, cache_read=2, cache_write=None, reasoning=None)
    """
    fields = object_of(usage)
    inputs, outputs = _details(fields, _INPUT_DETAILS), _details(fields, _OUTPUT_DETAILS)
    return Tokens(
        input=_first(fields, _INPUT),
        output=_first(fields, _OUTPUT),
        cache_read=_either(_first(inputs, ("cached_tokens", "cache_read")), _first(fields, _READ)),
        cache_write=_either(_first(inputs, ("cache_creation", "cache_write")), _first(fields, _WRITE)),
        reasoning=_either(
            _first(outputs, ("reasoning_tokens", "reasoning", "thinking_tokens")),
            _first(fields, ("reasoning_tokens", "thoughtsTokenCount")),
        ),
    )


def exclusive(usage: JsonValue) -> Tokens:
    """Of a system that counts cached tokens beside its input: Anthropic.

    >>> exclusive({"input_tokens": 5, "cache_read_input_tokens": 128955, "cache_creation_input_tokens": 1253}).input
    130213
    """
    found = inclusive(usage)
    if found.input is None:
        return found
    return found._replace(input=found.input + (found.cache_read or 0) + (found.cache_write or 0))


def either(usage: JsonValue) -> Tokens:
    """Of a system that passes on what its provider said.

    It is the exclusive convention where more was cached than went in, or where the total counts the cache too.

    >>> either({"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 1}).input
    105
    >>> either({"input_tokens": 105, "cache_read_input_tokens": 100, "output_tokens": 1, "total_tokens": 106}).input
    105
    """
    found, total = inclusive(usage), _first(object_of(usage), _TOTAL)
    cached = (found.cache_read or 0) + (found.cache_write or 0)
    if found.input is None or not cached:
        return found
    if cached > found.input or (total is not None and total == found.input + (found.output or 0) + cached):
        return found._replace(input=found.input + cached)
    return found


def gemini(usage: JsonValue) -> Tokens:
    """Of Gemini, which counts its thoughts beside the answer.

    >>> gemini({"promptTokenCount": 67, "candidatesTokenCount": 19, "thoughtsTokenCount": 54}).output
    73
    """
    found = inclusive(usage)
    if found.reasoning is None:
        return found
    return found._replace(output=(found.output or 0) + found.reasoning)


def langfuse(details: JsonValue) -> Tokens:
    """Of Langfuse's `usageDetails`, whose keys vary: parts of the input and the output add up unless the total says not.

    >>> langfuse({"input": 179, "output": 35, "output_reasoning": 64, "total": 278})
    Tokens(input=179, output=99, cache_read=None, cache_write=None, reasoning=64)
    >>> langfuse({"input": 6, "output": 2055, "completion_details.reasoning": 1104, "total": 2061}).output
    2055
    """
    counts = {key: count for key, value in object_of(details).items() if (count := _count(value)) is not None}
    named = _first(dict(counts), _INPUT), _first(dict(counts), _OUTPUT)
    parts_in = {key: count for key, count in counts.items() if _is_part(key, "input", "cache")}
    parts_out = {key: count for key, count in counts.items() if _is_part(key, "output", "reasoning")}
    both, total = tuple(count or 0 for count in named), _first(dict(counts), _TOTAL)
    add = total is None or sum(both) != total
    return Tokens(
        input=_sum(named[0], parts_in) if add else named[0],
        output=_sum(named[1], parts_out) if add else named[1],
        cache_read=_matching(counts, "cache_read", "cached"),
        cache_write=_matching(counts, "cache_write", "cache_creation"),
        reasoning=_matching(counts, "reasoning"),
    )


def _is_part(key: str, side: str, mark: str) -> bool:
    """Whether a key counts a part of one side: `input_audio`, `cache_read_input_tokens`; not a detail of a sum."""
    if "details." in key or key in (*_INPUT, *_OUTPUT, *_TOTAL):
        return False
    return key.startswith(side + "_") or (mark in key and side == ("input" if "cache" in key else "output"))


def _matching(counts: dict[str, int], *marks: str) -> int | None:
    found = [count for key, count in counts.items() if any(mark in key for mark in marks)]
    return sum(found) if found else None


def _sum(count: int | None, parts: dict[str, int]) -> int | None:
    return count if count is None and not parts else (count or 0) + sum(parts.values())


def _details(fields: dict[str, JsonValue], names: tuple[str, ...]) -> dict[str, JsonValue]:
    return next((found for name in names if (found := object_of(fields.get(name)))), {})


def _first(fields: dict[str, JsonValue], names: tuple[str, ...]) -> int | None:
    return next((count for name in names if (count := _count(fields.get(name))) is not None), None)


def _either(first: int | None, second: int | None) -> int | None:
    return second if first is None else first


def _count(value: JsonValue) -> int | None:
    """A token count; None for what is none, which is no reason to refuse a step."""
    try:
        return as_count(value)
    except BadRecord:
        return None
