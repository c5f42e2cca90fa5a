"""`export`: what filmroom knows, for programs and people that do not ask it over HTTP."""

from pathlib import Path
from typing import Annotated, Any

import typer

from filmroom.session import Json, Session, note, say, say_json

group = typer.Typer(
    no_args_is_help=True, help="Write the live release, its rules, a ticket, or corrections as training data to files."
)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="export")


@group.command()
def release(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Folder that the running program reads.")],
    memory: Annotated[
        bool, typer.Option("--memory", help="Also everybody's facts: personal data, which `erase` does not reach.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the live release to a folder: release.json, context.md, models. A reader never sees half of it."""
    from filmroom.release_folder import export_release
    from filmroom.signing_key import signing_key
    from flows.workspace import read_tools
    from store.database import wall_clock

    session: Session = context.obj
    settings = session.settings()
    with session.store() as store, store.read() as connection:
        done = export_release(
            connection, store.project, folder, schemas=read_tools(settings), key=signing_key(settings.home),
            artifacts=settings.home / ".filmroom" / "artifacts", now_us=wall_clock(), memory=memory,
        )  # fmt: skip
    if as_json:
        say_json({"folder": str(folder), "release": done["release"], "number": done["number"]})
        return
    say(f"{folder}: release {done['release']} (number {done['number']})")


@group.command(name="context")
def context_(
    context: typer.Context,
    intent: Annotated[str | None, typer.Option(help="Only the rules that hold for this intent.")] = None,
    channel: Annotated[str | None, typer.Option(help="Only the rules that hold in this channel.")] = None,
    as_json: Json = False,
) -> None:
    """Print the live rules as a markdown block for a prompt."""
    from filmroom.release_document import release_document
    from filmroom.release_folder import context_block

    session: Session = context.obj
    with session.store() as store, store.read() as connection:
        document = release_document(connection, store.project, {})
    text = context_block(document, intent=intent, channel=channel)
    if as_json:
        say_json({"release": document["release"], "version": document["context"]["version"], "text": text})
    elif text:
        say(text)
    else:
        note("no rule is live here. next: filmroom review list")


@group.command()
def ticket(
    context: typer.Context,
    id: Annotated[str, typer.Argument(help="`tkt_...`, as `filmroom why` and the review name it.")],
    to: Annotated[Path | None, typer.Option(help="Folder for the two files; default: print the markdown.")] = None,
    as_json: Json = False,
) -> None:
    """A ticket for a tool's owner: markdown, and a pytest file that fails until the tool is mended."""
    from filmroom.release_folder import write_file
    from filmroom.ticket_files import test_file_name, ticket_markdown, ticket_test

    session: Session = context.obj
    with session.store() as store:
        found = live_ticket(store, id)
    markdown, test = ticket_markdown(found), ticket_test(found)
    if to is not None:
        to.mkdir(parents=True, exist_ok=True)
        write_file(to / f"{found.id}.md", markdown.encode())
        write_file(to / test_file_name(found), test.encode())
    if as_json:
        say_json(
            {"ticket": found.id, "tool": found.tool, "resolved": found.resolved, "markdown": markdown, "test": test}
        )
    elif to is None:
        say(markdown)
    else:
        say(f"{to / f'{found.id}.md'}, {to / test_file_name(found)}")


@group.command()
def card(
    context: typer.Context,
    id: Annotated[str, typer.Argument(help="`ver_...` of a model, as `filmroom release` and `history` name it.")],
    as_json: Json = False,
) -> None:
    """A model version's card in markdown: its data, the arms tried, the gate's table, where it fails."""
    from flows.model_card import card_of
    from store.errors import NotAllowed
    from store.releases import version

    session: Session = context.obj
    artifacts = session.settings().home / ".filmroom" / "artifacts"
    with session.store() as store, store.read() as connection:
        found = version(connection, id)
        if found.target != "weights" or found.model is None:
            raise NotAllowed(f"{id} is a version of {found.target}: only models have cards")
        text = card_of(connection, artifacts, found)
    if as_json:
        say_json({"version": id, "model": found.model, "markdown": text})
    else:
        say(text)


@group.command()
def data(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Folder for the rows and their provenance.")],
    as_: Annotated[str, typer.Option("--as", help="trl-sft, trl-dpo, trl-kto, openai, openai-dpo, together, together-dpo, "
                                     "datasets or csv.")],
    model: Annotated[str | None, typer.Option(help="The training rows of this model, in place of the corrections.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Also corrections that nobody reviewed yet.")] = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Corrections, or a model's training rows, as training data of another system, each row with where it comes from."""
    from filmroom.training_export import ACCEPTED, EVERY, corrections_as_examples, dataset_as_examples, write_training
    from models.training_formats import FORMATS

    if as_ not in FORMATS:
        raise typer.BadParameter(f"{as_!r} is not one of {', '.join(FORMATS)}", param_hint="--as")
    session: Session = context.obj
    with session.store() as store, store.read() as connection:
        if model is None:
            examples = list(corrections_as_examples(connection, store.project, states=EVERY if every else ACCEPTED))
        else:
            examples = list(dataset_as_examples(connection, store.project, model))
    done = write_training(folder, as_, examples)
    if as_json:
        say_json(done)
        return
    say(f"{done['file']}: {done['rows']} rows, {folder / 'provenance.jsonl'} says where each comes from")
    if done["left_out"]:
        note(f"left out {done['left_out']}: what was answered instead is not known")
    if not done["rows"]:
        note("no correction is approved that says what would have been right. next: filmroom review list")


def live_ticket(store: Any, id_: str) -> Any:
    """The ticket of the live release. Raises NotFound, which lists those there are."""
    from store.errors import NotFound
    from store.records import Ticket
    from store.releases import live_release, version

    with store.read() as connection:
        content: Any = version(connection, live_release(connection, store.project).tooling).content
    tickets = {each["id"]: each for each in content["tickets"]}
    if id_ not in tickets:
        raise NotFound(f"no ticket {id_}; there are: {', '.join(tickets) or 'none'}")
    return Ticket(**tickets[id_])
