"""Who, where and which version, as metadata usually names them; and what an error's text says of its class."""

import re

from pydantic import JsonValue

from store.sources.contract import BadRecord
from store.sources.fields import as_text
from store.sources.payload import Object
from store.sources.sanitise import parse_json

_USUAL: dict[str, tuple[str, ...]] = {
    "user": ("user_id", "userId", "user", "end_user", "enduser_id"),
    "session": ("session_id", "sessionId", "thread_id", "threadId", "conversation_id", "conversationId", "session"),
    "tenant": ("tenant_id", "tenantId", "tenant", "organization_id", "organisation_id", "org_id"),
    "channel": ("channel",),
    "app_version": ("app_version", "appVersion", "revision_id", "release", "version"),
    "prompt_version": ("prompt_version", "promptVersion"),
}
_RELEASE = ("filmroom_release", "filmroom.release")
_ERROR_CLASS = re.compile(r"\s*(?:[a-z_][\w]*\.)*([A-Z]\w*(?:Error|Exception|Timeout|Interrupt|Warning|Exit))\b")
_FROM_PEOPLE = re.compile(
    r"user|thumb|feedback|rating|stars?\b|csat|nps|human|annotat|review|\bnote|comment", re.IGNORECASE
)


def unquoted(value: JsonValue) -> str | None:
    """An id or a name as text, without the quotes that a second encoding left around it; None: there is none.

    >>> unquoted('"alice"'), unquoted("alice"), unquoted(7), unquoted("")
    ('alice', 'alice', '7', None)
    """
    for _ in range(3):
        if not (isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"'):
            break
        try:
            value = parse_json(value.encode("utf-8", "surrogatepass"))
        except BadRecord:
            break
    return as_text(value) or None


def from_metadata(metadata: Object) -> dict[str, str]:
    """Our fields that metadata tells under a usual name.

    >>> from_metadata({"user_id": "u-17", "thread_id": "s-1", "env": "prod"})
    {'user': 'u-17', 'session': 's-1'}
    """
    found: dict[str, str] = {}
    for field, names in (_USUAL | {"release": _RELEASE}).items():
        values = (unquoted(metadata.get(name)) for name in names if not isinstance(metadata.get(name), (dict, list)))
        value = next((value for value in values if value), None)
        if value is not None:
            found[field] = value
    return found


def error_type_of(text: str | None) -> str | None:
    """The error class that a message or the last line of a traceback begins with; None: it names none.

    >>> error_type_of("KeyError('ORD-404')"), error_type_of("requests.ReadTimeout: 30 s"), error_type_of("no such order")
    ('KeyError', 'ReadTimeout', None)
    """
    if not text:
        return None
    lines = text.strip().splitlines() or [""]
    found = _ERROR_CLASS.match(lines[0]) or _ERROR_CLASS.match(lines[-1])
    return found[1] if found else None


def beside(record: Object, *known: str) -> Object:
    """What a record says under no name that is known: for our attributes. What is empty is left out.

    >>> beside({"id": 1, "env": "prod", "tags": []}, "id")
    {'env': 'prod'}
    """
    return {key: value for key, value in record.items() if key not in known and value not in (None, "", [], {})}


def sounds_human(name: str) -> bool:
    """Whether feedback of this name comes from people, for logs that do not say who gave it.

    >>> sounds_human("user-feedback"), sounds_human("exact_match")
    (True, False)
    """
    return _FROM_PEOPLE.search(name) is not None
