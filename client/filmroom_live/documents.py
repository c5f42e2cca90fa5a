"""The documents filmroom serves, read into frozen records: whole and as expected, or refused."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from filmroom_live.normalise import JsonValue
from filmroom_live.rule_text import example_line, plain
from filmroom_live.signature import is_signed

FORMAT = 1
"""Version of the documents' layout; another one is refused."""

T = TypeVar("T")


class BadDocument(ValueError):
    """What came is not a document of filmroom's, or not signed by its key."""


class Rule(NamedTuple):
    """One context rule."""

    id: str
    scope: Mapping[str, str]
    """What must hold: `intent`, `channel`, `tool`, ...; empty: it holds everywhere."""
    action: str
    argument: str
    text: str
    """The rule as a sentence, on one line."""


class Fact(NamedTuple):
    """One thing remembered. It is data that someone said, never an instruction."""

    id: str
    scope: str
    """`user`, `tenant` or `global`."""
    scope_id: str
    subject: str
    predicate: str
    value: JsonValue
    authority: bool
    """Whether staff said so."""
    valid_from_us: int | None = None
    ttl_s: int | None = None
    """None: it does not expire."""

    @property
    def words(self) -> str:
        """Predicate and value as one text."""
        return f"{self.predicate} {_flat(self.value)}"

    def is_in_force(self, now_us: int) -> bool:
        """Whether it has not expired, as far as its dates say."""
        return self.ttl_s is None or self.valid_from_us is None or self.valid_from_us + self.ttl_s * 1_000_000 >= now_us


class Policy(NamedTuple):
    """What changes about one tool."""

    tool: str
    normalisers: Mapping[str, tuple[str, ...]] = {}
    """Argument path to the normalisers applied to it, in order."""
    schema_patch: Mapping[str, JsonValue] = {}
    retries: int | None = None
    timeout_s: float | None = None
    freshness_s: float | None = None
    """Oldest output of the tool that may be used."""
    disabled: bool = False
    expected: Mapping[str, str] = {}
    """Argument path to what is expected there, in a reviewer's words."""


class Example(NamedTuple):
    """An input and the answer that is right for it, as a reviewer wrote them."""

    id: str
    scope: Mapping[str, str]
    input: str
    output: str
    text: str = ""
    """Both on one line, as the prompt gets them."""


class Note(NamedTuple):
    """A piece of knowledge for the prompt, as a reviewer wrote it."""

    id: str
    scope: Mapping[str, str]
    text: str


class Model(NamedTuple):
    """One model of the release."""

    version: str
    artifact: str
    """SHA-256 of its file."""


class Release(NamedTuple):
    """One release: immutable, and whole."""

    id: str
    """`rel_...`; empty before there is one. Log it with each trace."""
    number: int = -1
    rules: tuple[Rule, ...] = ()
    examples: tuple[Example, ...] = ()
    notes: tuple[Note, ...] = ()
    policies: Mapping[str, Policy] = {}
    schemas: Mapping[str, JsonValue] = {}
    """Tool name to the schema of its arguments, where filmroom knows it."""
    tickets: tuple[str, ...] = ()
    """Tools with an open ticket."""
    position: int = 0
    """Of the memory."""
    models: Mapping[str, Model] = {}
    memory_file: str = ""
    """Beside `release.json` in a folder: the facts that belong to it."""


NO_RELEASE = Release(id="")


def read_document(data: bytes, key: str | None) -> dict[str, Any]:
    """The JSON object in `data`, its layout and, with a key, its signature checked. Raises BadDocument."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadDocument(f"not JSON: {error}") from error
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise BadDocument(f"not a document of format {FORMAT}")
    try:
        trusted = key is None or is_signed(value, key)
    except (ValueError, RecursionError) as error:
        raise BadDocument(f"cannot be checked: {error}") from error
    if not trusted:
        raise BadDocument("not signed with the key that was given")
    return value


def read_release(document: Mapping[str, Any]) -> Release:
    """The release in a document. Raises BadDocument, naming the field, for what is not as expected."""
    context, tooling, memory = (_get(document, name, dict) for name in ("context", "tooling", "memory"))
    return Release(
        id=_get(document, "release", str),
        number=_get(document, "number", int),
        rules=tuple(_rule(each) for each in _get(context, "rules", list)),
        examples=tuple(_example(each) for each in context.get("examples") or ()),
        notes=tuple(_note(each) for each in context.get("notes") or ()),
        policies={each.tool: each for each in map(_policy, _get(tooling, "policies", list))},
        schemas=_get(tooling, "schemas", dict),
        tickets=tuple(_get(each, "tool", str) for each in _get(tooling, "tickets", list)),
        position=_get(memory, "position", int),
        models={name: _model(each) for name, each in _get(document, "models", dict).items()},
        memory_file=str(memory.get("file") or ""),
    )


def read_facts(document: Mapping[str, Any], release: str) -> tuple[Fact, ...]:
    """The facts in a document of this release, oldest first. Raises BadDocument."""
    if _get(document, "release", str) != release:
        raise BadDocument(f"facts of {str(document['release'])[:40]}, not of {release}")
    return tuple(_fact(each) for each in _get(document, "facts", list))


def _rule(value: Any) -> Rule:
    scope = _texts(value, "scope")
    words = {name: _get(value, name, str) for name in ("id", "action", "argument")}
    return Rule(scope=scope, text=plain(_get(value, "text", str)), **words)


def _example(value: Any) -> Example:
    asked, answer = (plain(_get(value, name, str)) for name in ("input", "output"))
    return Example(_get(value, "id", str), _texts(value, "scope"), asked, answer, example_line(asked, answer))


def _note(value: Any) -> Note:
    return Note(_get(value, "id", str), _texts(value, "scope"), plain(_get(value, "text", str)))


def _texts(value: Any, name: str) -> dict[str, str]:
    found = _get(value, name, dict)
    if not all(isinstance(each, str) for each in found.values()):
        raise BadDocument(f"{name}: values that are no text")
    return found


def _fact(value: Any) -> Fact:
    words: dict[str, Any] = {
        name: _get(value, name, str) for name in ("id", "scope", "scope_id", "subject", "predicate")
    }
    _get(value, "value", object)
    dates: dict[str, Any] = {
        name: _get(value, name, int) for name in ("valid_from_us", "ttl_s") if value.get(name) is not None
    }
    return Fact(value=value["value"], authority=_get(value, "authority", bool), **words, **dates)


def _policy(value: Any) -> Policy:
    tool = _get(value, "tool", str)
    given = {name: each for name, each in value.items() if each is not None}
    chains = _get(given, "normalisers", dict) if "normalisers" in given else {}
    for path, chain in chains.items():
        if not isinstance(chain, list) or not all(isinstance(each, str) for each in chain):
            raise BadDocument(f"normalisers of {tool}.{path}: not a list of names")
    patch = _get(given, "schema_patch", dict) if "schema_patch" in given else {}
    numbers = {name: _number(given[name], name) for name in ("timeout_s", "freshness_s") if name in given}
    retries = max(0, _get(given, "retries", int)) if "retries" in given else None
    normalisers = {path: tuple(chain) for path, chain in chains.items()}
    disabled = _get(given, "disabled", bool) if "disabled" in given else False
    expected = _texts(given, "expected") if "expected" in given else {}
    return Policy(tool, normalisers, patch, retries, **numbers, disabled=disabled, expected=expected)


def _model(value: Any) -> Model:
    return Model(version=_get(value, "version", str), artifact=_get(value, "artifact", str))


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(_flat(each) for each in value.values())
    return " ".join(map(_flat, value)) if isinstance(value, list | tuple) else str(value)


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadDocument(f"{name}: not a number")
    return float(value)


def _get(value: Any, name: str, kind: type[T]) -> T:
    if not isinstance(value, Mapping) or name not in value:
        raise BadDocument(f"{name}: missing")
    found = value[name]
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        raise BadDocument(f"{name}: not of type {kind.__name__}")
    return found
