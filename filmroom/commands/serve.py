"""`serve`: the console, traces and feedback in over HTTP, and the live release out."""

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
    """Open the console, take traces (OTLP) and feedback in, and hand the live release out, until Ctrl-C."""
    from filmroom.web.server import serve as listen
    from flows.workspace import open_workspace

    session: Session = context.obj
    settings = session.settings()
    console = settings.console

    def started(url: str, code: str | None) -> None:
        login = None if code is None else f"{url}/login/once/{code}"
        if as_json:
            say_json({"url": url, "traces": f"{url}/v1/traces", "feedback": f"{url}/v1/feedback", "login": login})
            return
        say(f"console at {url}; traces at {url}/v1/traces, feedback at {url}/v1/feedback; Ctrl-C ends it")
        if login is not None:
            say(f"nobody can log in yet; this link makes the first admin, once, within a day: {login}")

    with open_workspace(settings, actor="console") as workspace:
        try:
            listen(workspace, host=host or console.host, port=console.port if port is None else port, started=started)
        except KeyboardInterrupt:
            return
