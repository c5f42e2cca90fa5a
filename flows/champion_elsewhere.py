"""A champion that another service serves: asked over HTTP for what it answers to the logged inputs today."""

import os
from collections.abc import Sequence

import httpx
from pydantic import BaseModel, ValidationError

from flows.training import Labelled
from models.predictions import Prediction
from models.steps import text_of
from store.errors import SourceUnreachable
from store.settings_weights import WeightsSection

BATCH = 500
"""Texts a request."""
TIMEOUT_S = 30.0


class _Answered(BaseModel):
    label: str
    confidence: float = 0.0
    rejected: bool = False


class _Body(BaseModel):
    predictions: list[_Answered]


class ChampionElsewhere:
    """Predicts like a model, by `POST URL {"model", "texts"}`, which is what filmroom's own `/v1/predict` answers to."""

    def __init__(self, name: str, section: WeightsSection) -> None:
        self._name, self._section = name, section

    def predict(self, texts: Sequence[str]) -> tuple[Prediction, ...]:
        """One prediction a text, in order; raises SourceUnreachable, naming the address, for any other answer."""
        headers = {}
        if self._section.champion_token_env is not None:
            headers["Authorization"] = f"Bearer {os.environ.get(self._section.champion_token_env, '')}"
        found: list[Prediction] = []
        with httpx.Client(timeout=TIMEOUT_S, trust_env=False, follow_redirects=False, headers=headers) as client:
            for start in range(0, len(texts), BATCH):
                found += self._asked(client, texts[start : start + BATCH])
        return tuple(found)

    def _asked(self, client: httpx.Client, texts: Sequence[str]) -> list[Prediction]:
        where = f"[weights.{self._name}] champion: {self._section.champion}"
        try:
            answer = client.post(self._section.champion, json={"model": self._name, "texts": list(texts)})
            answer.raise_for_status()
            body = _Body.model_validate_json(answer.content)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise SourceUnreachable(
                f"{where} cannot be asked ({str(error) or type(error).__name__}); nothing is trained"
            ) from error
        except ValidationError as error:
            raise SourceUnreachable(
                f'{where} answers no {{"predictions": [{{"label"}}]}}; nothing is trained'
            ) from error
        if len(body.predictions) != len(texts):
            raise SourceUnreachable(
                f"{where} gave {len(body.predictions)} answers to {len(texts)} texts; nothing is trained"
            )
        outside = self._section.out_of_scope
        return [
            Prediction(label=each.label, confidence=each.confidence, rejected=each.rejected or each.label == outside)
            for each in body.predictions
        ]


def as_answered_today(name: str, section: WeightsSection, rows: Sequence[Labelled]) -> tuple[Labelled, ...]:
    """The rows with what a champion elsewhere answers to them now; what it has mended meanwhile is no failure any more.

    The rows as they are where the champion is ours or its log, or none of them failed.
    """
    if not section.is_elsewhere or not any(each.failed for each in rows):
        return tuple(rows)
    found = ChampionElsewhere(name, section).predict([text_of(each.row.input) for each in rows])
    outside = section.out_of_scope
    return tuple(
        each.model_copy(
            update={"served": new.answer, "failed": each.failed and (new.answer or outside) != each.row.label}
        )
        for each, new in zip(rows, found, strict=True)
    )
