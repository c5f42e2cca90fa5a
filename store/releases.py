"""Versions, releases and the one live pointer of a project, moved by compare-and-swap."""

from typing import Any

from sqlalchemy import Connection, Row, select, update

from store.database import insert_or_ignore
from store.errors import LiveMoved, NotFound
from store.records import Release, Version
from store.tables import live, releases, versions

EMPTY_CONTEXT: dict[str, Any] = {"rules": []}
EMPTY_TOOLING: dict[str, Any] = {"policies": [], "tickets": []}


def put_version(connection: Connection, value: Version) -> str:
    """Keep a version; the same content is the same version. Returns its id."""
    insert_or_ignore(connection, versions, [{"id": value.id, **value.model_dump(mode="json")}])
    return value.id


def version(connection: Connection, version_id: str) -> Version:
    """The version with this id. Raises NotFound."""
    row = connection.execute(select(versions).where(versions.c.id == version_id)).first()
    if row is None:
        raise NotFound(f"no version {version_id}: `filmroom history` and `filmroom release` show those there are")
    return Version(**{name: value for name, value in row._mapping.items() if name != "id"})


def live_release(connection: Connection, project: str) -> Release:
    """The release that is served. Raises NotFound before the first."""
    statement = select(releases).join(live, live.c.release_id == releases.c.id).where(live.c.project == project)
    row = connection.execute(statement).first()
    if row is None:
        raise NotFound(f"project {project!r} has no release yet: run `filmroom init`")
    return _release(row)


def release(connection: Connection, release_id: str) -> Release:
    """The release with this id. Raises NotFound."""
    row = connection.execute(select(releases).where(releases.c.id == release_id)).first()
    if row is None:
        raise NotFound(f"no release {release_id}: `filmroom release` lists them")
    return _release(row)


def releases_of(connection: Connection, project: str, limit: int = 50) -> list[Release]:
    """The project's releases, newest first."""
    statement = select(releases).where(releases.c.project == project).order_by(releases.c.number.desc()).limit(limit)
    return [_release(row) for row in connection.execute(statement)]


def found_project(connection: Connection, project: str, *, actor: str, now_us: int) -> Release:
    """The project's live release; the empty one is made where there is none yet."""
    if connection.execute(select(live.c.project).where(live.c.project == project)).first() is not None:
        return live_release(connection, project)
    context = Version(project=project, target="context", content=EMPTY_CONTEXT, created_us=now_us)
    tooling = Version(project=project, target="tooling", content=EMPTY_TOOLING, created_us=now_us)
    first = Release(
        project=project,
        context=put_version(connection, context),
        tooling=put_version(connection, tooling),
        memory=0,
        number=0,
        actor=actor,
        reason="the first release: nothing corrected yet",
        created_us=now_us,
    )
    _put_release(connection, first)
    insert_or_ignore(connection, live, [{"project": project, "release_id": first.id, "moved_us": now_us}])
    return first


def move_live(connection: Connection, current: Release, following: Release) -> None:
    """Serve `following` in place of `current`. Raises LiveMoved when another process moved the pointer first."""
    _put_release(connection, following)
    moved = connection.execute(
        update(live)
        .where(live.c.project == current.project, live.c.release_id == current.id)
        .values(release_id=following.id, moved_us=following.created_us)
    ).rowcount
    if moved != 1:
        raise LiveMoved


def _put_release(connection: Connection, value: Release) -> None:
    insert_or_ignore(connection, releases, [{"id": value.id, **value.model_dump(mode="json")}])


def _release(row: Row[Any]) -> Release:
    return Release(**{name: value for name, value in row._mapping.items() if name != "id"})
