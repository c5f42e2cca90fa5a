"""`[engine]`: where the fits of a retrain run."""

from pydantic import Field

from store.settings_section import Section


class EngineSection(Section):
    """Where the fits of a retrain run; the numbers are the same everywhere."""

    threads: int = Field(default=1, ge=1, le=64)
    """Fits at a time in this process. Fits of texts take turns all the same."""
    dask: str | None = Field(default=None, pattern=r"^(tcp|tls|ws|wss)://[^\s/:]+:\d+$")
    """Address of a Dask scheduler that runs them (`tcp://host:8786`); None: they run in this process."""
    timeout_s: float = Field(default=900.0, gt=0)
    """Longest time for the fits that are asked of the cluster at once, seconds."""
