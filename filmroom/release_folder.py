"""The live release as files in a folder. `release.json` is replaced last, and what it names is there before and stays
until the next one: whoever reads it first never mixes two releases."""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection

from filmroom.release_document import FORMAT, exported_fact, not_stale, release_document
from filmroom.rule_text import block, example_line, holds, knowledge, line, open_conditions, plain
from filmroom.signature import signed
from store.errors import Refused
from store.facts import facts_at

RELEASE, CONTEXT, MODELS = "release.json", "context.md", "models"


def export_release(
    connection: Connection, project: str, folder: Path, *, schemas: Mapping[str, JsonValue], artifacts: Path, key: str,
    now_us: int, memory: bool,
) -> dict[str, Any]:  # fmt: skip
    """Write the live release; returns its document. With `memory` also everybody's facts, which are then in files too.

    Raises Refused where a model file is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    document = release_document(connection, project, schemas)
    for name, each in document["models"].items():
        _put_model(artifacts, folder, name, each["artifact"])
    if memory:
        document["memory"]["file"] = _put_memory(connection, project, folder, document, key, now_us)
    write_file(folder / CONTEXT, (context_block(document) + "\n").encode())
    before = _names(folder)
    write_file(folder / RELEASE, json.dumps(signed(document, key), indent=1, sort_keys=True).encode("ascii"))
    _tidy(folder, before | _names(folder))
    return document


def context_block(document: Mapping[str, Any], **scope: str | None) -> str:
    """The rules of a release as a markdown block; what is not known of the scope is spelled out."""
    lines = [
        line(rule["text"], conditions)
        for rule in document["context"]["rules"]
        if (conditions := open_conditions(rule["scope"], scope)) is not None
    ]
    given = {name: value for name, value in scope.items() if value is not None}
    kept = document["context"]
    notes = [plain(each["text"]) for each in kept.get("notes", ()) if holds(each["scope"], given)]
    examples = [
        example_line(each["input"], each["output"]) for each in kept.get("examples", ()) if holds(each["scope"], given)
    ]
    return "\n".join(part for part in (block(lines), knowledge(notes, examples)) if part)


def write_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Another name, fsync, rename: a reader sees the old file or the new."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _put_model(artifacts: Path, folder: Path, name: str, digest: str) -> None:
    target = folder / MODELS / f"{digest}.skops"
    if target.exists():
        return
    source = artifacts / f"{digest}.skops"
    if not source.is_file():
        raise Refused(f"the file of model {name!r} is missing ({source}): roll back, or train it again")
    target.parent.mkdir(exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    shutil.copyfile(source, temporary)
    temporary.replace(target)


def _put_memory(
    connection: Connection, project: str, folder: Path, document: Mapping[str, Any], key: str, now_us: int
) -> str:
    position = document["memory"]["position"]
    facts = [exported_fact(each) for each in not_stale(facts_at(connection, project, position, now_us))]
    value = {"format": FORMAT, "project": project, "release": document["release"], "position": position, "facts": facts}
    data = json.dumps(signed(value, key), sort_keys=True).encode("ascii")
    name = f"memory-{hashlib.sha256(data).hexdigest()[:16]}.json"
    write_file(folder / name, data, 0o600)
    return name


def _names(folder: Path) -> set[str]:
    """The files that the folder's release names."""
    try:
        value = json.loads((folder / RELEASE).read_bytes())
        models = {f"{MODELS}/{each['artifact']}.skops" for each in value["models"].values()}
        return models | ({value["memory"]["file"]} if "file" in value["memory"] else set())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()


def _tidy(folder: Path, kept: set[str]) -> None:
    """Remove models and facts that neither this release nor the one before names."""
    for path in [*folder.glob("memory-*.json"), *folder.glob(f"{MODELS}/*.skops")]:
        if path.relative_to(folder).as_posix() not in kept:
            path.unlink(missing_ok=True)
