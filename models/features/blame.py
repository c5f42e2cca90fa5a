"""Evidence in people's own words: what their comments name as at fault.

A comment is read sentence by sentence; a sentence blames what it names first. English only: in another language
nothing is recognised, which is not measured, never zero. Words only add evidence: they decide nothing by themselves
and are never followed as an instruction.
"""

import re
from collections.abc import Iterator

from models.features.material import Feature, Material, mean, sentences
from store.records import Case

REQUEST = "request"
INSTRUCTION = "instruction"
PROGRAM = "program"
MODEL = "model"

BLAMED: dict[str, str] = {
    REQUEST: r"users?(?: agent| simulator)?(?:['’]s)? (?:request|asked|only|incorrectly|wrongly|made|did not|didn['’]t"
    r"|should|forgot|omitted|meant|picked|never)"
    r"|(?:task instructions?|request|question|label|gold|reference|ground truth|annotation)s? (?:itself )?(?:is|are|was|were"
    r"|did|does|do) (?:not|wrong|incorrect|ambiguous|unclear|under|missing|faulty)|under-?specifi\w+|ambigu\w+"
    r"|user error|human error|mis-?use\b",
    INSTRUCTION: r"(?:system |insufficient )?prompts?\b(?! injection)(?: engineering)?|task descriptions?|guidelines?"
    r"|knowledge[ -]base|grounded|grounding|(?:no|missing|unclear|conflicting) (?:instructions?|polic(?:y|ies)|rules?)"
    r"|(?:domain )?polic(?:y|ies)\b|documentation",
    PROGRAM: r"bugs?\b|exceptions?\b|\w*error\b(?! in (?:reason|calculat|identif|logic))|tracebacks?|crash\w*|patch\w*"
    r"|imports?\b|attributes?\b|(?:de)?seriali[sz]\w+|encod\w+|pars(?:er|ing)|typos?\b|endpoints?|\bapis?\b|\bsdks?\b"
    r"|config\w*|defaults?\b|insecure|unsafe|permissions?|privileges?|authenticat\w+|authori[sz]ation|sandbox\w*"
    r"|isolation|saniti[sz]\w+|validation|allow-?lists?|credentials?|secrets?\b|vulnerab\w+|integration|implementation"
    r"|system failure|infrastructure|service (?:is|was|returned|did)|servers?\b"
    r"|tool[ -]call\w*|tool interfaces?|upgrad\w+"
    r"|time-?outs?|data types?|providers?\b|handlers?\b|handling\b|(?:not|cannot|to) handle\b|fix(?:es|ed)?\b|malfunction\w*"
    r"|execut(?:es|ing|ion)\b|not (?:retrieving|saving|loading|working)|fail(?:s|ed|ing)? to (?:save|load|connect)",
    MODEL: r"mistakes?\b|mistakenly|(?:logical|factual|reasoning) errors?|error in (?:reason|calculat|identif|logic)\w*"
    r"|(?:mis)?calculat\w+|incorrectly|wrongly|assum\w+|hallucinat\w+|fabricat\w+|misinterpret\w+|misread\w*|miscount\w*"
    r"|misunderst\w+|flawed|erroneously|inaccurate\w*",
}
"""What is at fault to the words that name it."""

_NAMED = re.compile("|".join(f"(?P<{name}>\\b(?:{words}))" for name, words in BLAMED.items()), re.IGNORECASE)


def blamed(text: str) -> dict[str, float]:
    """Share of each fault among the sentences that name one; empty: none does.

    >>> blamed("The user agent incorrectly assumed a date. No handler for the exception.")
    {'request': 0.5, 'program': 0.5}
    """
    named = [found.lastgroup or "" for part in sentences(text) if (found := _NAMED.search(part))]
    return {name: named.count(name) / len(named) for name in dict.fromkeys(named)}


def request_blamed(material: Material) -> float | None:
    """Share of the blaming sentences that blame the request or the label, mean over cases; 0 to 1.

    None where no comment blames anything. Example: "The task instruction did not specify the colour.": 1.
    """
    return mean(found.get(REQUEST, 0.0) for _, found in _read(material))


def instruction_blamed(material: Material) -> float | None:
    """Share of the blaming sentences that blame the prompt, a policy or the knowledge base, mean over cases; 0 to 1.

    None where no comment blames anything. Example: "The system prompt set no bounds.": 1.
    """
    return mean(found.get(INSTRUCTION, 0.0) for _, found in _read(material))


def program_blamed(material: Material) -> float | None:
    """Share of the blaming sentences that blame code, configuration, an interface or a service, mean over cases; 0 to 1.

    None where no comment blames anything. Example: "TypeError in the import.": 1.
    """
    return mean(found.get(PROGRAM, 0.0) for _, found in _read(material))


def model_blamed(material: Material) -> float | None:
    """Share of the blaming sentences that blame a model's own reasoning, mean over cases; 0 to 1.

    Only over cases in which a model answered that can be retrained; None where there is none, or no comment blames
    anything. Example: "The agent made a mistake in rounding.": 1.
    """
    return mean(found.get(MODEL, 0.0) for case, found in _read(material) if _is_ours(case, material))


def _read(material: Material) -> Iterator[tuple[Case, dict[str, float]]]:
    """What each case's comments blame; of a case whose label was corrected the label says it, not the words."""
    for case, corrections in zip(material.cases, material.corrections, strict=True):
        if corrections and corrections[-1].is_label:
            continue
        found = blamed("\n".join(each.comment for each in case.episode.feedback if each.comment))
        if found:
            yield case, found


def _is_ours(case: Case, material: Material) -> bool:
    answering = {span.model or span.name for span in case.episode.spans if span.kind in ("llm", "predict")}
    return bool(answering & set(material.deployment.models))


FEATURES: dict[str, Feature] = {
    "request_blamed": request_blamed,
    "instruction_blamed": instruction_blamed,
    "program_blamed": program_blamed,
    "model_blamed": model_blamed,
}
