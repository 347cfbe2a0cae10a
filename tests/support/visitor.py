"""Visit pages as a browser does: keep cookies, read the HTML, fill in its forms and press their buttons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from signalbox.testing.stage import NOON, Stage
from tests.support.http_api import request_event

ORIGIN = {"host": "jobs.example.com", "origin": "https://jobs.example.com", "sec-fetch-site": "same-origin"}


@dataclass
class Form:
    """Describe a form: where it goes, its fields with their values, and its buttons."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[dict[str, str]] = field(default_factory=list)


class Html(HTMLParser):
    """Read the elements, forms and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.forms: list[Form] = []
        self.texts: list[str] = []
        self._named = ""  # the textarea or select that is open
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.elements.append((tag, given))
        if tag == "form":
            self.forms.append(Form(given.get("action", ""), given.get("method", "get")))
        elif tag == "button" and self.forms:
            self.forms[-1].buttons.append(given)
        elif tag == "input" and "name" in given and (given.get("type") != "checkbox" or "checked" in given):
            self.forms[-1].fields[given["name"]] = given.get("value", "")
        elif tag == "textarea":
            self._named = given["name"]

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._named = ""

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._named:
            self.forms[-1].fields[self._named] = data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def rows(self) -> list[str]:
        """Return the ids of the rows that have one, without the letter that says of what they are."""
        return [given["id"].partition("-")[2] for tag, given in self.elements if tag == "tr" and "id" in given]


@dataclass(frozen=True)
class Page:
    status: int
    body: str
    headers: dict[str, str]
    cookies: list[str]

    @property
    def html(self) -> Html:
        return Html(self.body)

    @property
    def text(self) -> str:
        return self.html.text


@dataclass
class Visitor:
    """Ask as one browser."""

    stage: Stage
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, target: str, headers: Mapping[str, str] | None = None, *, at: datetime = NOON) -> Page:
        return self._ask("GET", target, None, at, {**ORIGIN, **(headers or {})})

    def post(
        self, path: str, fields: Mapping[str, str], headers: Mapping[str, str] | None = None, *, at: datetime = NOON
    ) -> Page:
        sent = {**ORIGIN, "content-type": "application/x-www-form-urlencoded", **(headers or {})}
        return self._ask("POST", path, urlencode(fields), at, sent)

    def press(self, page: Page, button: str, having: str = "_form", **filled: str) -> Page:
        """Press the first button that goes there or has that value, in a form with a field; follow where it leads."""
        form, given = next(
            (form, given)
            for form in page.html.forms
            for given in form.buttons or [{}]
            if having in form.fields and button in (given.get("formaction", form.action), given.get("value"))
        )
        own = {given["name"]: given["value"]} if "name" in given else {}
        answer = self.post(given.get("formaction", form.action), form.fields | own | filled)
        return self.get(answer.headers["location"]) if answer.status == 303 else answer

    def log_in(self, role: str = "operator", tenant: str | None = None, name: str = "jo") -> Visitor:
        made = self.stage.operate("create_token", name=name, role=role, bound_to=tenant, replacing=True)
        answer = self.post("/login", {"token": made["token"]["token"]})
        assert answer.status == 303, answer.text
        return self

    def _ask(self, method: str, target: str, body: str | None, at: datetime, headers: dict[str, str]) -> Page:
        event = request_event(method, target, body, **headers)
        event["cookies"] = [f"{name}={value}" for name, value in self.cookies.items()]
        answer: dict[str, Any] = self.stage.app.operate(event, self.stage.invocation(at, request_id="request-7"))
        for text in answer.get("cookies", ()):
            name, _, value = text.partition(";")[0].partition("=")
            self.cookies[name] = value
            if "Max-Age=0" in text:
                del self.cookies[name]
        return Page(answer["statusCode"], answer["body"], answer["headers"], answer.get("cookies", []))
