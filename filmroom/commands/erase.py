"""`erase`: a user's texts and memories go; ids and decisions stay."""

from typing import TYPE_CHECKING, Annotated

import typer

from filmroom.session import Json, Session, note, say, say_json

if TYPE_CHECKING:
    from store.erasure import Erasure


def register(app: typer.Typer) -> None:
    app.command()(erase)


def erase(
    context: typer.Context,
    user: Annotated[str, typer.Argument(help="The user, as the log names them.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
    as_json: Json = False,
) -> None:
    """Remove all texts and memories of a user. Shows what goes first, and asks; it cannot be undone."""
    from flows.judge import forget_opinions
    from store.database import wall_clock
    from store.erasure import erase as take_away
    from store.erasure import preview
    from store.redaction import redactor_for

    session: Session = context.obj
    with session.store() as store:
        names = tuple(dict.fromkeys((user, redactor_for(store, session.settings().policy).text(user)[0])))
        with store.read() as connection:
            found = preview(connection, store.project, names)
        known = not _is_nothing(found)
        if not as_json:
            _say(user, found)
        sure = yes or (not as_json and known and typer.confirm("Erase it?"))
        left = None
        if sure:
            with store.write() as connection:
                found = take_away(connection, store.project, names, at_us=wall_clock(), actor=session.actor)
            left = store.scrub()
            forget_opinions(session.settings().home)
    if as_json:
        say_json({"erased": sure and known, **found.model_dump(mode="json"), "left": left})
        return
    if not (sure and known):
        say("nothing was erased")
        return
    say("erased; a file that is read again does not bring it back. Erase it in your own log too")
    if left is not None:
        note(f"not everywhere yet: {left}")


def _is_nothing(found: "Erasure") -> bool:
    return not (found.traces or found.feedback or found.facts or found.quarantined)


def _say(user: str, found: "Erasure") -> None:
    if _is_nothing(found):
        say(f"the store knows nothing of {user}")
        return
    say(f"of {user}: {found.traces} traces with {found.spans} spans, {found.feedback} feedback, {found.facts} facts in memory, "
        f"{found.quarantined} pieces in quarantine, {found.training_rows} rows of training data")  # fmt: skip
    for version in found.versions:
        say(f"  {version} was trained on them, and stays as it is: the next retrain learns without them")
    for version in found.quoted_in:
        say(f"  {version} quotes them: the words are taken out; see `filmroom live` for what to write anew")
