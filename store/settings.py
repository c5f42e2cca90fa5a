"""`filmroom.toml` and `FILMROOM_*`, read once at the front door and passed down."""

import re
import tomllib
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from store.errors import SettingsError
from store.records import Meaning, Policy, Prices, content_hash, policy_for
from store.records.policy import Evidence, ProfileName
from store.settings_engine import EngineSection
from store.settings_errors import faults
from store.settings_section import Section
from store.settings_weights import WeightsSection

FILE_NAME = "filmroom.toml"


class StoreSection(Section):
    url: str = "sqlite:///filmroom.db"
    """SQLAlchemy URL; a relative SQLite path is beside the settings file."""
    keep_days: float | None = Field(default=None, gt=0)
    """Days after which a trace's text is dropped, unless an open correction or a training row needs it; None: never."""


class SourceSection(Section):
    """A log to read, and how its columns map to ours."""

    format: str = "auto"
    path: str | None = None
    """File that `filmroom run` reads at the start of each turn; None: only `filmroom ingest` reads it."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Tabular formats: our field (`id, time, user, session, input, output, confidence, label, comment, ...`) to their column."""
    model: str | None = None
    """Tabular formats: the model whose predictions these are."""
    timezone: str | None = None
    """IANA name for times without an offset; None: such times are refused."""
    source: str | None = None
    """The system the traces are from, half of their identity; None: the format's name.
    A file with labels alone names the source whose traces it labels."""
    label_only: bool = False
    """Tabular formats: every row is a label of a trace that comes elsewhere, whatever else stands in it."""
    pull: str | None = None
    """URL of a running system, `format` one of `langfuse`, `mlflow`, `phoenix`: read at the start of each turn."""
    space: str | None = None
    """The project there (Phoenix) or the experiment (MLflow), by name or id; None: `default`, or all experiments."""
    token_env: str | None = None
    """Environment variable with a bearer token; None: the system's own variable, where it is set."""
    user_env: str | None = None
    """Environment variable with the user, or Langfuse's public key; None: the system's own variable."""
    password_env: str | None = None
    """Environment variable with the password, or Langfuse's secret key; None: the system's own variable."""
    page_size: int = Field(default=500, ge=1, le=1000)
    """Records a request."""
    since_days: float = Field(default=90.0, gt=0)
    """How far back the first pull goes."""
    overlap_hours: float = Field(default=24.0, ge=0)
    """How far back of the last pull the next begins: traces may be sent that late."""
    feedback_days: float = Field(default=30.0, ge=0)
    """How long after a trace its feedback is looked for, in systems that do not list feedback by its own time."""


class AgentSection(Section):
    """The program that is improved."""

    replay: str | None = None
    """`module:function` or URL: `replay(input, release, tools) -> {output, tool_calls, cost}`; None: changes go by probation."""
    check: str | None = None
    """`module:function`: whether a replayed answer is right; None: the cluster's own detector decides."""
    python: str | None = None
    """Interpreter that runs them; None: this one, in a child process."""
    tools: str | None = None
    """JSON file with the tools' schemas; None: no schema evidence."""
    repository: str | None = None
    """Folder of the program's Git repository, where `filmroom pr` writes branches; None: there is none."""
    safe_tools: tuple[str, ...] = ()
    """Tools that a replay may call for real where the log holds no answer."""
    replay_timeout_s: float = Field(default=60.0, gt=0)
    """Longest time for one answer, seconds."""
    replay_workers: int = Field(default=2, ge=1, le=64)
    """Answers that are asked for at the same time."""
    replay_repeats: int = Field(default=1, ge=1, le=20)
    """Times each case is answered, for an agent whose answers vary."""
    replay_cases: int = Field(default=20, ge=1)
    """Failures of the cluster that are tried."""
    replay_neighbours: int = Field(default=30, ge=0)
    """Satisfied traces that are tried, for what the change breaks."""
    replay_cost_usd: float = Field(default=1.0, ge=0)
    """Reported cost at which a replay stops asking."""
    judge: str | None = None
    """Base URL of an OpenAI-compatible endpoint (`http://127.0.0.1:11434/v1`) whose opinion of a cluster is one more piece of
    evidence; it is sent parts of three failing traces. None: nothing is asked."""
    judge_model: str = "default"
    """The model that is asked there."""
    judge_key_env: str | None = None
    """Environment variable with its key; None: none is sent."""
    judge_timeout_s: float = Field(default=20.0, gt=0)
    """Longest time for one opinion, seconds."""
    judge_usd_per_million: float = Field(default=0.0, ge=0)
    """Price of a million tokens."""
    judge_cost_usd: float = Field(default=1.0, gt=0)
    """Cost at which a turn stops asking."""
    webhook: str | None = None
    """URL that tickets are posted to as JSON when they are opened, or open again; None: nothing is sent."""
    webhook_secret_env: str | None = None
    """Environment variable with the key that signs what is posted; None: `.filmroom/release.key`."""
    targets: tuple[Literal["context", "memory", "tooling", "weights"], ...] = (
        "context",
        "memory",
        "tooling",
        "weights",
    )
    """The places this deployment has."""


class PolicySection(Section):
    """Overrides of the profile's defaults."""

    profile: ProfileName | Literal["auto"] = "auto"
    """`auto`: chosen from the counts, and said."""
    trusted: tuple[str, ...] = ()
    """Principals whose word is an authority's."""
    settle_s: float | None = Field(default=None, ge=0)
    queue_cap: int | None = Field(default=None, ge=1)
    min_cluster: int | None = Field(default=None, ge=1)
    context_rules: int | None = Field(default=None, ge=1)
    context_tokens: int | None = Field(default=None, ge=1)
    evidence: Evidence | None = None
    router: Literal["auto", "rules"] = "auto"
    """`auto`: a router that learned from the verdicts decides where it is measurably better; `rules`: never, the way back."""
    redact: tuple[Literal["keys", "email", "phone", "card", "iban"], ...] = ("keys",)
    """What never reaches the store, but a placeholder of it: `keys` are keys, tokens and passwords; the others are personal."""
    redact_patterns: dict[str, str] = Field(default_factory=dict)
    """More of it: name to regular expression."""

    @field_validator("redact_patterns")
    @classmethod
    def _are_expressions(cls, patterns: dict[str, str]) -> dict[str, str]:
        for name, expression in patterns.items():
            try:
                matches_nothing = re.compile(expression).match("") is not None
            except re.error as error:
                raise ValueError(f"{name}: {expression!r} is not a regular expression: {error}") from error
            if matches_nothing:
                raise ValueError(f"{name}: {expression!r} matches the empty text")
        return patterns


class ScheduleSection(Section):
    cron: str | None = None
    """For example `0 3 * * *`; None: the interval."""
    interval_s: float = Field(default=3600.0, ge=10)
    timezone: str = "UTC"
    port: int = Field(default=4210, ge=1, le=65535)
    """Loopback port of the embedded Prefect server."""


class ConsoleSection(Section):
    """What `filmroom serve` listens on."""

    host: str = "127.0.0.1"
    """Address to listen on; beyond this machine only where a user was made, or with a token."""
    port: int = Field(default=8010, ge=0, le=65535)
    token: str | None = None
    """What clients send as `Authorization: Bearer TOKEN`; better in FILMROOM_CONSOLE__TOKEN, or here as `sha256:` and the
    64 hexadecimal digits of its SHA-256. None: whoever is on this machine may send."""
    max_body_mb: int = Field(default=32, ge=1, le=1024)
    """Largest request, decompressed, in MiB."""
    hosts: tuple[str, ...] = ()
    """Names by which a proxy asks for it, beside this machine's own."""
    reviewers: int = Field(default=1, ge=1, le=9)
    """Reviewers who judge each correction before it is decided."""
    blind: bool = True
    """Whether a reviewer sees the others' opinions only after giving their own."""
    claim_minutes: float = Field(default=15.0, gt=0, le=1440)
    """How long a correction stays with the reviewer who opened it."""


class TrackingSection(Section):
    """Where retrains are told of beside the store."""

    mlflow: str | None = None
    """URL of an MLflow tracking server; None: nothing is sent."""
    experiment: str = "filmroom"


class Settings(BaseSettings):
    """The whole of `filmroom.toml`; a `FILMROOM_SECTION__KEY` variable outranks the file."""

    model_config = SettingsConfigDict(
        env_prefix="FILMROOM_", env_nested_delimiter="__", frozen=True, extra="forbid", allow_inf_nan=False
    )

    project: str = "default"
    home: Path = Path(".")
    """Folder of the settings file; relative paths start here."""
    store: StoreSection = StoreSection()
    sources: dict[str, SourceSection] = Field(default_factory=dict)
    feedback: dict[str, Meaning] = Field(default_factory=dict)
    agent: AgentSection = AgentSection()
    weights: dict[str, WeightsSection] = Field(default_factory=dict)
    engine: EngineSection = EngineSection()
    policy: PolicySection = PolicySection()
    prices: Prices = Prices()
    schedule: ScheduleSection = ScheduleSection()
    console: ConsoleSection = ConsoleSection()
    tracking: TrackingSection = TrackingSection()
    seed: int = 0

    @field_validator("project")
    @classmethod
    def _is_named(cls, project: str) -> str:
        if not project.strip():
            raise ValueError("it must not be empty; leave the line out for `default`")
        return project

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (env_settings, init_settings)

    @property
    def store_url(self) -> str:
        """The store's URL with a relative SQLite path made absolute."""
        prefix = "sqlite:///"
        url = self.store.url
        if not url.startswith(prefix) or url.startswith(prefix + "/") or url == prefix + ":memory:":
            return url
        return prefix + str((self.home / url[len(prefix) :]).resolve())

    @property
    def digest(self) -> str:
        """Twelve digits over everything that can change a decision; where the store lies and the fits run is not part of it."""
        apart = {"home", "store", "engine", "schedule", "console", "tracking"}
        return content_hash(self.model_dump(mode="json", exclude=apart))[:12]

    def policy_in_force(self, profile: ProfileName) -> Policy:
        """The profile's defaults with this file's overrides."""
        policy = policy_for(profile, self.policy.trusted)
        overrides = {
            name: value
            for name in ("settle_s", "queue_cap", "min_cluster", "context_rules", "context_tokens", "evidence")
            if (value := getattr(self.policy, name)) is not None
        }
        return policy.model_copy(update=overrides)


def read_settings(path: Path | None = None) -> Settings:
    """The settings of `path` (default `filmroom.toml` in the current folder, or defaults where there is none).

    Raises SettingsError, naming file and key, for what cannot be read.
    """
    file = path or Path(FILE_NAME)
    if not file.exists():
        if path is not None:
            raise SettingsError(f"{file}: no such settings file; write one with `filmroom init`")
        return _validated(file, {"home": Path(".").resolve()})
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{file}: {error}") from error
    return _validated(file, {"home": file.resolve().parent, **raw})


def _validated(file: Path, raw: dict[str, object]) -> Settings:
    try:
        return Settings(**raw)  # type: ignore[arg-type]
    except ValidationError as error:
        raise SettingsError(f"{file}: {faults(error, Settings)}") from error
