"""The console over HTTP: who may do what, and what it shows and does."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from filmroom.console.app import PAGES
from filmroom.console.cookies import SESSION, Signer
from filmroom.console.limits import ATTEMPTS, LoginLimit
from filmroom.console.passwords import hash_password, is_password
from filmroom.main import main
from filmroom.served_address import served_at
from filmroom.web.access import Access, access_of
from filmroom.web.server import stored_tokens
from flows.workspace import Workspace
from store.audit import audit_page
from store.errors import NotAllowed, SettingsError
from store.settings import ConsoleSection
from store.tokens import make_token
from store.users import Role, make_link
from tests.console_home import PASSWORD, client, console, correction_in, person, reviewing

ROOT = Path(__file__).resolve().parent.parent
ROLES: tuple[Role, ...] = ("viewer", "reviewer", "admin")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with reviewing(tmp_path_factory.mktemp("console"), tools=3) as opened:
        yield opened


@pytest.fixture(scope="module")
def base(workspace: Workspace) -> Iterator[str]:
    with console(workspace) as url:
        yield url


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace that this test alone changes."""
    with reviewing(tmp_path, tools=2) as opened:
        yield opened


def visit(base: str) -> httpx.Client:
    return httpx.Client(base_url=base, trust_env=False, timeout=60)


def csrf(page: httpx.Response) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', page.text)
    assert found
    return found[1]


def address(path: str, workspace: Workspace) -> str:
    """The path with something real in place of its parameters."""
    real = {"{id}": correction_in(workspace, "tooling"), "{verdict}": "defer", "{code}": "x", "{verb}": "pause",
            "{name}": "audit", "{what}": "input"}  # fmt: skip
    for name, value in real.items():
        path = path.replace(name, value)
    return path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.method} {page.path}")
@pytest.mark.parametrize("role", [None, *ROLES])
def test_a_page_lets_in_its_role_and_no_other(page: Any, role: Role | None, workspace: Workspace, base: str) -> None:
    """Every page x every role. A change is sent without its token, so that nothing is changed: 403 says so too."""
    cookies = {} if role is None else {SESSION: person(workspace, f"{role}1", role)}
    with httpx.Client(base_url=base, trust_env=False, timeout=60, cookies=cookies) as visitor:
        answer = visitor.request(page.method, address(page.path, workspace))
    if page.role is None:
        assert answer.status_code not in (403, 500)
    elif role is None:
        assert (answer.status_code, answer.headers["location"][:6]) == (303, "/login")
    elif ROLES.index(role) < ROLES.index(page.role):
        assert answer.status_code == 403
        assert f"takes the role {page.role}" in answer.text
    elif page.method == "POST":
        assert answer.status_code == 403
        assert "not from this console" in answer.text
    else:
        assert answer.status_code in (200, 303, 404, 409)  # 409: no schedule runs here


EXPECTED = {
    "viewer": {"GET /me", "POST /me/password", "GET /home", "GET /corrections", "GET /corrections/counts",
               "GET /corrections/{id}", "GET /agreement", "GET /filters", "GET /changes", "GET /changes/{id}",
               "GET /releases", "GET /releases/{id}", "GET /why/{id}", "GET /clusters/{id}", "GET /retrains",
               "GET /retrains/{id}", "GET /versions/{id}", "GET /compare", "GET /traces", "GET /traces/{id}",
               "GET /schedules", "GET /schedules/next", "GET /schedules/runs/{id}/logs", "GET /settings"},
    "reviewer": {"POST /corrections/bulk", "POST /corrections/bulk/preview", "POST /corrections/reviewers",
                 "POST /corrections/{id}/approve", "POST /corrections/{id}/reroute", "POST /corrections/{id}/reject",
                 "POST /corrections/{id}/defer", "POST /corrections/{id}/claim", "DELETE /corrections/{id}/claim",
                 "POST /undo", "POST /filters", "DELETE /filters/{id}", "POST /releases/{id}/rollback"},
    "admin": {"POST /schedules/run", "POST /schedules/pause", "POST /schedules/resume", "POST /schedules/cron",
              "POST /schedules/interval", "GET /users", "POST /users", "PATCH /users/{id}", "POST /users/{id}/link",
              "GET /tokens", "POST /tokens", "DELETE /tokens/{id}", "GET /audit", "GET /export/{name}"},
}  # fmt: skip
"""Endpoint of the API to the least role that may call it."""


def endpoints(base: str) -> set[str]:
    schema = httpx.get(f"{base}/api/openapi.json", trust_env=False).json()
    return {f"{method.upper()} {path}" for path, methods in schema["paths"].items() for method in methods}


def test_every_endpoint_has_its_role_written_down(base: str) -> None:
    assert endpoints(base) == set.union(*EXPECTED.values())


@pytest.mark.parametrize("needed", ROLES)
@pytest.mark.parametrize("role", [None, *ROLES])
def test_an_endpoint_lets_in_its_role_and_no_other(
    needed: Role, role: Role | None, workspace: Workspace, base: str
) -> None:
    """Every endpoint x every role; changes are sent without their token, which is refused after the role is looked at."""
    cookies = {} if role is None else {SESSION: person(workspace, f"{role}1", role)}
    wrong = {}
    with httpx.Client(base_url=base, trust_env=False, timeout=60, cookies=cookies) as visitor:
        for endpoint in sorted(EXPECTED[needed]):
            method, path = endpoint.split(" ")
            answer = visitor.request(method, "/api" + address(path, workspace), json={} if method != "GET" else None)
            told = answer.json().get("message", "") if answer.status_code >= 400 else ""
            if role is None:
                right = answer.status_code == 401
            elif ROLES.index(role) < ROLES.index(needed):
                right = answer.status_code == 403 and f"takes the role {needed}" in told
            elif method == "GET":
                right = answer.status_code in (200, 404, 409, 422)
            else:
                right = answer.status_code == 403 and "X-CSRF-Token" in told
            if not right:
                wrong[endpoint] = (answer.status_code, told)
    assert wrong == {}


def test_every_answer_carries_the_policy_and_no_inline_script_or_style(workspace: Workspace, base: str) -> None:
    with client(workspace, base, "admin1", "admin") as admin:
        pages = [admin.get(page.path) for page in PAGES if page.method == "GET" and "{" not in page.path]
        pages.append(admin.get(f"/review/{correction_in(workspace, 'tooling')}"))
        pages.append(admin.get("/there-is-no-such-page"))
    for page in pages:
        if page.status_code == 303:
            continue
        policy = page.headers["content-security-policy"]
        assert ("unsafe" not in policy, "default-src 'none'" in policy) == (True, True)
        assert re.findall(r"<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=|javascript:", page.text) == []


def test_nobody_is_let_in_with_a_wrong_password_or_a_made_up_session(workspace: Workspace, base: str) -> None:
    person(workspace, "eva", "viewer")
    with visit(base) as visitor:
        wrong = visitor.post("/login", data={"name": "eva", "password": "not the password"})
        unknown = visitor.post("/login", data={"name": "nobody", "password": "not the password"})
        visitor.cookies.set(SESSION, Signer("0" * 64).sign("session", "made up"))
        made_up = visitor.get("/review")
    assert (wrong.status_code, unknown.status_code, made_up.status_code) == (401, 401, 303)
    assert "name or password is wrong" in wrong.text
    assert "name or password is wrong" in unknown.text


def test_the_right_password_leads_to_the_page_that_was_asked_for(workspace: Workspace, base: str) -> None:
    person(workspace, "eva", "viewer")
    with visit(base) as visitor:
        asked = visitor.get("/review?target=memory")
        entered = visitor.post("/login", data={"name": "eva", "password": PASSWORD, "next": "/review?target=memory"})
        cookie = entered.headers["set-cookie"]
        seen = visitor.get(entered.headers["location"])
    assert asked.headers["location"] == "/login?next=%2Freview%3Ftarget%3Dmemory"
    assert (entered.status_code, entered.headers["location"]) == (303, "/review?target=memory")
    assert ("HttpOnly" in cookie, "SameSite=lax" in cookie, seen.status_code) == (True, True, 200)


@pytest.mark.parametrize("wanted", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_a_login_leads_to_no_other_site(wanted: str, workspace: Workspace, base: str) -> None:
    person(workspace, "eva", "viewer")
    with visit(base) as visitor:
        entered = visitor.post("/login", data={"name": "eva", "password": PASSWORD, "next": wanted})
    assert entered.headers["location"] == "/"


def test_ten_wrong_passwords_close_the_door_for_that_name(own: Workspace) -> None:
    person(own, "eva", "viewer")
    with console(own) as url, visit(url) as visitor:
        tried = [visitor.post("/login", data={"name": "eva", "password": f"wrong {n}"}) for n in range(ATTEMPTS + 1)]
        right = visitor.post("/login", data={"name": "eva", "password": PASSWORD})
    assert [each.status_code for each in tried] == [401] * ATTEMPTS + [429]
    assert right.status_code == 429


def test_the_door_opens_again_after_five_minutes() -> None:
    now = [0.0]
    limit = LoginLimit(lambda: now[0])
    for _ in range(ATTEMPTS):
        limit.failed("name eva")
    before = limit.is_over("name eva")
    now[0] = 301.0
    assert (before, limit.is_over("name eva"), limit.is_over("name ann")) == (True, False, False)


def test_a_link_makes_the_first_admin_once(own: Workspace) -> None:
    with own.store.write() as connection:
        code = make_link(connection, own.project, now_us=own.clock())
    fields = {"name": "ann", "password": PASSWORD, "again": PASSWORD}
    with console(own) as url, visit(url) as visitor:
        looked = [visitor.get(f"/login/once/{code}").status_code for _ in range(2)]
        entered = visitor.post(f"/login/once/{code}", data=fields)
        role = visitor.get("/api/me").json()["role"]
        again = visitor.post(f"/login/once/{code}", data={**fields, "name": "eve"})
    assert (looked, entered.status_code, role, again.status_code) == ([200, 200], 303, "admin", 409)


def test_a_short_password_is_refused_and_the_link_still_works(own: Workspace) -> None:
    with own.store.write() as connection:
        code = make_link(connection, own.project, now_us=own.clock())
    with console(own) as url, visit(url) as visitor:
        short = visitor.post(f"/login/once/{code}", data={"name": "ann", "password": "short", "again": "short"})
        differ = visitor.post(f"/login/once/{code}", data={"name": "ann", "password": PASSWORD, "again": "other"})
        entered = visitor.post(f"/login/once/{code}", data={"name": "ann", "password": PASSWORD, "again": PASSWORD})
    assert (short.status_code, differ.status_code, entered.status_code) == (409, 409, 303)


def test_a_logout_ends_the_session(workspace: Workspace, base: str) -> None:
    with client(workspace, base, "viewer2", "viewer") as visitor:
        cookie = visitor.cookies[SESSION]
        visitor.post("/logout", data={"csrf": csrf(visitor.get("/"))})
    with httpx.Client(base_url=base, trust_env=False, cookies={SESSION: cookie}) as later:
        assert later.get("/review").status_code == 303


def test_a_form_of_another_session_or_site_is_refused(workspace: Workspace, base: str) -> None:
    id_ = correction_in(workspace, "tooling")
    with client(workspace, base, "rob") as rob, client(workspace, base, "eve2") as eve:
        stolen = csrf(eve.get(f"/review/{id_}"))
        own_token = csrf(rob.get(f"/review/{id_}"))
        other = rob.post(f"/review/{id_}/reject", data={"csrf": stolen})
        cross = rob.post(f"/review/{id_}/reject", data={"csrf": own_token}, headers={"sec-fetch-site": "cross-site"})
    assert (other.status_code, cross.status_code) == (403, 403)


def test_a_token_does_what_its_scope_says_and_nothing_after_it_is_revoked(own: Workspace) -> None:
    with console(own) as url, client(own, url, "root", "admin") as admin:
        made = admin.post("/api/tokens", json={"name": "ci", "scopes": ["read"]}).json()
        with visit(url) as program:
            program.headers["authorization"] = f"Bearer {made['secret']}"
            reads = program.get("/api/corrections").status_code
            writes = program.post("/api/undo", json={"id": "cor_0"}).status_code
            admin.delete(f"/api/tokens/{made['token']}")
            after = program.get("/api/corrections").status_code
        shown = admin.get("/api/tokens").text
    assert (reads, writes, after, made["secret"] in shown) == (200, 403, 401, False)


def test_the_only_admin_stays_one(own: Workspace) -> None:
    with console(own) as url, client(own, url, "root", "admin") as admin:
        (me,) = admin.get("/api/users").json()
        demoted = admin.patch(f"/api/users/{me['user']}", json={"role": "viewer"})
        disabled = admin.patch(f"/api/users/{me['user']}", json={"enabled": False})
    assert (demoted.status_code, disabled.status_code) == (409, 409)
    assert "only admin" in demoted.json()["message"]


def test_a_disabled_user_is_out_at_once(own: Workspace) -> None:
    with console(own) as url, client(own, url, "root", "admin") as admin, client(own, url, "rob") as rob:
        before = rob.get("/api/me").status_code
        user = next(each["user"] for each in admin.get("/api/users").json() if each["name"] == "rob")
        admin.patch(f"/api/users/{user}", json={"enabled": False})
        with visit(url) as visitor:
            entered = visitor.post("/login", data={"name": "rob", "password": PASSWORD})
        assert (before, rob.get("/api/me").status_code, entered.status_code) == (200, 401, 401)


def test_access_is_audited(own: Workspace) -> None:
    with console(own) as url, client(own, url, "root", "admin") as admin:
        with visit(url) as visitor:
            visitor.post("/login", data={"name": "root", "password": "wrong wrong"})
        admin.post("/api/users", json={"name": "rob", "role": "viewer"})
        admin.get("/api/export/audit")
    with own.store.read() as connection:
        lines = audit_page(connection, own.project)
    assert [(each["actor"], each["action"], each["subject"]) for each in lines] == [
        ("staff:root", "export", "audit"), ("staff:root", "user made", "rob"), ("unknown", "login failed", "root"),
    ]  # fmt: skip


def test_a_password_is_kept_as_a_hash_of_its_own() -> None:
    first, second = hash_password(PASSWORD), hash_password(PASSWORD)
    assert (first != second, PASSWORD in first, is_password(PASSWORD, first), is_password("other", first)) == (
        True, False, True, False,
    )  # fmt: skip
    with pytest.raises(NotAllowed, match="10 to 1024"):
        hash_password("short")


def test_pages_are_readable_without_a_script(workspace: Workspace, base: str) -> None:
    """What a reader sees stands in the HTML itself."""
    id_ = correction_in(workspace, "tooling")
    with client(workspace, base, "viewer2", "viewer") as visitor:
        text = visitor.get(f"/review/{id_}").text
    for part in ("the failing step", "order_id is not valid", "prefix:#", "runner-up"):
        assert part in text


def test_an_id_in_the_search_box_leads_to_its_page(workspace: Workspace, base: str) -> None:
    id_ = correction_in(workspace, "memory")
    with client(workspace, base, "viewer2", "viewer") as visitor:
        found = visitor.get(f"/search?q={id_}").headers["location"]
        short = visitor.get(f"/search?q={id_[:12]}").headers["location"]
        words = visitor.get("/search?q=cancel+it").headers["location"]
        rule = visitor.get("/search?q=rule_0123456789abcdef0123").headers["location"]
    assert (found, short, words) == (f"/review/{id_}", f"/review/{id_}", "/traces?text=cancel+it")
    assert rule == "/why/rule_0123456789abcdef0123"


def test_cron_shows_its_next_five_times_and_says_what_is_wrong(workspace: Workspace, base: str) -> None:
    with client(workspace, base, "viewer2", "viewer") as visitor:
        right = visitor.get("/schedules?cron=0+3+*+*+*").text
        wrong = visitor.get("/schedules?cron=often").text
        zone = visitor.get("/schedules?cron=0+3+*+*+*&timezone=Mars/Olympus").text
    assert right.count("03:00</time>") == 5
    assert "is not a cron expression" in wrong
    assert "is no time zone" in zone


def test_without_a_schedule_the_page_says_how_to_start_one(workspace: Workspace, base: str) -> None:
    with client(workspace, base, "root1", "admin") as admin:
        page = admin.get("/schedules").text
        answer = admin.post("/api/schedules/pause")
    assert "filmroom schedule start" in page
    assert (answer.status_code, "filmroom schedule start" in answer.json()["message"]) == (409, True)


def test_it_listens_beyond_this_machine_only_once_somebody_can_log_in() -> None:
    with pytest.raises(SettingsError, match="make a user first"):
        access_of(ConsoleSection(), "0.0.0.0")  # noqa: S104 -- refused
    beyond = access_of(ConsoleSection(), "0.0.0.0", users=True)  # noqa: S104 -- nothing listens
    assert (beyond.is_open, access_of(ConsoleSection(), "127.0.0.1").is_open) == (False, True)


def test_programs_beyond_this_machine_need_a_token_of_their_scope(own: Workspace) -> None:
    with own.store.write() as connection:
        _, secret = make_token(connection, own.project, "exporter", ["feedback"], by="staff:ann", now_us=own.clock())
    access = Access(None, stored=stored_tokens(own), beyond=True)
    allowed = {path: access.allows(request(path, secret)) for path in ("/v1/traces", "/v1/feedback", "/v1/release")}
    assert allowed == {"/v1/traces": False, "/v1/feedback": True, "/v1/release": False}
    assert access.allows(request("/v1/feedback", "fr_made_up")) is False


def request(path: str, secret: str) -> Request:
    headers = [(b"authorization", f"Bearer {secret}".encode())]
    return Request({"type": "http", "path": path, "headers": headers, "server": ("127.0.0.1", 80), "query_string": b""})


def test_the_first_start_prints_a_link_and_later_ones_none(own: Workspace) -> None:
    first = started(own)
    person(own, "ann", "admin")
    assert (f"{first['url']}/login/once/" in str(first["login"]), started(own)["login"]) == (True, None)


def started(workspace: Workspace) -> dict[str, Any]:
    """What `filmroom serve` says when it starts."""
    command = [sys.executable, "-m", "filmroom", "serve", "--port", "0", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=workspace.settings.home, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            text += process.stdout.readline()
        process.terminate()
    told: dict[str, Any] = json.loads(text)
    return told


def test_a_login_link_leads_to_where_the_console_is_served(own: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--settings", str(own.settings.home / "filmroom.toml")]
    with served_at(own.settings.home, "http://127.0.0.1:8123"):
        main([*settings, "user", "add", "eva"])
    main([*settings, "user", "link", "eva"])
    served, planned = re.findall(r"http://127.0.0.1:(\d+)/login/once/", capsys.readouterr().out)
    assert (served, planned) == ("8123", str(own.settings.console.port))


def test_users_are_made_and_changed_on_the_command_line(own: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--settings", str(own.settings.home / "filmroom.toml")]
    done = [main([*settings, "user", *rest]) for rest in (
        ["add", "eva", "--role", "admin"], ["add", "rob"], ["role", "rob", "viewer"], ["disable", "rob"], ["link", "eva"],
    )]  # fmt: skip
    printed = capsys.readouterr().out
    failed = main([*settings, "user", "disable", "eva"])
    refused = capsys.readouterr().err
    main([*settings, "user", "list", "--json"])
    listed = json.loads(capsys.readouterr().out)
    assert (done, failed, printed.count("/login/once/")) == ([0] * 5, 1, 3)
    assert "only admin" in refused
    assert [(each["name"], each["role"], each["enabled"]) for each in listed] == [
        ("eva", "admin", True), ("rob", "viewer", False),
    ]  # fmt: skip
