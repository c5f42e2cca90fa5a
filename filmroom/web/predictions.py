"""`POST /v1/predict` and `GET /v1/models/DIGEST`: the models of a release, as answers or as files."""

import re
import threading
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from filmroom.web.access import Access
from filmroom.web.body import BadBody, read_body
from filmroom.web.live_document import LiveDocument
from filmroom.web.release import guarded
from store.database import Store
from store.errors import NotFound
from store.records import Version
from store.records.identity import canonical_json
from store.releases import version
from store.sources.contract import BadRecord
from store.sources.sanitise import parse_json

MAX_TEXTS = 1_000
LONGEST_TEXT = 20_000
"""Characters of one text."""


class Predictor:
    """Answers by the model version that is live, or by the one that is named. A loaded model is never changed: another
    version is another object."""

    def __init__(self, store: Store, live: LiveDocument, artifacts: Path) -> None:
        self.artifacts = artifacts
        self._store = store
        self._live = live
        self._loading = threading.Lock()

    def predict(self, name: str, texts: list[str], version_id: str | None) -> dict[str, Any]:
        """The answers to the texts, in order, and who gave them. Raises NotFound, ModelRefused, BadBody."""
        release = None
        if version_id is None:
            current = self._live.current()
            release, version_id = current.release, current.models.get(name)
        if version_id is None:
            raise NotFound(f"no version of model {name!r} is live: `filmroom history --model {name}` says why")
        model = self._model(name, version_id)
        try:
            answers = model.predict(texts)
        except ValueError as error:
            raise BadBody(422, f"{name} cannot answer these texts: {error}") from error
        return {
            "release": release,
            "model": name,
            "version": version_id,
            "predictions": [answer.model_dump(mode="json") for answer in answers],
        }

    def _model(self, name: str, version_id: str) -> Any:
        from flows.champion import load_model
        from flows.serving import artifact_of

        with self._store.read() as connection:
            found = version(connection, version_id)
        if not self._is_of(found, name):
            raise NotFound(f"{version_id} is not a version of model {name!r}")
        with self._loading:  # of many who ask for a new version at once, one reads the file
            return load_model(self.artifacts, artifact_of(found))

    def _is_of(self, found: Version, name: str) -> bool:
        return (found.project, found.target, found.model) == (self._store.project, "weights", name)


def prediction_routes(predictor: Predictor, access: Access, max_bytes: int) -> list[Route]:
    """The two routes, behind the same token as the others."""

    async def predict(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise BadBody(415, "send application/json")
        name, texts, version_id = _asked(await read_body(request, max_bytes))
        return JSONResponse(await run_in_threadpool(predictor.predict, name, texts, version_id))

    async def model_file(request: Request) -> Response:
        return await run_in_threadpool(_file, predictor.artifacts, request.path_params["digest"])

    return [
        Route("/v1/predict", guarded(access, predict), methods=["POST"]),
        Route("/v1/models/{digest}", guarded(access, model_file), methods=["GET"]),
    ]


def _asked(body: bytes) -> tuple[str, list[str], str | None]:
    """Model, texts and version of a request. Raises BadBody, which says what is needed."""
    try:
        value: JsonValue = parse_json(body)
    except BadRecord as error:
        raise BadBody(400, str(error)) from error
    asked = value if isinstance(value, dict) else {}
    name, version_id = asked.get("model"), asked.get("version")
    texts = _as_texts(asked["records"]) if "texts" not in asked and "records" in asked else asked.get("texts")
    if not isinstance(name, str) or not isinstance(texts, list) or not isinstance(version_id, str | None):
        raise BadBody(
            400,
            'send {"model": NAME, "texts": [TEXT, ...]}, or "records": [{COLUMN: VALUE}, ...] to a model of records, and '
            '"version" for another than the live one',
        )
    if len(texts) > MAX_TEXTS:
        raise BadBody(413, f"{len(texts)} texts: at most {MAX_TEXTS} a request")
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str) or len(text) > LONGEST_TEXT:
            raise BadBody(400, f"text {number}: a string of at most {LONGEST_TEXT} characters is needed")
    return name, [str(text) for text in texts], version_id


def _as_texts(records: JsonValue) -> list[JsonValue]:
    """Records as the canonical JSON that a model of records reads. Raises BadBody."""
    if not isinstance(records, list) or not all(isinstance(each, dict) for each in records):
        raise BadBody(400, '"records" is a list of JSON objects, one a record')
    return [canonical_json(each) for each in records]


def _file(artifacts: Path, digest: str) -> Response:
    path = artifacts / f"{digest}.skops"
    if not re.fullmatch("[0-9a-f]{64}", digest) or not path.is_file():
        raise NotFound(f"no model file {digest[:64]}")
    headers = {"ETag": f'"{digest}"', "Cache-Control": "private, max-age=31536000, immutable"}
    return FileResponse(path, headers=headers, media_type="application/octet-stream")
