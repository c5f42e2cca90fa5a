"""`replay`: a correction's change, tried on cases of the log before it goes live."""

from typing import Annotated, Any

import typer

from filmroom.session import Json, Session, say, say_json


def register(app: typer.Typer) -> None:
    app.command()(replay)


def replay(
    context: typer.Context,
    correction: str,
    show: Annotated[bool, typer.Option("--show", help="Only show the last one, with every answer.")] = False,
    as_json: Json = False,
) -> None:
    """Try a correction's change on its cases and on satisfied traces, with the hook of `[agent] replay`."""
    found = _shown(context.obj, correction) if show else _made(context.obj, correction)
    if as_json:
        say_json(found)
        return
    say(f"{found['replay']}: {found['sentence']}")
    say(f"{found['hook']}, {found['seconds']:.1f} s, cost {found['cost_usd']:.4f} $, over {found['release_id']}")
    for reason, count in found["not_measured"].items():
        say(f"  not measured, {count}: {reason}")
    if show:
        for each in found["results"]:
            say(f"  {each['role']:9s} {each['trace_id']} {each['arm']:7s} {each['outcome']:12s} {each['why']}")
    say(f"next: filmroom review show {correction}")


def _made(session: Session, correction: str) -> dict[str, Any]:
    from flows.replay import replay_correction
    from store.errors import NotAllowed

    with session.workspace() as workspace:
        made = replay_correction(workspace, correction, again=True)
    if made is None:
        raise NotAllowed(
            "there is no `[agent] replay` in the settings, or the change is of the weights: it goes by its gate"
        )
    return _shown(session, correction)


def _shown(session: Session, correction: str) -> dict[str, Any]:
    from collections import Counter

    from store.errors import NotFound
    from store.replays import replays_of, results_of

    with session.store() as store, store.read() as connection:
        found = replays_of(connection, correction)
        if not found:
            raise NotFound(f"{correction} was not replayed: `filmroom replay {correction}`")
        results = results_of(connection, found[0].id)
    missing = Counter(each.why for each in results if each.outcome == "not_measured")
    return {
        "replay": found[0].id,
        **found[0].model_dump(mode="json"),
        "not_measured": dict(missing.most_common()),
        "results": [each.model_dump(mode="json") for each in results],
    }
