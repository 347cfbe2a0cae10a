"""A browser logs in with a token; its session, its forms and its pages can't be used by others."""

from __future__ import annotations

import pytest

from signalbox.access.caller import Role
from signalbox.operations import OPERATIONS
from signalbox.pages.serve import ACTIONS, PAGES
from signalbox.testing.stage import Stage
from tests.support.visitor import Visitor

SESSION = "signalbox-session"
ID = "01a1f5ab-6ece-7d78-aa22-f7a61e63bba7"
PATHS = [path.replace("{id}", ID).replace("{fingerprint}", "f0") for path in PAGES]
# What each caller is answered; a page that is missing here fails the test below.
OF_THE_STACK = ["/", "/timetable", "/backfills", f"/backfills/{ID}", "/schedules", "/caps"]
OF_TENANTS = [
    *("/jobs", f"/jobs/{ID}", "/bulk-actions", f"/bulk-actions/{ID}"),
    *("/dead-letters", "/dead-letters/kinds/f0", f"/dead-letters/{ID}"),
]
UNKNOWN = [path for path in PATHS if path.endswith(ID)]


@pytest.fixture
def visitor(stage: Stage) -> Visitor:
    return Visitor(stage).log_in()


def test_table_has_each_page() -> None:
    assert sorted(PATHS) == sorted([*OF_THE_STACK, *OF_TENANTS])


@pytest.mark.parametrize("path", PATHS)
def test_pages_are_for_those_who_are_logged_in(stage: Stage, path: str) -> None:
    for cookies in ({}, {SESSION: ""}, {SESSION: "made up"}, {SESSION: "a\ud800"}):
        answer = Visitor(stage, cookies).get(path)
        assert (answer.status, answer.headers["location"].partition("=")[0]) == (303, "/login?next")
    found = 404 if path in UNKNOWN else 200
    assert [Visitor(stage).log_in(role).get(path).status for role in ("viewer", "operator")] == [found, found]
    bound = Visitor(stage).log_in(tenant="acme").get(path).status
    assert bound == {"/": 303}.get(path, 403 if path in OF_THE_STACK else found)


def test_session_is_in_a_cookie_that_no_script_and_no_other_site_sees(stage: Stage) -> None:
    made = stage.operate("create_token", name="jo")["token"]["token"]
    [cookie] = Visitor(stage).post("/login", {"token": made}).cookies
    assert cookie.split("; ")[1:] == ["Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict", "Secure"]
    here = {"host": "127.0.0.1:4567", "origin": "http://127.0.0.1:4567"}
    [cookie] = Visitor(stage).post("/login", {"token": made}, here).cookies
    assert "Secure" not in cookie
    assert made not in cookie


@pytest.mark.parametrize("token", ["", "sbx_wrong", "x" * 10_000, "sbx_\ud800", "\0"])
def test_wrong_token_is_asked_for_again(stage: Stage, token: str) -> None:
    page = Visitor(stage).post("/login", {"token": token.encode("utf-8", "surrogatepass").decode("latin-1")})
    assert (page.status, page.cookies) == (401, [])
    assert "this token is unknown, expired or revoked" in page.text


def test_session_that_is_given_is_not_taken_over(stage: Stage) -> None:
    visitor = Visitor(stage, {SESSION: "chosen-by-another"}).log_in()
    assert visitor.cookies[SESSION] != "chosen-by-another"
    assert Visitor(stage, {SESSION: "chosen-by-another"}).get("/jobs").status == 303


def test_cookie_is_good_for_nothing_after_the_logout(stage: Stage, visitor: Visitor) -> None:
    before = dict(visitor.cookies)
    visitor.press(visitor.get("/jobs"), "/logout")
    assert SESSION not in visitor.cookies
    assert Visitor(stage, before).get("/jobs").status == 303


@pytest.mark.parametrize(
    "ending",
    [
        "UPDATE signalbox.api_sessions SET expires_at = clock_timestamp()",
        "UPDATE signalbox.api_tokens SET expires_at = clock_timestamp()",
        "UPDATE signalbox.api_tokens SET revoked_at = clock_timestamp()",
        "DELETE FROM signalbox.api_tokens",
    ],
)
def test_session_ends_with_its_time_and_with_its_token(stage: Stage, visitor: Visitor, ending: str) -> None:
    assert visitor.get("/jobs").status == 200
    stage.db.execute(ending)
    assert visitor.get("/jobs").status == 303


def test_session_lasts_no_longer_than_its_token(stage: Stage, visitor: Visitor) -> None:
    made = stage.operate("create_token", name="short")["token"]["token"]
    stage.db.execute("UPDATE signalbox.api_tokens SET expires_at = now() + interval '1 h' WHERE name = 'short'")
    visitor.post("/login", {"token": made})
    left = stage.db.execute(
        "SELECT expires_at - now() < interval '2 h' FROM signalbox.api_sessions ORDER BY created_at"
    )
    assert left.fetchall() == [(False,), (True,)]


def test_ended_sessions_are_forgotten_at_the_next_login(stage: Stage, visitor: Visitor) -> None:
    stage.db.execute("UPDATE signalbox.api_sessions SET expires_at = clock_timestamp()")
    visitor.log_in(name="other")
    assert stage.db.execute("SELECT count(*) FROM signalbox.api_sessions").fetchone() == (1,)


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_form_without_the_key_of_its_session_changes_nothing(stage: Stage, visitor: Visitor, action: str) -> None:
    other = Visitor(stage).log_in(name="other").get("/jobs").html.forms[0].fields["_form"]
    for fields in ({}, {"_form": ""}, {"_form": other}, {"_form": "ü"}):
        assert visitor.post(f"/act/{action}", fields).status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
    ],
)
@pytest.mark.parametrize("path", ["/login", "/logout", "/act/cancel_jobs"])
def test_form_of_another_site_is_refused(visitor: Visitor, path: str, headers: dict[str, str]) -> None:
    fields = visitor.get("/jobs").html.forms[0].fields
    assert visitor.post(path, fields | {"job_type": "do_nothing"}, headers).status == 403
    assert visitor.get("/jobs").status == 200


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_viewer_changes_nothing(stage: Stage, action: str) -> None:
    viewer = Visitor(stage).log_in("viewer")
    fields = viewer.get("/jobs").html.forms[0].fields
    answer = viewer.post(f"/act/{action}", fields | {"_next": "/jobs", "job_type": "do_nothing"})
    assert answer.status == 403


@pytest.mark.parametrize("action", ["create_token", "list_jobs", "nothing", "", "../v1/jobs"])
def test_forms_ask_for_what_the_http_api_changes_and_nothing_else(visitor: Visitor, action: str) -> None:
    fields = visitor.get("/jobs").html.forms[0].fields
    assert visitor.post(f"/act/{action}", fields).status == 404
    assert {OPERATIONS[name].role for name in ACTIONS} == {Role.OPERATOR}


@pytest.mark.parametrize(
    "next_", ["https://evil.example", "//evil.example", "/\\evil.example", "", "javascript:alert(1)", "/a\r\nX: 1"]
)
def test_login_leads_to_a_page_of_ours(stage: Stage, next_: str) -> None:
    made = stage.operate("create_token", name="jo")["token"]["token"]
    assert Visitor(stage).post("/login", {"token": made, "next": next_}).headers["location"] == "/"
    assert Visitor(stage).post("/login", {"token": made, "next": "/jobs?tag=a"}).headers["location"] == "/jobs?tag=a"


def test_page_that_was_asked_for_comes_after_the_login(stage: Stage) -> None:
    visitor = Visitor(stage)
    to = visitor.get("/jobs?tag=a%26b&status=failed").headers["location"]
    fields = visitor.get(to).html.forms[0].fields
    assert fields["next"] == "/jobs?tag=a%26b&status=failed"


def test_link_from_another_site_is_loaded_again_with_the_cookie(stage: Stage, visitor: Visitor) -> None:
    page = Visitor(stage).get("/jobs", {"sec-fetch-site": "cross-site"})
    assert (page.status, ("meta", {"http-equiv": "refresh", "content": "0"}) in page.html.elements) == (200, True)
    assert visitor.get("/jobs", {"sec-fetch-site": "cross-site"}).text.startswith("Jobs")


@pytest.mark.parametrize("path", ["/login", "/jobs", "/nothing", "/static/nothing"])
def test_every_page_forbids_scripts_frames_and_addresses_of_others(visitor: Visitor, path: str) -> None:
    page = visitor.get(path)
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert page.headers["x-frame-options"] == "DENY"
    for tag, given in page.html.elements:
        assert not [name for name in given if name.startswith("on") or name == "style"], (tag, given)
        assert tag != "style"
        for name in ("src", "href", "action", "formaction"):
            assert given.get(name, "/").startswith(("/", "#")), (tag, given)


def test_body_that_is_too_large_is_refused(visitor: Visitor) -> None:
    assert visitor.post("/login", {"token": "x" * 1_000_001}).status == 413
    many = {f"id.{number}": "on" for number in range(1300)}
    assert visitor.post("/act/cancel_jobs", many).status == 400


def test_files_are_kept_by_the_browser_by_their_hash(visitor: Visitor) -> None:
    sheet = next(
        given["href"] for tag, given in visitor.get("/login").html.elements if given.get("rel") == "stylesheet"
    )
    assert "immutable" in visitor.get(sheet).headers["cache-control"]
    assert visitor.get("/static/app.css?v=old").headers["cache-control"] == "no-cache"
    assert visitor.get("/static/../app.py").status == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "PATCH"])
def test_pages_take_get_and_post_alone(stage: Stage, visitor: Visitor, method: str) -> None:
    assert visitor._ask(method, "/jobs", None, stage.invocation().clock, {}).status == 405
