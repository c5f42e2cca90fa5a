"""The names under which logs may have come in: of the formats, and of the settings' sources."""

from store.settings import Settings
from store.sources.registry import FORMATS


def source_names(settings: Settings) -> set[str]:
    """Every `source` that a trace of this home can have, unless it was given by hand."""
    own = {section.source for section in settings.sources.values() if section.source}
    return {*FORMATS, *settings.sources, *own}
