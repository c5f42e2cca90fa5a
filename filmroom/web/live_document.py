"""The live release as it goes over the wire, made once for each release and handed out by reference."""

import json
import time
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import JsonValue

from filmroom.release_document import etag, release_document
from filmroom.signature import signed
from store.database import Store
from store.releases import live_release

LOOK_S = 0.1
"""Those who wait for a new release share one look at the store; it is at most this old, in seconds."""


class Document(NamedTuple):
    """One release, ready to be sent."""

    release: str
    etag: str
    body: bytes
    models: Mapping[str, str]
    """Model name to version id."""


class LiveDocument:
    """What is live. Each look at the pointer is a query; the document is made only when the pointer has moved."""

    def __init__(self, store: Store, schemas: Mapping[str, JsonValue], key: str) -> None:
        self.closing = False
        """Whether the server is ending: nobody should wait any longer."""
        self._store = store
        self._schemas = schemas
        self._key = key
        self._kept: Document | None = None
        self._looked_at = 0.0

    def current(self) -> Document:
        """What is live now. Raises StoreError, NotFound before there is a release."""
        with self._store.read() as connection:
            live = live_release(connection, self._store.project)
            kept = self._kept
            if kept is None or kept.release != live.id:
                value = release_document(connection, self._store.project, self._schemas, live)
                models = {name: each["version"] for name, each in value["models"].items()}
                kept = Document(live.id, etag(value), wire(signed(value, self._key)), models)
        self._kept, self._looked_at = kept, time.monotonic()
        return kept

    def recent(self) -> Document:
        """What was live at most `LOOK_S` ago."""
        kept = self._kept
        if kept is None or time.monotonic() - self._looked_at > LOOK_S:
            return self.current()
        return kept


def wire(value: object) -> bytes:
    """JSON as it is sent."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")
