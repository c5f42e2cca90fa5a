"""`review` and `undo`: a person's verdict on a routed correction, and the way back."""

import sys
from typing import Annotated, Any

import typer

from filmroom.answer import read_answer
from filmroom.session import Json, Session, printable, say, say_json, table
from store.records import TARGETS

group = typer.Typer(
    help="Review routed corrections: by keys in this terminal without a command, or list, show, approve, reroute, reject, defer."
)

Answer = Annotated[
    str | None, typer.Option(help="What a correction needs you to write: a sentence, a label, or a JSON object.")
]
Reason = Annotated[str, typer.Option(help="Why; it is kept with the verdict.")]


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="review")
    app.command()(undo)


@group.callback(invoke_without_command=True)
def by_keys(context: typer.Context) -> None:
    """Go through the queue by keys; in a pipe, list it."""
    if context.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        list_(context)
        return
    from readchar import readkey
    from rich.console import Console

    from filmroom.terminal_review import review_by_keys

    session: Session = context.obj
    screen = Console(highlight=False)
    with session.workspace() as workspace:
        given = review_by_keys(workspace, screen, read=readkey, ask=lambda what: screen.input(f"{printable(what)}\n> "))
    say(f"{given} verdicts given")


@group.command(name="list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """The corrections that wait for a person, largest cluster first."""
    from store.review_queue import review_queue

    session: Session = context.obj
    with session.store() as store:
        queue = review_queue(store)
    if as_json:
        say_json(queue)
        return
    if not queue:
        say("nothing waits for you. next: filmroom ingest LOG, then filmroom run")
        return
    table(
        ["correction", "failures", "target", "probability", "runner-up", "cluster", "proposed"],
        [
            [
                each["correction"],
                str(each["failures"]),
                each["target"] or "no place",
                f"{each['probability']:.2f}",
                "no place" if each["runner_up"] == "none" else each["runner_up"] or "-",
                each["name"],
                each["summary"] + (" (needs an answer)" if each["needs_answer"] else ""),
            ]
            for each in queue
        ],
    )
    say(f"next: filmroom review show {queue[0]['correction']}")


@group.command()
def show(context: typer.Context, correction: str, as_json: Json = False) -> None:
    """One correction: what failed, why it was routed there, what would change."""
    from filmroom.live_state import recurrence
    from filmroom.ways_said import say_ways
    from flows.ways import ways_of
    from store.corrections import route_of
    from store.records import Hold
    from store.review_queue import review_item

    session: Session = context.obj
    with session.store() as store:
        item = review_item(store, correction)
        with store.read() as connection:
            ways = ways_of(connection, store.project, route_of(connection, correction))
    item["ways"] = [each.model_dump(mode="json") for each in ways]
    if as_json:
        say_json(item)
        return
    undone = item["state"] == "reverted"
    state = "undone" if undone else item["state"]
    say(f"{item['name']}: {item['failures']} failures   [{item['correction']}, {state}]")
    say(f"place: {item['target'] or 'no place'} ({_shares(item['probabilities'])})")
    say(f"why: {item['reason']}")
    say(f"proposed: {item['summary']}")
    if item["replay"]:
        say(f"replay: {item['replay']['sentence']}   [filmroom replay {item['correction']} --show]")
    if item["refused"]:
        say(f"not applied by itself: {item['refused']}")
    if item["hold"]:
        say(f"since it was applied: {recurrence(Hold(**item['hold']), undone=undone)}")
    if item["needs_answer"]:
        say(f"it needs from you: {item['needs_answer']}")
    _say_examples(item["examples"])
    say()
    say("evidence (not measured ones are left out):")
    for name, value in item["evidence"].items():
        if value is not None:
            say(f"  {name:22s} {value:.3g}")
    say(f"shortest way to a certificate: {item['to_yes']}")
    say_ways(ways)
    if item["target"] is None:
        say(f"next: filmroom review reroute {item['correction']} --to PLACE --answer '...', or reject it")
        return
    say(f"next: filmroom review approve {item['correction']}" + (" --answer '...'" if item["needs_answer"] else ""))


@group.command()
def approve(
    context: typer.Context, correction: str, answer: Answer = None, reason: Reason = "", as_json: Json = False
) -> None:
    """Accept the correction where it was routed. It is applied at once unless a named check refuses."""
    from flows.opinions import give_opinion

    session: Session = context.obj
    with session.workspace() as workspace:
        done = give_opinion(workspace, correction, "approve", answer=read_answer(answer), reason=reason)
    _say_verdict(done.model_dump(mode="json"), as_json)


@group.command()
def reroute(
    context: typer.Context,
    correction: str,
    to: Annotated[str, typer.Option(help="context, memory, tooling or weights.")],
    answer: Answer = None,
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Send the correction to another place, and apply it there if nothing is missing."""
    from flows.opinions import give_opinion

    if to not in TARGETS:
        raise typer.BadParameter(f"{to!r} is not one of {', '.join(TARGETS)}", param_hint="--to")
    session: Session = context.obj
    with session.workspace() as workspace:
        done = give_opinion(workspace, correction, "reroute", to=to, answer=read_answer(answer), reason=reason)
    _say_verdict(done.model_dump(mode="json"), as_json)


@group.command()
def reject(context: typer.Context, correction: str, reason: Reason = "", as_json: Json = False) -> None:
    """Nothing is to be corrected here."""
    from flows.opinions import give_opinion

    session: Session = context.obj
    with session.workspace() as workspace:
        done = give_opinion(workspace, correction, "reject", reason=reason)
    _say_verdict(done.model_dump(mode="json"), as_json)


@group.command()
def defer(context: typer.Context, correction: str, reason: Reason = "", as_json: Json = False) -> None:
    """Not now: it stays in the queue."""
    from flows.opinions import give_opinion

    session: Session = context.obj
    with session.workspace() as workspace:
        done = give_opinion(workspace, correction, "defer", reason=reason)
    _say_verdict(done.model_dump(mode="json"), as_json)


def undo(
    context: typer.Context,
    id: Annotated[
        str, typer.Argument(help="A change, correction, review, version (of a model or the router) or release.")
    ],
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Take a change back, whichever of the four places it was in."""
    from flows.opinions import take_back

    session: Session = context.obj
    with session.workspace() as workspace:
        done = take_back(workspace, id, reason=reason)
    if as_json:
        say_json(done.model_dump(mode="json"))
        return
    if done.rests_on_it:
        say(f"rested on it, and stale now: {', '.join(done.rests_on_it)}")
    say(f"taken back: {', '.join(done.undone)}; live is {done.release}")
    say(f"next: {done.next}")


def _say_examples(examples: list[dict[str, Any]]) -> None:
    for example in examples:
        say()
        say(f"  {example['trace']}  user {example['user'] or 'unknown'}  failure {example['failure']}")
        for line in example["steps"]:
            say(f"    {line}")
        for line in example["feedback"]:
            say(f"    said: {line}")


def _say_verdict(done: dict[str, Any], as_json: bool) -> None:
    if as_json:
        say_json(done)
        return
    say(f"{done['correction']}: {done['state']}" + (f", change {done['change']}" if done["change"] else ""))
    if done["version"]:
        say(f"version {done['version']}: {'live' if done['live'] else 'not live yet'}")
    say(f"{done['next']}")
    if done["undo"]:
        say(f"to take it back: {done['undo']}")


def _shares(probabilities: dict[str, float]) -> str:
    ordered = sorted(probabilities.items(), key=lambda pair: -pair[1])
    named = ((name if name != "none" else "no place", share) for name, share in ordered if share >= 0.005)
    return ", ".join(f"{name} {share:.2f}" for name, share in named)
