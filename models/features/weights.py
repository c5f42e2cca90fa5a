"""Evidence for the weights: the failing step is the model's own prediction, and the label that corrects it can be believed."""

import re
from collections.abc import Iterator

from models.corrections import Comparison
from models.features.material import Feature, Material, mean, share
from models.steps import step_name
from store.records import Case

LABEL_ERROR = 0.1
"""Share of wrong labels among one person's corrections before anything is known of them: one error in ten."""
EVEN = 0.5
"""A model that gives its answer less than this probability says itself that it is rather wrong."""
_SURE = 0.99
"""No logged probability is taken for surer than this, nor for less sure than its opposite."""

NO_CLASS = re.compile(
    r"(?:none|null|n/?a|oos|out[ _-]?of[ _-]?(?:scope|domain)|unknown|unsupported|(?:default[ _-]?)?fallback(?:[ _-]?intent)?"
    r"|no[ _-]?(?:match|intent|answer|label|class)|no[ _-]\w+[ _-](?:detected|found|matched))?",
    re.IGNORECASE,
)
"""Labels that say that no class fits."""


def model_step(material: Material) -> float | None:
    """Share of the cases whose failing step is a small model's prediction on a non-empty input, without an error; 0 to 1.

    None for a cluster without cases. Example: every case is a wrong intent of the router model: 1.
    """
    return share(
        step is not None and step.kind == "predict" and step.input not in (None, "", [], {}) and found == "none"
        for step, found in zip(material.steps, material.error_classes, strict=True)
    )


def confident_wrong(material: Material) -> float | None:
    """Mean probability the model gave its wrong output, as logged (not recalibrated); 0 to 1.

    None where no failing prediction says its probability. Example: 0.9 and 0.7: 0.8.
    """
    return mean(step.confidence for step in material.steps if step is not None and step.kind == "predict")


def label_noise(material: Material) -> float | None:
    """Mean probability that the correcting label is wrong and the model right; 0 to 1.

    The model, right with the probability c it gave its answer, against k independent sources who all say otherwise and
    each err with probability e = 0.1: odds `c / (1 - c) * (e / (1 - e)) ** k` (Bayes' rule; the principle of confident
    learning, Northcutt et al. 2021, with logged probabilities). Cases that an authority corrected are left out.
    None where no label corrects a prediction with a probability. Example: one user says otherwise, c 0.9: 0.5.
    """
    found = list(_labels(material))
    agreeing: dict[str, set[str]] = {}
    for case, item in found:
        agreeing.setdefault(item.corrected, set()).add(case.failure.source)
    return mean(
        _noise(item.span.confidence, len(agreeing[item.corrected]))
        for case, item in found
        if not case.failure.authority and item.span is not None and item.span.confidence is not None
    )


def no_class(material: Material) -> float | None:
    """Share of the corrected predictions of which the label says that no class fits, and the model has no class for that; 0 to 1.

    Such a model cannot learn the answer. None where no label corrects a prediction. Example: corrected to
    `out_of_scope`, of a model without an out-of-scope label: 1.
    """
    return share(_lacks_class(item, material) for _, item in _labels(material))


def rejectable(material: Material) -> float | None:
    """Share of the corrected predictions as in `no_class` that a reject threshold of one half would have held back; 0 to 1.

    None where no label corrects a prediction. Example: corrected to `none`, given with probability 0.3: 1.
    """
    return share(_lacks_class(item, material) and _is_unsure(item) for _, item in _labels(material))


def _labels(material: Material) -> Iterator[tuple[Case, Comparison]]:
    for case, items in zip(material.cases, material.corrections, strict=True):
        if items and items[-1].is_label:
            yield case, items[-1]


def _noise(confidence: float, sources: int) -> float:
    sure = min(max(confidence, 1 - _SURE), _SURE)
    odds = sure / (1 - sure) * (LABEL_ERROR / (1 - LABEL_ERROR)) ** sources
    return odds / (1 + odds)


def _lacks_class(item: Comparison, material: Material) -> bool:
    model = step_name(item.span) if item.span else ""
    return material.deployment.models.get(model) is None and NO_CLASS.fullmatch(item.corrected) is not None


def _is_unsure(item: Comparison) -> bool:
    return item.span is not None and item.span.confidence is not None and item.span.confidence < EVEN


FEATURES: dict[str, Feature] = {
    "model_step": model_step,
    "confident_wrong": confident_wrong,
    "label_noise": label_noise,
    "no_class": no_class,
    "rejectable": rejectable,
}
