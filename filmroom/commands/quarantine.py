"""`quarantine`: what could not be read, and what to do with it."""

from typing import Annotated

import typer

from filmroom.session import Json, Session, say, say_json, table, time_text
from store.errors import NotFound

group = typer.Typer(no_args_is_help=True, help="What could not be read: list, show, discard.")


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="quarantine")


@group.command(name="list")
def list_(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help="How many to show.")] = 50,
    offset: Annotated[int, typer.Option(min=0, help="How many to leave out before.")] = 0,
    as_json: Json = False,
) -> None:
    """The pieces in quarantine, the newest first: source file, line, reason."""
    from store.quarantine import quarantine_size, quarantined

    session: Session = context.obj
    with session.store() as store:
        found = quarantined(store, limit, offset)
        with store.read() as connection:
            size = quarantine_size(connection, store.project)
    if as_json:
        say_json({"quarantined": size, "offset": offset, "pieces": found})
        return
    if not found:
        say(f"nothing is in quarantine{f' beyond {offset}' if size else ''}")
        return
    table(
        ["quarantine", "since", "file", "line", "reason"],
        [
            [each["quarantine"], time_text(each["at_us"]), each["path"], str(each["line"] or "-"), each["reason"]]
            for each in found
        ],
    )
    last = offset + len(found)
    say(f"{offset + 1} to {last} of {size}" + (f"; more: --offset {last}" if last < size else ""))
    say("next: mend what is wrong (the file, or the settings), then filmroom ingest --retry")


@group.command()
def show(context: typer.Context, id: str, as_json: Json = False) -> None:
    """One piece with its text, as it was read."""
    from store.quarantine import piece, texts_of

    session: Session = context.obj
    with session.store() as store, store.read() as connection:
        found = piece(connection, store.project, id)
        if found is None:
            raise NotFound(f"nothing in quarantine is called {id}: `filmroom quarantine list` shows what is")
        text = texts_of(connection, [id]).get(id, "")
    if as_json:
        say_json({"quarantine": id, **found.model_dump(exclude={"id"}), "raw": text})
        return
    say(f"{found.path}:{found.line or '-'}, read as {found.format or 'no known format'}: {found.reason}")
    say(text or "the file was rejected as a whole")


@group.command()
def discard(
    context: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(help="Ids of pieces that are not wanted.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that is in quarantine.")] = False,
    reason: Annotated[str, typer.Option(help="Why; it is kept in the history.")] = "",
    as_json: Json = False,
) -> None:
    """Take pieces out of quarantine without reading them. Their text is gone then."""
    from store.database import wall_clock
    from store.ledger import record_event
    from store.quarantine import pieces_of, release

    if bool(ids) == everything:
        raise typer.BadParameter("name the pieces to discard, or all of them with --all")
    session: Session = context.obj
    with session.store() as store, store.write() as connection:
        known = [each.id for each in pieces_of(connection, store.project)]
        unknown = sorted(set(ids or ()) - set(known))
        if unknown:
            raise NotFound(f"nothing in quarantine is called {unknown[0]}: `filmroom quarantine list` shows what is")
        gone = ids or known
        release(connection, store.project, gone)
        for id_ in gone:
            record_event(connection, store.project, at_us=wall_clock(), actor=session.actor, event="discarded",
                         subject=id_, reason=reason)  # fmt: skip
    if as_json:
        say_json({"discarded": len(gone)})
        return
    say(f"{len(gone)} discarded")
