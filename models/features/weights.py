"""Evidence for the weights: the failing step is the model's own prediction."""

from models.features.material import Feature, Material, mean, share


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


FEATURES: dict[str, Feature] = {"model_step": model_step, "confident_wrong": confident_wrong}
