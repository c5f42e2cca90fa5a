"""`serve`: takes traces and feedback in over HTTP, and hands the live release out."""

from typing import Annotated

import typer

from filmroom.session import Json, Session, say, say_json


def register(app: typer.Typer) -> None:
    app.command()(serve)


def serve(
    context: typer.Context,
    host: Annotated[str | None, typer.Option(help="Address to listen on; default: this machine alone.")] = None,
    port: Annotated[int | None, typer.Option(help="0 takes a free one.", min=0, max=65535)] = None,
    as_json: Json = False,
) -> None:
    """Take traces (OTLP) and feedback in over HTTP, and hand the live release out, until Ctrl-C."""
    from filmroom.web.server import serve as listen

    session: Session = context.obj
    settings = session.settings()
    console = settings.console

    def started(url: str) -> None:
        if as_json:
            say_json({"url": url, "traces": f"{url}/v1/traces", "feedback": f"{url}/v1/feedback"})
            return
        say(f"listening on {url}: traces at {url}/v1/traces, feedback at {url}/v1/feedback; Ctrl-C ends it")

    with session.store() as store:
        try:
            listen(
                settings, store, host=host or console.host, port=console.port if port is None else port, started=started
            )
        except KeyboardInterrupt:
            return
