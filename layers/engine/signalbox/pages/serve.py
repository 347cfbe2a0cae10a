"""Serve one request for a page, or for what a form of a page asks.

    request → session → page → operations → HTML
    form → session → form key → operation → back to the page

A form that is refused, or that asks for a preview, shows its page again with what was typed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from signalbox.access.caller import Role
from signalbox.access.sessions import LASTS, Session, begin_session, end_session, find_session
from signalbox.api.errors import MethodRefused, RouteUnknown, status_of
from signalbox.api.request import HttpRequest
from signalbox.api.response import HttpResponse
from signalbox.api.routes import ROUTES, WHO, match_path
from signalbox.api.serve import Responder, respond
from signalbox.errors import Forbidden, Refused, SignalboxError, Unauthenticated
from signalbox.invocation import Invocation, Resources
from signalbox.operations import OPERATIONS
from signalbox.pages import dead_letters, job, jobs, overview, progress, schedules, timetable
from signalbox.pages.forms import addressed_to_us, form_of, outcome, same_key
from signalbox.pages.render import html, page, static_file
from signalbox.pages.visit import Shown, Visit

_SESSION, _NOTICE = "signalbox-session", "signalbox-notice"
_NOTICE_SECONDS = 30
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
# What a form may ask for: what the HTTP API serves, and changes something.
ACTIONS = {route.name for route in ROUTES if OPERATIONS[route.name].role is Role.OPERATOR}
PAGES: Mapping[str, Callable[[Visit], Shown]] = {
    "/": overview.show,
    "/timetable": timetable.show,
    "/jobs": jobs.show,
    "/jobs/{id}": job.show,
    "/dead-letters": dead_letters.show_kinds,
    "/dead-letters/kinds/{fingerprint}": dead_letters.show_kind,
    "/dead-letters/{id}": dead_letters.show,
    "/bulk-actions": progress.show_bulk_actions,
    "/bulk-actions/{id}": progress.show_bulk_action,
    "/backfills": progress.show_backfills,
    "/backfills/{id}": progress.show_backfill,
    "/schedules": schedules.show,
    "/caps": schedules.show_caps,
}


def serve_pages(resources: Resources, event: Mapping[str, Any], invocation: Invocation) -> dict[str, Any]:
    """Answer the event of an HTTP API."""
    return respond(resources, event, invocation, Responder(_answer, _refusal, _failure))


def _answer(resources: Resources, request: HttpRequest, invocation: Invocation) -> HttpResponse:
    if request.method == "GET" and request.path.startswith("/static/"):
        return static_file(request.path.removeprefix("/static/"), request.query.get("v"))
    if request.method == "POST":
        return _Posted(resources, request, invocation).answer()
    if request.method != "GET":
        raise MethodRefused(f"pages take GET and POST, not {request.method[:20]}", ["GET", "POST"])
    if request.path == "/login":
        return html("login.html", {"next": _local(request.query.get("next")), "refused": ""})
    session = _session(resources, request)
    if session is None:
        return _ask_to_log_in(request)
    visit = Visit.of(resources, invocation, session, request)
    if request.path == "/" and session.caller.tenant is not None:
        return _redirect("/jobs")
    notice = _cookie(request, _NOTICE)
    response = _render(visit, notice=unquote(notice or ""))
    return replace(response, cookies=[_set_cookie(request, _NOTICE, "", 0)]) if notice else response


@dataclass(frozen=True, slots=True)
class _Posted:
    """Answer a form."""

    resources: Resources
    request: HttpRequest
    invocation: Invocation

    def answer(self) -> HttpResponse:
        self.request.require_size()
        if not addressed_to_us(self.request):
            raise Forbidden("this form came from another site")
        form = form_of(self.request)
        if self.request.path == "/login":
            return self._log_in(form)
        session = _session(self.resources, self.request)
        if session is None:
            return _redirect("/login")
        if not same_key(form, session.form_key):
            raise Forbidden("this form is not one of this session: load the page again")
        if self.request.path == "/logout":
            end_session(self.resources.database.connection(), session.secret)
            return replace(_redirect("/login"), cookies=[_set_cookie(self.request, _SESSION, "", 0)])
        name = self.request.path.removeprefix("/act/")
        if name not in ACTIONS or not self.request.path.startswith("/act/"):
            raise RouteUnknown(f"no form asks for {self.request.path[:200]}")
        return self._act(session, name, form)

    def _log_in(self, form: Mapping[str, str]) -> HttpResponse:
        """Begin a session of its own, whatever cookie came with the request."""
        try:
            secret = begin_session(self.resources.database.connection(), form.get("token", "").strip())
        except Unauthenticated as error:
            return html("login.html", {"next": _local(form.get("next")), "refused": str(error)}, 401)
        cookie = _set_cookie(self.request, _SESSION, secret, int(LASTS.total_seconds()))
        return replace(_redirect(_local(form.get("next"))), cookies=[cookie])

    def _act(self, session: Session, name: str, form: Mapping[str, str]) -> HttpResponse:
        """Carry out an operation, and go back to the page that asked for it."""
        back = urlsplit(_local(form.get("_next")))
        query = {key: text for key, text in parse_qsl(back.query) if text.strip()}
        visit = Visit(
            self.resources,
            replace(self.invocation, caller=session.caller),
            session,
            back.path,
            query,
            form=form,
            action=name,
        )
        params = visit.params(name, form)
        params |= dict.fromkeys(WHO & OPERATIONS[name].model.model_fields.keys(), session.caller.name)
        if ids := [field.removeprefix("id.") for field in form if field.startswith("id.")]:
            params["ids"] = ids
        try:
            answer = visit.operate(name, **params)
        except Refused as error:
            return _render(replace(visit, refused=str(error)), status=status_of(error))
        if answer.get("dry_run"):
            return _render(replace(visit, answer=answer))
        notice = _set_cookie(self.request, _NOTICE, quote(outcome(name, answer)), _NOTICE_SECONDS)
        return replace(_redirect(_progress(name, answer) or visit.address), cookies=[notice])


def _progress(operation: str, answer: Mapping[str, Any]) -> str | None:
    """Return the page that shows how far it is, if it goes on."""
    if operation == "create_backfill":
        return f"/backfills/{answer['backfill']['id']}"
    goes_on = answer.get("more") or answer.get("left")
    return f"/bulk-actions/{answer['bulk_action']}" if goes_on and "bulk_action" in answer else None


def _render(visit: Visit, *, notice: str = "", status: int = 200) -> HttpResponse:
    for pattern, show in PAGES.items():
        in_path = match_path(pattern, visit.path)
        if in_path is not None:
            visit = replace(visit, in_path=in_path)
            return page(visit, show(visit), notice=notice, status=status)
    raise RouteUnknown(f"there is no page {visit.path[:200]}")


def _session(resources: Resources, request: HttpRequest) -> Session | None:
    secret = _cookie(request, _SESSION)
    return find_session(resources.database.connection(), secret) if secret else None


def _ask_to_log_in(request: HttpRequest) -> HttpResponse:
    """Send a browser to the login. From a link on another site it sends no cookie: the second request has it."""
    if request.headers.get("sec-fetch-site") == "cross-site" and _cookie(request, _SESSION) is None:
        return html("again.html", {})
    query = "&".join(f"{quote(name)}={quote(text)}" for name, text in request.query.items())
    return _redirect(f"/login?next={quote(request.path + ('?' + query if query else ''), safe='')}")


def _redirect(to: str) -> HttpResponse:
    return HttpResponse(303, "", {"location": to, "cache-control": "no-store"})


def _cookie(request: HttpRequest, name: str) -> str | None:
    found = [text.partition("=")[2] for text in request.cookies if text.strip().partition("=")[0] == name]
    return found[0] if found else None


def _set_cookie(request: HttpRequest, name: str, value: str, seconds: int) -> str:
    host = request.headers.get("host", "")
    secure = "" if host.rpartition(":")[0] in _LOOPBACK else "; Secure"
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def _local(path: str | None) -> str:
    """Return a path of ours, and the overview for everything else."""
    is_ours = path is not None and path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if path is not None and is_ours else "/"


def _refusal(error: SignalboxError, request_id: str) -> HttpResponse:
    return html("error.html", {"title": "Not done", "text": str(error), "request_id": request_id}, status_of(error))


def _failure(request_id: str) -> HttpResponse:
    text = "The request failed. The function's log has the error under the id of the request."
    return html("error.html", {"title": "Something broke", "text": text, "request_id": request_id}, 500)
