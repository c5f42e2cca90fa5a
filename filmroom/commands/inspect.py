"""`history`, `why` and `release`: what happened, what caused it, and what is served."""

from typing import Annotated, Any

import typer

from filmroom.session import Json, Session, say, say_json, table, time_text


def register(app: typer.Typer) -> None:
    app.command()(history)
    app.command()(why)
    app.command()(release)


def history(
    context: typer.Context,
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    as_json: Json = False,
) -> None:
    """Every evaluation of the retrain trigger, newest first: skipped, refused, promoted, with its reason and numbers."""
    from filmroom.ways_said import say_ways
    from flows.ways import ways_of_retrain
    from store.retrains import retrains_of

    session: Session = context.obj
    with session.workspace() as workspace, workspace.store.read() as connection:
        found = retrains_of(connection, workspace.project, model)
        if model is not None and not found:
            _check_model(model, [*workspace.settings.weights, *(
                each.model for each in retrains_of(connection, workspace.project))])  # fmt: skip
        newest = {each.model: each.id for each in reversed(found)}
        ways = {
            each.id: ways_of_retrain(connection, workspace, each) for each in found if newest[each.model] == each.id
        }
    if as_json:
        say_json([
            {**history_row(each.model_dump(mode="json")),
             "ways": [way.model_dump(mode="json") for way in ways.get(each.id, [])]}
            for each in found
        ])  # fmt: skip
        return
    if not found:
        say("no retrain was weighed yet. next: filmroom run")
        return
    for each in found:
        say(
            f"{time_text(each.at_us)}  {each.id}  {each.model}: {each.decision}"
            + (f" ({each.arm})" if each.arm else "")
        )
        say(f"    {each.reason}")
        for stage in each.gate:
            say(f"    gate {stage.stage}: {stage.verdict}: {stage.sentence}")
        for example in [each_ for each_ in each.examples if each_.change == "newly wrong"][:3]:
            say(f"    newly wrong: {example.trace_id or 'a base row'}: {example.challenger or 'turned away'}, "
                f"right was {example.truth or 'out of scope'}")  # fmt: skip
        if each.to_yes:
            say(f"    shortest way to yes: {each.to_yes}")
        say_ways(ways.get(each.id, []))


def _check_model(model: str, known: list[str]) -> None:
    """Raise NotFound, naming the models there are, for one that is none of them."""
    from store.errors import NotFound

    if model not in known:
        there = f"there are {', '.join(sorted(set(known)))}" if known else "there are none: name one as [weights.NAME]"
        raise NotFound(f"no model {model}: {there}")


def history_row(record: dict[str, Any]) -> dict[str, Any]:
    """A retrain as `history --json` gives it."""
    renamed = {"retrain": record["id"], "time": record["at_us"]}
    kept = ("model", "decision", "reason", "to_yes", "numbers", "arm", "arms", "version", "parent", "metrics", "gate", "examples",
            "seconds", "estimator_fits")  # fmt: skip
    return {**renamed, **{name: record[name] for name in kept}}


def why(context: typer.Context, id: str, as_json: Json = False) -> None:
    """What caused a thing, back to the traces, and what it led to."""
    from filmroom.live_state import recurrence
    from store.records import Hold
    from store.source_names import source_names
    from store.traces import trace_named
    from store.why import why as explain

    session: Session = context.obj
    with session.store() as store, store.read() as connection:
        named = trace_named(connection, store.project, id, source_names(session.settings()))
        found = explain(connection, store.project, named or id)
    if as_json:
        say_json(found)
        return
    say(f"{found['kind']} {found['id']}" + (" (erased)" if found.get("erased") else ""))
    for event in found["events"]:
        reason = f": {event['reason']}" if event["reason"] else ""
        say(f"  {time_text(event['at_us'])}  {event['event']} by {event['actor']}{reason}")
    if found.get("hold"):
        say(f"  {recurrence(Hold(**found['hold']), undone=found['undone'])}")
    _say_served(found.get("served_by"))
    say("caused by:" if found["causes"] else "caused by: nothing recorded")
    _tree(found["causes"], "causes", 1)
    say("led to:" if found["effects"] else "led to: nothing yet")
    _tree(found["effects"], "effects", 1)


def release(context: typer.Context, as_json: Json = False) -> None:
    """The release that is served, and those before it."""
    from store.releases import live_release, releases_of

    session: Session = context.obj
    with session.store() as store, store.read() as connection:
        live = live_release(connection, store.project)
        found = releases_of(connection, store.project)
    if as_json:
        say_json([{"release": each.id, "live": each.id == live.id, **each.model_dump(mode="json")} for each in found])
        return
    table(
        ["release", "", "number", "since", "by", "reason", "context", "tooling", "memory", "models"],
        [
            [
                each.id,
                "live" if each.id == live.id else "",
                str(each.number),
                time_text(each.created_us),
                each.actor,
                each.reason,
                each.context[:12],
                each.tooling[:12],
                str(each.memory),
                ", ".join(f"{name} {id_[:12]}" for name, id_ in each.models.items()) or "-",
            ]
            for each in found
        ],
    )


def _say_served(served: dict[str, Any] | None) -> None:
    """What answered a trace: the release, its four states, and what made them."""
    if served is None:
        return
    say(f"served by release {served['release']} (number {served['number']}):")
    say(f"  context {served['context']}, memory position {served['memory']}, tooling {served['tooling']}")
    for name, version in sorted(served["models"].items()):
        say(f"  model {name} {version}")
    say("made by:" if served["causes"] else "made by: nothing, it is as it was founded")
    _tree(served["causes"], "causes", 1)


def _tree(nodes: list[dict[str, Any]], name: str, depth: int) -> None:
    for node in nodes:
        gone = " (erased)" if node.get("erased") else ""
        say(f"{'  ' * depth}{node['kind']} {node['id']}".rstrip() + gone)
        _tree(node[name], name, depth + 1)
