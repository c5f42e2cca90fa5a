"""What every stage is handed: the store, the settings, the thresholds in force, the clock and who acts."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import JsonValue
from sqlalchemy import Connection

from models.deployment import Deployment
from models.profile import choose_profile
from store.database import Clock, Store, open_store, wall_clock
from store.errors import LiveMoved, SettingsError
from store.leases import Lease
from store.profile import labelled_counts
from store.records import Policy, Rule, Target
from store.releases import found_project, live_release, version
from store.settings import Settings

if TYPE_CHECKING:
    from flows.engine import Engine

Decided = TypeVar("Decided")
MOVES = 10
"""Attempts to move the live release while others move it too."""


@dataclass(frozen=True)
class Workspace:
    """One project at work. Frozen: a stage that needs another actor or lease gets a copy."""

    store: Store
    settings: Settings
    policy: Policy
    profile_reason: str
    """Why this profile, in a sentence."""
    clock: Clock
    actor: str
    lease: Lease | None = None
    turn_id: str = ""
    engine: "Engine | None" = None
    """What begins the fits of a retrain; None: this process or its own Dask client, as the settings say."""

    @property
    def project(self) -> str:
        return self.store.project

    @property
    def artifacts(self) -> Path:
        """Folder of the model files."""
        return self.settings.home / ".filmroom" / "artifacts"

    @cached_property
    def tools(self) -> dict[str, JsonValue]:
        """The tools' argument schemas by name; empty without `[agent] tools`."""
        return read_tools(self.settings)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that fails when this turn has lost its lease."""
        with self.store.write() as connection:
            if self.lease is not None:
                self.lease.check(connection)
            yield connection

    def decided(self, decide: Callable[[Connection], Decided]) -> Decided:
        """`decide` in a transaction of its own, and again where another process moved the live release first."""
        for _ in range(MOVES - 1):
            with suppress(LiveMoved), self.write() as connection:
                return decide(connection)
        with self.write() as connection:
            return decide(connection)

    def acting(self, **changed: Any) -> "Workspace":
        return replace(self, **changed)

    def with_profile(self) -> "Workspace":
        """Under the thresholds that fit what the store holds by now."""
        with self.store.read() as connection:
            policy, reason = _profile_of(connection, self.settings)
        return replace(self, policy=policy, profile_reason=reason)

    def is_authority(self, principal: str | None) -> bool:
        """Whether one word of this principal suffices where end users need a quorum."""
        return principal is not None and principal in self.policy.trusted

    def deployment(self, connection: Connection, attempts: dict[str, int] | None = None) -> Deployment:
        """What this deployment has, as the router sees it."""
        targets: list[Target] = [
            each for each in self.settings.agent.targets if each != "weights" or self.settings.weights
        ]
        return Deployment(
            targets=tuple(targets),
            rules=live_rules(connection, self.project),
            tools=self.tools,
            models=self.out_of_scope,
            attempts=attempts or {},
        )

    @property
    def out_of_scope(self) -> dict[str, str | None]:
        """Model name to the label that means none of its classes."""
        return {name: section.out_of_scope for name, section in self.settings.weights.items()}


@contextmanager
def open_workspace(
    settings: Settings, *, actor: str, clock: Clock = wall_clock, create: bool = False
) -> Iterator[Workspace]:
    """The project of these settings, founded where it is new. Raises what `open_store` raises."""
    store = open_store(settings.store_url, settings.project, create=create)
    try:
        with store.read() as connection:
            policy, reason = _profile_of(connection, settings)
        workspace = Workspace(store, settings, policy, reason, clock, actor)
        with store.write() as connection:
            found_project(connection, settings.project, actor=actor, now_us=clock())
        yield workspace
    finally:
        store.close()


def _profile_of(connection: Connection, settings: Settings) -> tuple[Policy, str]:
    """The thresholds in force, and why these."""
    profile = settings.policy.profile
    if profile != "auto":
        return settings.policy_in_force(profile), f"profile {profile}, as set in the settings"
    counts = labelled_counts(connection, settings.project)
    chosen, reason = choose_profile(formerly_right=counts["right"], sources=counts["sources"])
    return settings.policy_in_force(chosen), reason


def live_rules(connection: Connection, project: str) -> tuple[Rule, ...]:
    """The context rules that are served now."""
    content: Any = version(connection, live_release(connection, project).context).content
    return tuple(Rule(**rule) for rule in content["rules"])


def read_tools(settings: Settings) -> dict[str, JsonValue]:
    """The tools' argument schemas by name, from the file `[agent] tools` names.

    Takes OpenAI's list of functions, or a plain object of name to schema. Raises SettingsError.
    """
    if settings.agent.tools is None:
        return {}
    path = settings.home / settings.agent.tools
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SettingsError(f"[agent] tools: {path}: no such file; put it there, or take the line out") from error
    except OSError as error:
        raise SettingsError(
            f"[agent] tools: {path}: {error.strerror}; make it readable, or name another file"
        ) from error
    except ValueError as error:
        raise SettingsError(
            f"[agent] tools: {path}: not JSON ({error}); write it anew, or name another file"
        ) from error
    if isinstance(value, dict):
        return value
    try:
        functions = [each.get("function", each) for each in value]
        return {each["name"]: each["parameters"] for each in functions}
    except (AttributeError, KeyError, TypeError) as error:
        raise SettingsError(
            f"[agent] tools: {path}: a list of functions, each with `name` and `parameters`, is needed"
        ) from error
