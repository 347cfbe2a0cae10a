"""Turn what a page shows into HTML. Every value is escaped; nothing is loaded from elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from signalbox.api.errors import RouteUnknown
from signalbox.api.response import HttpResponse
from signalbox.pages.visit import Shown, Visit

_HERE = Path(__file__).parent
_FILES = {"app.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content_type": "text/html; charset=utf-8",
    "content_security_policy": _POLICY,
    "referrer_policy": "same-origin",
    "x_frame_options": "DENY",
}
# Each section of the menu: its path, its name, the key that opens it, and whether it concerns the whole stack.
MENU = (
    ("/", "Overview", "o", True),
    ("/timetable", "Timetable", "t", True),
    ("/jobs", "Jobs", "j", False),
    ("/dead-letters", "Dead letters", "d", False),
    ("/bulk-actions", "Bulk actions", "a", False),
    ("/backfills", "Backfills", "b", True),
    ("/schedules", "Schedules", "s", True),
    ("/caps", "Caps", "c", True),
)


def page(visit: Visit, shown: Shown, *, notice: str = "", status: int = 200) -> HttpResponse:
    """Return a page for one who is logged in."""
    caller = visit.session.caller
    values = {
        "visit": visit,
        "title": shown.title,
        "commands": shown.commands,
        "notice": notice,
        "menu": [entry for entry in MENU if caller.tenant is None or not entry[3]],
        "stack": visit.resources.settings.stack,
        **shown.values,
    }
    return html(shown.template, values, status)


def html(template: str, values: Mapping[str, Any], status: int = 200) -> HttpResponse:
    text = _environment().get_template(template).render(values)
    return HttpResponse(status, text).with_headers(**_HEADERS)


def static_file(name: str, version: str | None) -> HttpResponse:
    """Return a file of the pages. Its address has its hash, so that a browser asks for it once."""
    if name not in _FILES:
        raise RouteUnknown(f"nothing is served at /static/{name[:100]}")
    text, known = _file(name)
    caching = "public, max-age=31536000, immutable" if version == known else "no-cache"
    return HttpResponse(200, text, {"content-type": f"{_FILES[name]}; charset=utf-8", "cache-control": caching})


@cache
def _file(name: str) -> tuple[str, str]:
    text = (_HERE / "static" / name).read_text("utf-8")
    return text, hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"time": show_time, "duration": show_duration, "number": show_number, "rate": show_rate}
    environment.globals |= {"static": lambda name: f"/static/{name}?v={_file(name)[1]}", "link": link}
    return environment


def link(path: str, **query: Any) -> str:
    """Return an address; a part of the query that is None is left out."""
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return path + (f"?{urlencode(given)}" if given else "")


def show_time(text: str | None) -> Markup:
    """Return an instant in UTC; the script adds how long ago that is."""
    if not text:
        return Markup()
    at = datetime.fromisoformat(text)
    return Markup('<time datetime="{}">{}</time>').format(text, f"{at:%Y-%m-%d %H:%M:%S}")


def show_duration(milliseconds: float | None) -> str:
    """Return how long something took, with two units at most."""
    if milliseconds is None:
        return "–"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, days = minutes // 60, minutes // 1440
    if days > 1:
        parts = [(days, "d"), (hours % 24, "h")]
    else:
        parts = [(hours, "h"), (minutes % 60, "min")] if hours else [(minutes, "min"), (rest, "s")]
    return " ".join(f"{size} {unit}" for size, unit in parts if size)


def show_number(value: float | None) -> str:
    return "–" if value is None else f"{value:,}"


def show_rate(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.4g} %"
