"""Evidence for the context: a policy is missing, ignored or out of place."""

import math
import re
from collections.abc import Sequence

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from models.features.material import Feature, Material, added_words, mean, sentences, share, shared_words
from models.similarity import cosines
from models.steps import text_of, time_of
from models.write_gate import is_about_everybody
from store.records import Episode

ALIKE = 0.5
"""Cosine from which a rule says what people said."""
AGREEING = 3
"""Users below which nothing is said of their agreement: two agree by chance."""

NORMATIVE = re.compile(
    r"\b(?:(?<!\bas )always|never|must(?: not)?|only (?:if|when|for|after|with|to)|should(?:n['’]t| not)?"
    r"|(?<!\bi )(?<!you )(?<!they )(?<!we )do(?: not|n['’]t)|policy|policies"
    r"|rules?\b|not allowed|required to|are to be|before (?:you|any)|in all cases|every time|whenever"
    r"|immer|niemals|nie|muss|müssen|darf|dürfen|nur wenn|toujours|jamais|doit|doivent|siempre|nunca|debe|deben)\b",
    re.IGNORECASE,
)
"""Words of a policy, in English, German, French and Spanish; other languages are not recognised, and count as none."""

_EVER = r"always|never|every time|whenever|immer|niemals|nie|toujours|jamais|siempre|nunca"
HABIT = re.compile(
    rf"\b(?:i|i['’](?:d|ve|m)|ich|je|yo|quiero|prefiero)\b(?:(?! you| told| said)[^.!?;]){{0,40}}?\b(?:{_EVER})\b"
    rf"|\b(?:{_EVER})\b(?=[^.!?;]{{0,60}}?\b(?:me|my|mine|mir|mich|mein(?:e|en|em|er)?|moi|mon|ma|mes|m[íi]|mis)\b)"
    rf"|\b(?:my|mine|for me|mein(?:e|en|em)?|mon|ma|mes|mi|mis)\b[^.!?;]{{0,40}}?\b(?:{_EVER})\b",
    re.IGNORECASE,
)
"""What somebody says holds for themselves: "I always want", "always the aisle for me". A wish, and no policy."""


def rule_gap(material: Material) -> float | None:
    """1 minus the highest cosine of what people said with an active rule, mean over the cases with words; 0 to 1.

    1 where there are no rules. None where nobody said anything in words. Example: "never offer refunds" beside the rule
    "always ask first": 0.9.
    """
    said = [words for words in material.said if words]
    if not said:
        return None
    rules = [rule.argument for rule in material.deployment.rules]
    return 1.0 - float(cosines(said, rules).max(axis=1).mean()) if rules else 1.0


def normative(material: Material) -> float | None:
    """Share of the sentences people said that state a policy (always, never, must, only, all customers, ...), mean over
    cases; 0 to 1.

    What a user says always holds for themselves is no policy; what an authority says is. None where nobody said anything
    in words. Example: "You must always ask for the order number": 1; "I always want the window seat": 0.
    """
    return mean(
        share(_is_policy(part, own=not case.failure.authority) for part in sentences(words))
        for case, words in zip(material.cases, material.said, strict=True)
    )


def rule_ignored(material: Material) -> float | None:
    """Share of the cases with words in which an active rule that says what people said stood in the prompt; 0 to 1.

    Says it: a cosine of at least 0.5 with their words. The prompt: the input of a model's step. None without rules, where
    nobody said anything in words, or where no prompt was logged. Example: the rule "always ask for the order number" is in
    the prompt, and users write "you must always ask for the order number": 1.
    """
    rules = [rule.argument for rule in material.deployment.rules if rule.argument.strip()]
    if not rules:
        return None
    return share(
        _ignored(words, case.episode, rules) if words else None
        for case, words in zip(material.cases, material.said, strict=True)
    )


def policy_too(material: Material) -> float | None:
    """Share of the commented cases whose step ended in an error and whose comments state a policy beside; 0 to 1.

    Two faults at once: mending the step leaves the other. None where no step failed, or nobody wrote a comment.
    Example: the call is refused, and a user writes "you must also ask for the receipt": 1.
    """
    comments = ("\n".join(each.comment for each in case.episode.feedback if each.comment) for case in material.cases)
    pairs = zip(comments, material.error_classes, strict=True)
    return share(
        any(_is_policy(part) for part in sentences(words))
        for words, error in pairs
        if words and error not in ("none", "")
    )


def agreed(material: Material) -> float | None:
    """Mean share of the words a correction adds that more than half of the other users' corrections add too; 0 to 1.

    A correction that also adds a word most of them do not, but for words that say nothing, counts 0: the sentence may be
    everybody's, what it asks for is not. So does one that says what always holds for the speaker. Of answers in free text,
    where no step failed. None below three users with a correction. Example: three users each add "A receipt is needed" to
    another order's answer: 1; each writes "I want my parcel at" and another shop: 0.
    """
    added = [
        (
            case.episode.trace.user or case.episode.trace.id,
            added_words(items[-1], case.episode),
            not case.failure.authority and HABIT.search(items[-1].corrected) is not None,
        )
        for case, items, error in zip(material.cases, material.corrections, material.error_classes, strict=True)
        if items and not items[-1].is_label and error == "none"
    ]
    if len({user for user, *_ in added}) < AGREEING:
        return None
    return mean(
        0.0 if is_own else _agreement(words, common)
        for (_, words, is_own), common in zip(added, shared_words([each[:2] for each in added]), strict=True)
    )


def version_assoc(material: Material) -> float | None:
    """Log odds ratio of failing after against before the last context change, with Haldane's 0.5; any number.

    Positive: it fails more since then. None without a known change, or without dated cases and satisfied traces.
    Example: 9 of 10 failures and 50 of 100 satisfied traces came after the change: 1.8.
    """
    changed = material.deployment.context_changed_us
    failed = [time for case in material.cases if (time := time_of(case.episode)) is not None]
    fine = [time for episode in material.satisfied if (time := time_of(episode)) is not None]
    if changed is None or not failed or not fine:
        return None
    failed_after, fine_after = sum(time >= changed for time in failed), sum(time >= changed for time in fine)
    return math.log((failed_after + 0.5) / (len(failed) - failed_after + 0.5)) - math.log(
        (fine_after + 0.5) / (len(fine) - fine_after + 0.5)
    )


def budget(material: Material) -> float | None:
    """Mean prompt tokens of the cases over the prompt's limit; from 0, above 1 where it is exceeded.

    None without a known limit or without token counts. Example: 6,000 tokens of 8,000: 0.75.
    """
    limit = material.deployment.context_limit_tokens
    if not limit:
        return None
    tokens = [
        case.episode.trace.input_tokens or max((span.input_tokens or 0 for span in case.episode.spans), default=0)
        for case in material.cases
    ]
    return mean(count / limit if count else None for count in tokens)


def _ignored(words: str, episode: Episode, rules: Sequence[str]) -> bool | None:
    prompt = " ".join(text_of(span.input) for span in episode.spans if span.kind == "llm").casefold()
    if not prompt:
        return None
    near = cosines([words], rules)[0]
    return any(value >= ALIKE and rule.casefold() in prompt for value, rule in zip(near, rules, strict=True))


def _agreement(words: frozenset[str], common: frozenset[str] | None) -> float | None:
    if not words or common is None:
        return None
    return 0.0 if words - common - ENGLISH_STOP_WORDS else len(common) / len(words)


def _is_policy(sentence: str, *, own: bool = True) -> bool:
    """Whether the sentence states a policy; `own`: what holds for the speaker is none, the rest of it may be."""
    rest = HABIT.sub(_without_ever, sentence) if own else sentence
    return NORMATIVE.search(rest) is not None or is_about_everybody(sentence)


def _without_ever(found: re.Match[str]) -> str:
    return re.sub(_EVER, " ", found[0], flags=re.IGNORECASE)


FEATURES: dict[str, Feature] = {
    "rule_gap": rule_gap,
    "rule_ignored": rule_ignored,
    "policy_too": policy_too,
    "agreed": agreed,
    "normative": normative,
    "version_assoc": version_assoc,
    "budget": budget,
}
