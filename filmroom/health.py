"""What `filmroom doctor` checks: each check a name, whether it is well, and a detail that says what to do."""

from collections.abc import Callable, Iterator
from typing import Any

from filmroom.distributions import clashes
from filmroom.session import Session
from store.errors import FilmroomError, SettingsError
from store.settings import Settings

Check = dict[str, Any]


def checks(session: Session) -> list[Check]:
    """Every check in order; where the settings cannot be read, that is the only one that can be made."""
    try:
        settings = session.settings()
    except FilmroomError as error:
        return [_check("settings", ok=False, detail=str(error))]
    return [
        _check("settings", ok=True, detail=f"digest {settings.digest}"),
        _check("environment", ok=not (found := clashes()), detail=found[0] if found else "no import name is taken"),
        _tried("store", lambda: _store(session)),
        *([_tried("sources", lambda: _sources(settings))] if settings.sources else []),
        *([_tried("schedule", lambda: _schedule(settings))] if settings.schedule.cron else []),
        _tried("tools", lambda: _tools(settings)),
        *_training(session, settings),
        _tried("replay", lambda: _replay(settings)),
        *([_tried("repository", lambda: _repository(settings))] if settings.agent.repository else []),
        *([_tried("webhook", lambda: _webhook(settings))] if settings.agent.webhook else []),
    ]


def _store(session: Session) -> str:
    from store.homes import count_parked
    from store.leases import holder_of
    from store.status import status

    with session.store() as store:
        found = status(store)
        holder = holder_of(store)
        with store.read() as connection:
            parked = count_parked(connection, store.project)
    at_work = f"; {holder} is at work on it" if holder else ""
    log = found["log"]
    look = " (filmroom quarantine list)" if log["quarantined"] else ""
    waits = (
        f", {parked} feedback waiting for its trace (say its `source` where two logs have the name)" if parked else ""
    )
    return (
        f"{log['traces']} traces, {log['quarantined']} in quarantine{look}{waits}, release {found['release']}{at_work}"
    )


def _sources(settings: Settings) -> str:
    from store.sources.registry import FORMATS

    for name, section in settings.sources.items():
        if section.format not in ("auto", *FORMATS):
            raise SettingsError(
                f"[sources.{name}] format: there is no {section.format!r}; the formats are auto, {', '.join(FORMATS)}"
            )
    return ", ".join(f"{name} ({section.format})" for name, section in settings.sources.items())


def _schedule(settings: Settings) -> str:
    from datetime import UTC, datetime

    from cronsim import CronSim, CronSimError

    cron = settings.schedule.cron or ""
    try:
        following = next(CronSim(cron, datetime.now(UTC)))
    except (CronSimError, StopIteration) as error:
        raise SettingsError(f"[schedule] cron: {cron!r} is not a cron expression; try '0 3 * * *'") from error
    return f"{cron}: next {following:%Y-%m-%d %H:%M} ({settings.schedule.timezone})"


def _tools(settings: Settings) -> str:
    from flows.workspace import read_tools

    if settings.agent.tools is None:
        return "no [agent] tools file: arguments are not checked against a schema"
    return f"{len(read_tools(settings))} tools in {settings.agent.tools}"


def _replay(settings: Settings) -> str:
    from flows.replay.trial import probe

    if settings.agent.replay is None:
        return "no [agent] replay: a change goes live on probation, and its hold judges it"
    return f"{settings.agent.replay}: {probe(settings)}"


def _repository(settings: Settings) -> str:
    from flows.pull_request import repository_of

    return f"{repository_of(settings)}: `filmroom pr` writes branches there"


def _webhook(settings: Settings) -> str:
    from urllib.parse import urlsplit

    from flows.tickets import webhook_key

    webhook_key(settings)
    return f"tickets are posted to {urlsplit(settings.agent.webhook or '').netloc}, signed"


def _training(session: Session, settings: Settings) -> Iterator[Check]:
    for name in settings.weights:
        yield _tried(f"weights.{name}", lambda name=name: _model(session, settings, name))  # type: ignore[misc]


def _model(session: Session, settings: Settings, name: str) -> str:
    """What is known of a model. Raises SettingsError where the log has no step of its name."""
    from flows.labels import unknown_step
    from flows.training import training_rows
    from store.errors import StoreError
    from store.retrains import dataset_of

    section = settings.weights[name]
    rows = training_rows(settings, name)
    told = (
        f"{len(rows)} training rows"
        if section.training
        else "no training file: this model can be scored, not retrained"
    )
    try:
        with session.store() as store, store.read() as connection:
            unknown = unknown_step(connection, store.project, name)
            taught = {each["label"] for each in dataset_of(connection, store.project, name)}
    except StoreError:
        return told
    if unknown is not None:
        raise SettingsError(f"[weights.{name}]: {unknown}")
    outside = section.out_of_scope
    if rows and outside is not None and outside not in taught | {row.label for row in rows}:
        never = f"no row of it, and no approved correction, is labelled {outside!r}"
        return f"{told}; out_of_scope: {never}, so nothing is learnt to be turned away"
    return told


def _tried(name: str, look: Callable[[], str]) -> Check:
    try:
        return _check(name, ok=True, detail=look())
    except FilmroomError as error:
        return _check(name, ok=False, detail=str(error))


def _check(name: str, *, ok: bool, detail: str) -> Check:
    return {"name": name, "ok": ok, "detail": detail}
