"""What kind of error a text is, which argument it is about, and what kind of edit a correction is: never the text itself."""

import re
import unicodedata
from collections.abc import Iterable

_TRANSIENT = re.compile(
    r"time[d]?[ -]?out|rate[ _-]?limit|too many requests|unavailable|temporar|overloaded|bad gateway|try again later"
    r"|deadline exceeded|connection (?:reset|refused|aborted|closed|error)|connecterror|throttl|internal server error"
)
_TRANSIENT_CODE = re.compile(
    r"(?:http\D{0,12}|status\D{0,12}|code\D{0,6}|error[ :(]{1,3})(?:429|5\d\d)\b"
    r"|^(?:429|5\d\d)(?=\s*$|\s*[:(-]|\s+(?:internal|bad|service|gateway|too|server))"
)
_AUTH = re.compile(
    r"unauthori[sz]ed|unauthenticated|forbidden|permission|access denied|not authori[sz]ed|not authenticated|api[ _-]?key"
    r"|(?:invalid|expired) (?:token|credential)|(?:^|http\D{0,12}|status\D{0,12}|code\D{0,6}|error[ :(]{1,3})40[13]\b"
)
_NOT_FOUND = re.compile(
    r"not[ _]?found|no such|does ?n[o']t exist|unknown (?!error)|keyerror"
    r"|(?:^|http\D{0,12}|status\D{0,12}|code\D{0,6}|error[ :(]{1,3})404\b"
)
_VALIDATION = re.compile(
    r"invalid|required|missing|must |should |expected|validation|typeerror|valueerror|type error|value error|schema"
    r"|malformed|format|out of range|does ?n[o']t match|not match|not a valid|cannot be|add up"
    r"|not enough|insufficient|not available|not allowed|not supported|already"
    r"|(?:^|http\D{0,12}|status\D{0,12}|code\D{0,6}|error[ :(]{1,3})4(?:00|22)\b"
)
_CLASSES = (
    ("transient", (_TRANSIENT, _TRANSIENT_CODE)),
    ("auth", (_AUTH,)),
    ("not_found", (_NOT_FOUND,)),
    ("validation", (_VALIDATION,)),
)
_READ_LIMIT = 2_000
"""Characters of an error that are read: a stack trace's head says what it is."""

_MISSING = re.compile(
    r"(?:missing|required)[^'\"`]{0,60}['\"`]([a-z_][\w.]{0,60})['\"`]"
    r"|['\"`]([a-z_][\w.]{0,60})['\"`][^'\"`]{0,20}(?:missing|required)"
    r"|\b([a-z_][\w.]{0,60})(?: field)? (?:is missing|missing|is required|field required)\b"
)
_NOISE = frozenset(
    {"id", "ids", "the", "a", "is", "to", "of", "value", "field", "argument", "parameter", "property", "and", "or"}
)

_NEGATIONS = frozenset(
    (
        *("not", "no", "never", "none", "nothing", "cannot", "can't", "without", "neither", "nor"),
        *("nicht", "kein", "keine", "keinen", "nie", "ohne", "ne", "pas", "jamais", "sans"),
        *("sin", "nunca", "nada", "non", "senza", "mai", "niet", "geen"),
    )
)
"""English, German, French, Spanish, Italian and Dutch; elsewhere a negation is `missing` or `other`."""

_WORD = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?")


def error_class(text: str | None, error_type: str | None = None) -> str:
    """`transient` (429, 5xx, timeout), `auth`, `not_found`, `validation`, `other`, or `none` where there is no error.

    English wordings and HTTP codes are known; an error in another language is `other` unless it carries a code.

    >>> error_class("Error: order not found"), error_class("HTTP 503"), error_class(None), error_class("Fehler")
    ('not_found', 'transient', 'none', 'other')
    """
    if not text and not error_type:
        return "none"
    said = [part[:_READ_LIMIT].strip().lower() for part in (text, error_type) if part]
    found = (name for name, patterns in _CLASSES if any(pattern.search(part) for pattern in patterns for part in said))
    return next(found, "other")


def named_argument(text: str | None, names: Iterable[str]) -> tuple[str, bool]:
    """The argument an error is about, and whether it says that it was missing; an empty name where it names none.

    Only an identifier: a lower-case name that the text calls missing or required, else one of the call's own argument
    names whose words stand in the text.

    >>> named_argument("Error: payment method not found", ["order_id", "payment_method_id"])
    ('payment_method_id', False)
    >>> named_argument("missing 1 required argument: 'address'", ["order_id"])
    ('address', True)
    """
    said = (text or "")[:_READ_LIMIT]
    if found := _MISSING.search(said):
        name = next(group for group in found.groups() if group)
        if name.lower() not in _NOISE and not name.isdigit():
            return name, True
    words = set(_parts(said))
    best, most = "", 0
    for name in sorted(names):
        parts = [part for part in _parts(name) if part not in _NOISE]
        if parts and len(parts) > most and words.issuperset(parts):
            best, most = name, len(parts)
    return best, False


def edit_class(served: str, corrected: str) -> str:
    """What kind of edit turns `served` into `corrected`: `missing`, `format`, `negation`, `number`, `entity`, `other`.

    `missing`: nothing was served, or words were only added. `format`: the same words, other case, spaces or
    punctuation. Else what the changed words are. Never a word of either.

    >>> edit_class("Refunds take 5 days.", "Refunds take 10 days."), edit_class("it ships", "It ships!")
    ('number', 'format')
    >>> edit_class("We ship to Paris", "We ship to Rome"), edit_class("you can return it", "you can not return it")
    ('entity', 'negation')
    """
    before, after = _words(served), _words(corrected)
    if not before:
        return "missing" if after else "format"
    folded_before, folded_after = [w.casefold() for w in before], [w.casefold() for w in after]
    if folded_before == folded_after:
        return "format"
    known_before, known_after = set(folded_before), set(folded_after)
    gone = [word for word in before if word.casefold() not in known_after]
    come = [word for word in after if word.casefold() not in known_before]
    changed = {word.casefold() for word in (*gone, *come)}
    if changed & _NEGATIONS or any(word.endswith(("n't", "n’t")) for word in changed):
        return "negation"
    if changed and all(word[0].isdigit() for word in changed):
        return "number"
    if come and not gone:
        return "missing"
    return "entity" if gone and come and all(word[0].isupper() for word in (*gone, *come)) else "other"


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text))


def _parts(name: str) -> list[str]:
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return [part.lower().removesuffix("s") for part in re.split(r"[^A-Za-z]+", spaced) if len(part) > 1]
