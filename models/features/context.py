"""Evidence for the context: a policy is missing, ignored or out of place."""

import math
import re

from models.features.material import Feature, Material, mean, sentences, share
from models.similarity import cosines
from models.steps import time_of
from models.write_gate import is_about_everybody

NORMATIVE = re.compile(
    r"\b(?:always|never|must(?: not)?|only (?:if|when|for|after|with|to)|should(?:n['’]t| not)?|do not|don['’]t|policy|policies"
    r"|rules?\b|not allowed|required to|are to be|before (?:you|any)|in all cases|every time|whenever"
    r"|immer|niemals|nie|muss|müssen|darf|dürfen|nur wenn|toujours|jamais|doit|doivent|siempre|nunca|debe|deben)\b",
    re.IGNORECASE,
)
"""Words of a policy, in English, German, French and Spanish; other languages are not recognised, and count as none."""


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

    None where nobody said anything in words. Example: "You must always ask for the order number": 1.
    """
    return mean(share(_is_policy(part) for part in sentences(words)) for words in material.said)


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


def _is_policy(sentence: str) -> bool:
    return NORMATIVE.search(sentence) is not None or is_about_everybody(sentence)


FEATURES: dict[str, Feature] = {
    "rule_gap": rule_gap,
    "normative": normative,
    "version_assoc": version_assoc,
    "budget": budget,
}
