"""The key that signs what is served: made once, beside the store, readable by its owner alone."""

import os
import secrets
from pathlib import Path

from store.errors import SettingsError

FILE = Path(".filmroom") / "release.key"


def signing_key(home: Path) -> str:
    """The project folder's key, made where there is none. Raises SettingsError for one that others may read."""
    path = home / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _make(path)
        mode = path.stat().st_mode & 0o777
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: the key that signs releases cannot be read or written: {error}") from error
    if mode & 0o077:
        raise SettingsError(
            f"{path}: others may read the key (mode {mode:o}): chmod 600 it, or delete it for a new one"
        )
    if len(key) < 32:
        raise SettingsError(f"{path}: not a key; delete it, and a new one is made")
    return key


def _make(path: Path) -> None:
    """Under another name first, so that nobody reads half a key; of two that make one, the first stays."""
    if path.exists():
        return
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32) + "\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()
