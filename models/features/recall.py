"""Evidence from what was at hand: did a memory, a retrieval or the prompt hold what should have been answered?"""

import re
from collections.abc import Iterator

from models.corrections import Comparison
from models.features.material import Feature, Material, mean, share, values_in
from models.steps import answer_text, error_text, step_name, text_of
from store.records import Case, Episode, Span, SpanKind
from store.records.identity import canonical_json

SILENT = 5
"""Reads for different inputs, all without a result, that make a component silent: were it as likely to find something
as not, that would happen in 1 of 32 cases."""

NOT_KNOWN = re.compile(
    r"(?:do(?:es)?|did)(?: not|n['’]t) (?:know|remember|recall|have (?:\w+ )?(?:information|record|details))"
    r"|no (?:\w+ )?(?:information|memor(?:y|ies)|records?|data|details|mention)\b|not (?:mentioned|specified|known|provided)"
    r"|weiß (?:ich |es )?nicht|keine information|ne sais pas|aucune information|no (?:lo )?sé\b|no hay información",
    re.IGNORECASE,
)
"""Words of not knowing, in English, German, French and Spanish; other languages are not recognised, and count as knowing."""

_ROLES = {"role", "content", "user", "system", "assistant"}
_WORD = re.compile(r"\w+")


def unremembered(material: Material) -> float | None:
    """Share of the cases with a memory read that did not bring what was needed; 0 to 1.

    Of an answer corrected in words: the correction. Without a correction an answer that says that it does not know
    counts, and no other is counted. It did not where the records read do not hold it, where there were none, or where
    the log does not say them and the answer says that it does not know. None where no corrected case reads a memory.
    Example: "I don't know" after a read, corrected to "42": 1.
    """
    return share(_missed(case, item, "memory") for case, item in _last_corrections(material))


def retrieval_miss(material: Material) -> float | None:
    """Share of the cases with a retrieval that did not bring what was needed; 0 to 1.

    As `unremembered`, over documents. Example: three documents, none holds "30 days", corrected to "30 days": 1.
    """
    return share(_missed(case, item, "retrieval") for case, item in _last_corrections(material))


def overlooked(material: Material) -> float | None:
    """Mean share of the correction's words that stood in what the answering model was shown; 0 to 1.

    Cases in which a memory read or a retrieval missed it are left out: there it was not at hand. None where no answer as a
    whole was corrected, or the log holds no model input but the question. Example: shown "met on 9 June", answered
    "in July", corrected to "9 June": 1.
    """
    return mean(_shown(case, items) for case, items in _corrected(material))


def batch_silence(material: Material) -> float | None:
    """Share of the cases with a memory read or a retrieval that brings nothing at all in the whole batch; 0 to 1.

    The batch: the cases, the satisfied traces and what else failed beside them. Nothing at all: at least 5 reads for
    different inputs, each without error and empty. Not tools: one that only acts has nothing to bring. None where no case
    has such a read with a logged result. Example: the memory service finds nothing for any of 30 questions: 1.
    """
    reads = [[span for span in case.episode.spans if _is_read(span)] for case in material.cases]
    names = {(span.kind, step_name(span)) for spans in reads for span in spans}
    silent = {name for name in names if _is_silent(material, *name)}
    return share(any((span.kind, step_name(span)) in silent for span in spans) if spans else None for spans in reads)


def _corrected(material: Material) -> Iterator[tuple[Case, Comparison]]:
    for case, items in zip(material.cases, material.corrections, strict=True):
        if items:
            yield case, items[-1]


def _last_corrections(material: Material) -> Iterator[tuple[Case, Comparison | None]]:
    """Of each case the last correction of an answer in words; None: there is none. Corrected labels are left out."""
    for case, items in zip(material.cases, material.corrections, strict=True):
        if not items or not items[-1].is_label:
            yield case, items[-1] if items else None


def _missed(case: Case, item: Comparison | None, kind: SpanKind) -> bool | None:
    reads = [span for span in case.episode.spans if span.kind == kind]
    if not reads:
        return None
    if item is None:
        return True if NOT_KNOWN.search(answer_text(case.episode)) else None
    found = [text_of(record) for span in reads for record in (*span.memories, *span.documents)]
    if found:
        wanted = _folded(item.corrected)
        values = [
            value for span in reads for record in (*span.memories, *span.documents) for value in values_in(record)
        ]
        return wanted not in _folded("\n".join(found)) and not any(value in wanted for value in values)
    if all(span.output in ([], {}) for span in reads):
        return True
    return NOT_KNOWN.search(item.served or answer_text(case.episode)) is not None


def _shown(case: Case, item: Comparison) -> float | None:
    prompt = "\n".join(text_of(span.input) for span in case.episode.spans if span.kind == "llm")
    question = text_of(case.episode.trace.input)
    beside = _words(prompt.replace(question, " ") if question else prompt) - _ROLES
    shown = _words(prompt) if beside else set[str]()
    sought = _words(item.corrected)
    if _missed(case, item, "memory") or _missed(case, item, "retrieval"):
        return None
    if item.is_label or not shown or not sought:
        return None
    return len(sought & shown) / len(sought)


def _is_read(span: Span) -> bool:
    return (
        span.kind in ("memory", "retrieval")
        and error_text(span) is None
        and (span.output is not None or bool(span.memories or span.documents))
    )


def _is_silent(material: Material, kind: SpanKind, name: str) -> bool:
    inputs: set[str] = set()
    for episode in (*material.episodes, *material.batch):
        for span in episode.spans:
            if span.kind == kind and step_name(span) == name and _is_read(span):
                if span.output not in ("", [], {}) or span.memories or span.documents:
                    return False
                inputs.add(_asked(episode, span))
    return len(inputs) >= SILENT


def _asked(episode: Episode, span: Span) -> str:
    return canonical_json(span.input if span.input is not None else episode.trace.input)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


FEATURES: dict[str, Feature] = {
    "unremembered": unremembered,
    "retrieval_miss": retrieval_miss,
    "overlooked": overlooked,
    "batch_silence": batch_silence,
}
