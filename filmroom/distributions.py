"""Whether another installed distribution owns one of our import names, which Python itself would never say.

filmroom is an application in an environment of its own: its folders are top-level packages with plain names.
"""

from collections.abc import Iterator
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

DISTRIBUTION = "filmroom"
IMPORT_NAMES = ("filmroom", "flows", "models", "store")

_OURS = Path(__file__).resolve().parent.parent


def clashes() -> list[str]:
    """One sentence for each of our import names that something else owns or shadows; empty where all is well.

    Takes about half a second, since it reads the file lists of everything installed.
    """
    return [*_owned_by_others(), *_loaded_from_elsewhere()]


def _owned_by_others() -> Iterator[str]:
    owners = packages_distributions()
    for name in IMPORT_NAMES:
        for owner in sorted(set(owners.get(name, ())) - {DISTRIBUTION}):
            yield f"`{name}` belongs to the distribution {owner} too: install filmroom in an environment of its own"


def _loaded_from_elsewhere() -> Iterator[str]:
    for name in IMPORT_NAMES:
        place = _folder(name)
        if place != _OURS / name:
            yield f"`{name}` is loaded from {place or 'nowhere'}, not from {_OURS / name}: take that folder off PYTHONPATH"


def _folder(name: str) -> Path | None:
    """Where `import NAME` would look; None where it would find nothing, or a folder without `__init__`."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).resolve().parent
