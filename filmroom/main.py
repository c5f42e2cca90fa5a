"""The command line. Each command imports what it needs when it runs, so that `--help` and `ingest` stay quick."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from filmroom.commands import (
    audit,
    compare,
    edit,
    erase,
    export,
    first_day,
    ingest,
    inspect,
    maintain,
    pull_request,
    quarantine,
    replay,
    review,
    router,
    schedule,
    serve,
    trust,
    turn,
    user,
)
from filmroom.session import Session
from store.errors import FilmroomError

app = typer.Typer(
    name="filmroom",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Picks failures up from the production log and puts each correction where it holds: "
    "context, memory, tooling or weights.",
)


@app.callback()
def options(
    context: typer.Context,
    settings: Annotated[Path | None, typer.Option(help="Settings file; default: filmroom.toml here.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
) -> None:
    context.obj = Session(settings_file=settings, debug=debug)


for module in (
    first_day,
    ingest,
    turn,
    quarantine,
    erase,
    replay,
    review,
    edit,
    pull_request,
    inspect,
    compare,
    router,
    audit,
    trust,
    maintain,
    schedule,
    serve,
    user,
    export,
):
    module.register(app)


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns 0 done, 1 failed (one line on stderr), 2 wrong usage."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        app(args=given)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except KeyboardInterrupt:
        return _failed("interrupted: run the command again to go on")
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        if "--debug" in given:
            raise
        return _failed(f"{error.filename or 'the output'}: {error.strerror or error}")
    except FilmroomError as error:
        if "--debug" in given:
            raise
        return _failed(str(error))
    return 0


def _failed(message: str) -> int:
    typer.echo("filmroom: " + " ".join(message.split()), err=True)
    return 1


def entry() -> None:
    """What the `filmroom` script calls."""
    sys.exit(main())


if __name__ == "__main__":
    entry()
