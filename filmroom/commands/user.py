"""`user`: who may log in to the console."""

from typing import Annotated, Any

import typer

from filmroom.session import Json, Session, say, say_json, table

group = typer.Typer(no_args_is_help=True, help="Who may log in to the console: add, list, link, role, disable.")

Name = Annotated[str, typer.Argument(help="The user's name.")]


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="user")


@group.command()
def add(
    context: typer.Context,
    name: Name,
    role: Annotated[str, typer.Option(help="viewer, reviewer or admin.")] = "reviewer",
    as_json: Json = False,
) -> None:
    """Make a user, and a link that lets them in once to choose a password."""
    from store.users import ROLES, add_user, make_link

    if role not in ROLES:
        raise typer.BadParameter(f"{role!r} is not one of {', '.join(ROLES)}", param_hint="--role")
    session: Session = context.obj
    with session.workspace() as workspace:
        with workspace.store.write() as connection:
            found = add_user(connection, workspace.project, name, role, now_us=workspace.clock())
            code = make_link(connection, workspace.project, now_us=workspace.clock(), user_id=found.id)
        _note(workspace, session, "user made", name)
    _say_link(session, name, code, as_json=as_json)


@group.command()
def link(context: typer.Context, name: Name, as_json: Json = False) -> None:
    """A new link for someone who forgot their password; it works once, for a day."""
    from store.users import make_link

    session: Session = context.obj
    with session.workspace() as workspace:
        found = _named(workspace, name)
        with workspace.store.write() as connection:
            code = make_link(connection, workspace.project, now_us=workspace.clock(), user_id=found.id)
        _note(workspace, session, "user link", name)
    _say_link(session, name, code, as_json=as_json)


@group.command()
def role(
    context: typer.Context, name: Name, role: Annotated[str, typer.Argument(help="viewer, reviewer or admin.")]
) -> None:
    """Give a user another role; they are logged out."""
    from store.users import ROLES, change_user

    if role not in ROLES:
        raise typer.BadParameter(f"{role!r} is not one of {', '.join(ROLES)}")
    session: Session = context.obj
    with session.workspace() as workspace:
        found = _named(workspace, name)
        with workspace.store.write() as connection:
            change_user(connection, found, role=role)
        _note(workspace, session, "user role", name)
    say(f"{name}: {role}")


@group.command()
def disable(context: typer.Context, name: Name) -> None:
    """Let a user in no more; what they did stays in history. `link` lets nobody in who is disabled; `enable` does."""
    _enabled(context.obj, name, enabled=False)


@group.command()
def enable(context: typer.Context, name: Name) -> None:
    """Let a user in again."""
    _enabled(context.obj, name, enabled=True)


@group.command(name="list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """Who may log in."""
    from store.users import users_of

    session: Session = context.obj
    with session.store() as store, store.read() as connection:
        found = users_of(connection, store.project)
    if as_json:
        say_json([{"user": each.id, **each.model_dump(exclude={"id", "password"})} for each in found])
        return
    if not found:
        say("nobody can log in yet. next: filmroom user add NAME --role admin")
        return
    table(["user", "name", "role", "", ""], [
        [each.id, each.name, each.role, "" if each.enabled else "disabled", "" if each.password else "no password yet"]
        for each in found
    ])  # fmt: skip


def _enabled(session: Session, name: str, *, enabled: bool) -> None:
    from store.users import change_user

    with session.workspace() as workspace:
        found = _named(workspace, name)
        with workspace.store.write() as connection:
            change_user(connection, found, enabled=enabled)
        _note(workspace, session, "user enable" if enabled else "user disable", name)
    say(f"{name}: {'enabled' if enabled else 'disabled'}")


def _named(workspace: Any, name: str) -> Any:
    from store.errors import NotFound
    from store.users import user_named

    with workspace.store.read() as connection:
        found = user_named(connection, workspace.project, name)
    if found is None:
        raise NotFound(f"no user {name}: `filmroom user list` shows those there are")
    return found


def _note(workspace: Any, session: Session, action: str, name: str) -> None:
    from store.audit import record_access

    with workspace.store.write() as connection:
        record_access(connection, workspace.project, at_us=workspace.clock(), actor=session.actor, action=action,
                      subject=name, address="terminal")  # fmt: skip


def _say_link(session: Session, name: str, code: str, *, as_json: bool) -> None:
    from filmroom.served_address import served_address

    settings = session.settings()
    console, served = settings.console, served_address(settings.home)
    host = "127.0.0.1" if console.host in ("0.0.0.0", "::") else console.host  # noqa: S104 -- compared, not listened on
    url = f"{served or f'http://{host}:{console.port}'}/login/once/{code}"
    if as_json:
        say_json({"name": name, "link": url})
        return
    say(f"{name} logs in with this link, once, within a day, while `filmroom serve` runs: {url}")
