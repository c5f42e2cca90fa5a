"""Model files: content-addressed, written whole or not at all, and never unpickled.

A file is a skops dump of plain values, arrays and scikit-learn estimators; one that asks for any other type is refused
before anything in it is built. The same model saved twice is the same file. Which version is live is the store's
business.
"""

import hashlib
import io
import json
import platform
import zipfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import skops.io
from pydantic import Field, JsonValue, ValidationError

from models.anchored import ANCHORS, Anchor
from models.estimator import TRUSTED
from models.files import write_whole
from models.tabular_model import TabularModel
from store.errors import ModelRefused
from store.records.production import Record

FORMAT = 1
"""Version of the layout of the parts; another one is refused."""
ALLOWED: frozenset[str] = TRUSTED
"""Types trusted beyond what skops trusts by itself."""
Stored = Anchor | TabularModel
_KINDS: dict[str, type[Stored]] = {**ANCHORS, "tabular": TabularModel}
"""By the name in a file; a subclass before its class."""


class Manifest(Record):
    """What a model file was made of, beside it as `DIGEST.json`."""

    artifact: str = ""
    """SHA-256 of the model file; filled in by `save`."""
    training: str
    """SHA-256 of the training rows."""
    arm: str
    code_version: str
    """filmroom's version that trained it."""
    environment: dict[str, str]
    """Versions of Python and of the libraries that trained it."""
    format: int = FORMAT
    notes: dict[str, JsonValue] = Field(default_factory=dict)


def environment() -> dict[str, str]:
    """The versions that decide whether a model file can be read again."""
    names = ("scikit-learn", "skops", "numpy", "scipy")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def save(model: Stored, folder: Path, manifest: Manifest) -> str:
    """Writes `model` and its manifest into `folder` and returns the digest under which `load` finds it."""
    folder.mkdir(parents=True, exist_ok=True)
    kind = next(name for name, made in _KINDS.items() if isinstance(model, made))
    data = _reproducible(skops.io.dumps({"format": FORMAT, "kind": kind, "parts": model.parts()}))
    digest = hashlib.sha256(data).hexdigest()
    write_whole(artifact_path(folder, digest), data)
    filled = manifest.model_copy(update={"artifact": digest})
    write_whole(
        folder / f"{digest}.json", json.dumps(filled.model_dump(mode="json"), indent=1, sort_keys=True).encode()
    )
    return digest


def load(folder: Path, digest: str) -> Stored:
    """The model saved in `folder` under `digest`; raises ModelRefused, naming the file, for any other content."""
    path = artifact_path(folder, digest)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelRefused(f"{path}: cannot be read ({error.strerror}); roll back, or train it again") from error
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise ModelRefused(f"{path}: its content is {found[:12]}, not {digest[:12]}: truncated or swapped; roll back")
    content = _opened(path, data)
    if content.get("format") != FORMAT:
        raise ModelRefused(f"{path}: format {content.get('format')}, this filmroom reads {FORMAT}; train it again")
    try:
        return _KINDS[content["kind"]].from_parts(content["parts"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ModelRefused(f"{path}: not the parts of a model of ours ({error}); train it again") from error


def read_manifest(folder: Path, digest: str) -> Manifest:
    """The manifest of a model file; raises ModelRefused where it is missing, unreadable or another model's."""
    path = folder / f"{digest}.json"
    try:
        manifest = Manifest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise ModelRefused(f"{path}: no readable manifest; train the model again") from error
    if manifest.artifact != digest:
        raise ModelRefused(f"{path}: the manifest is of {manifest.artifact[:12]}, not {digest[:12]}; roll back")
    return manifest


def artifact_path(folder: Path, digest: str) -> Path:
    """Where the model file of `digest` lies."""
    return folder / f"{digest}.skops"


def unchanged_by_saving(model: Stored, loaded: Stored, texts: list[str]) -> bool:
    """Whether the loaded model answers `texts` (canaries) as the saved one does: labels, rejections, confidence."""
    return model.predict(texts) == loaded.predict(texts)


def _reproducible(data: bytes) -> bytes:
    """A skops file without what differs from one saving to the next: memory addresses, as ids and names, and times."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members.pop("schema.json"))
    names = _number_nodes(schema)
    archived = io.BytesIO()
    with zipfile.ZipFile(archived, "w") as archive:
        for name, numbered in names.items():
            archive.writestr(zipfile.ZipInfo(numbered), members[name])
        archive.writestr(zipfile.ZipInfo("schema.json"), json.dumps(schema, separators=(",", ":")))
    return archived.getvalue()


def _number_nodes(schema: dict[str, Any]) -> dict[str, str]:
    """Numbers the nodes of a skops schema, in place and in order, and returns the new name of each file it mentions.

    Plain values get a number each: whether Python keeps two equal ones once is no property of the model.
    """
    numbers: dict[str, int] = {}
    names: dict[str, str] = {}
    pending: list[Any] = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if isinstance(node.get("__id__"), int):
                alias = f"value {len(numbers)}" if node.get("is_json") else str(node["__id__"])
                node["__id__"] = numbers.setdefault(alias, len(numbers) + 1)
            if isinstance(node.get("file"), str):
                node["file"] = names.setdefault(node["file"], f"{len(names) + 1}{Path(node['file']).suffix}")
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return names


def _opened(path: Path, data: bytes) -> Mapping[str, Any]:
    try:
        asked = set(skops.io.get_untrusted_types(data=data)) - ALLOWED
        if asked:
            raise ModelRefused(f"{path}: asks for types that are not trusted ({', '.join(sorted(asked))}); delete it")
        content = skops.io.loads(data, trusted=sorted(ALLOWED))
    except (zipfile.BadZipFile, io.UnsupportedOperation, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelRefused(f"{path}: not a model file ({error}); delete it") from error
    except (ImportError, EOFError, OSError, RuntimeError) as error:
        raise ModelRefused(f"{path}: cannot be opened ({error}); train it again in this environment") from error
    if not isinstance(content, dict):
        raise ModelRefused(f"{path}: holds {type(content).__name__}, not a model of ours; delete it")
    return content
