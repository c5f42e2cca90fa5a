"""What is wrong with a settings file, in the file's own words: where, what, and what to write instead."""

import difflib
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

MOST = 3
"""Faults told at once; the rest is counted."""
_NUMBERS = {
    "greater_than": "greater than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
}
_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "string": "a text",
          "tuple": "a list", "list": "a list", "dict": "a table", "model": "a table"}  # fmt: skip


def faults(error: ValidationError, settings: type[BaseModel]) -> str:
    """The first faults of a file, joined in one line, each with its key as one writes it.

    >>> class Two(BaseModel, extra="forbid"):
    ...     size: int = 1
    ...     kind: typing.Literal["a", "b"] | typing.Literal["auto"] = "a"
    >>> try:
    ...     Two(size="x", kind="c", sise=2)
    ... except ValidationError as error:
    ...     print(faults(error, Two))
    size: it must be a whole number, not 'x'; kind: 'c' is none of a, b, auto; sise: no such setting; did you mean `size`?
    """
    found: dict[str, list[Any]] = {}
    for each in error.errors():
        place = _place(each["loc"], settings)
        found.setdefault(".".join(place), []).append(each)
    told = [f"{place}: {_told(place, each, settings)}" for place, each in found.items()]
    left = len(told) - MOST
    return "; ".join(told[:MOST]) + (f"; and {left} more" if left > 0 else "")


def _place(location: Sequence[str | int], settings: type[BaseModel]) -> list[str]:
    """The key's parts, without what names the member of a union."""
    parts: list[str] = []
    for part in location:
        if isinstance(part, str) and parts and ("[" in part or part in _KINDS) and part not in _names(parts, settings):
            continue
        parts.append(str(part))
    return parts


def _told(place: str, errors: Sequence[Mapping[str, Any]], settings: type[BaseModel]) -> str:
    literals = [each for each in errors if each["type"] == "literal_error"]
    if literals:
        allowed = ", ".join(each["ctx"]["expected"].replace("'", "").replace(" or ", ", ") for each in literals)
        return f"{literals[0]['input']!r} is none of {allowed}"
    first = errors[0]
    kind, context = str(first["type"]), first.get("ctx", {})
    if kind == "extra_forbidden":
        *section, key = place.split(".")
        known = _names(section, settings)
        near = difflib.get_close_matches(key, known, 1)
        return "no such setting; " + (f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}")
    if kind in _NUMBERS:
        return f"it must be {_NUMBERS[kind].format(**context)}, not {first['input']!r}"
    if kind == "string_pattern_mismatch":
        return f"{first['input']!r} does not fit {context['pattern']}"
    if kind == "finite_number":
        return f"it must be a finite number, not {first['input']!r}"
    if kind == "value_error":
        return str(context.get("error", first["msg"]))
    wanted = next((word for name, word in _KINDS.items() if kind.startswith(name)), None)
    return f"it must be {wanted}, not {first['input']!r}" if wanted else str(first["msg"])


def _names(section: Sequence[str], settings: type[BaseModel]) -> list[str]:
    """The settings of a section, sorted; of a table with names of its own, those of each entry."""
    model: Any = settings
    for part in section:
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            model = _entry(model)  # `part` is a name of the user's own
            continue
        if part not in model.model_fields:
            return []
        model = model.model_fields[part].annotation
    model = _entry(model)
    return sorted(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []


def _entry(annotation: Any) -> Any:
    """The model within `dict[str, Model]` or `Model | None`, else the annotation itself."""
    inner = typing.get_args(annotation)
    models = [each for each in inner if isinstance(each, type) and issubclass(each, BaseModel)]
    return models[0] if models else annotation
