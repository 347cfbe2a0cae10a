"""Write an operation as the command that does the same, for the command line and for `curl`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from signalbox.api.routes import ROUTES, WHO, Route

# An operation's command with the params that it takes by their place; the others are options of their names.
_COMMANDS = {
    "show_statistics": "stats",
    "show_health": "stats --health",
    "list_tasks": "slots",
    "show_slots": "slots",
    "list_runs": "history",
    "create_backfill": "backfill {task}",
    "list_backfills": "backfill list",
    "show_backfill": "backfill show {id}",
    "list_jobs": "jobs",
    "show_job": "job {id}",
    "cancel_jobs": "cancel",
    "retry_jobs": "retry",
    "pause": "pause jobs",
    "resume": "resume jobs",
    "list_dead_letters": "dead-letters",
    "show_dead_letter": "dead-letters show {id}",
    "redrive": "redrive",
    "list_bulk_actions": "bulk-actions",
    "show_bulk_action": "bulk-actions show {id}",
    "list_schedules": "schedules",
    "list_controls": "caps",
}
_OPTIONS = {"job_type": "type", "before_id": "before", "by_kind": "kinds", "rate_per_minute": "rate",
            "stop_after_failures": "stop-after", "hours": "window"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Command:
    """Hold one command in both forms."""

    cli: str
    curl: str


def command_of(operation: str, params: Mapping[str, Any], **fixed: Any) -> Command:
    """Return the command of an operation; `fixed` are params that the route's path implies."""
    named = [one for one in ROUTES if one.name == operation and one.shape != "one"]
    route = next(one for one in named if one.fixed == fixed and set(one.in_path) <= params.keys())
    return Command(_cli(operation, {**params, **fixed}), _curl(route, params))


def _cli(operation: str, params: Mapping[str, Any]) -> str:
    words = _COMMANDS[operation]
    placed = [name for name in params if f"{{{name}}}" in words]
    command = words.format(**{name: shlex.quote(str(params[name])) for name in placed})
    ids = [shlex.quote(one) for one in params.get("ids") or ()]
    options = [
        _option(name, value) for name, value in params.items() if name not in (*placed, "ids") and value is not None
    ]
    return " ".join(["signalbox", command, *ids, *filter(None, options)])


def _option(name: str, value: Any) -> str:
    option = "--" + _OPTIONS.get(name, name).replace("_", "-")
    if value is False:
        return ""
    if value is True:
        return option
    if name == "hours":
        return f"{option} {value:g}h"
    text = json.dumps(value) if isinstance(value, dict) else str(value)
    return f"{option} {shlex.quote(text)}"


def _curl(route: Route, params: Mapping[str, Any]) -> str:
    path = "/".join(
        quote(str(params[part[1:-1]]), safe="") if part.startswith("{") else part for part in route.path.split("/")
    )
    rest = {name: value for name, value in params.items() if name not in (*route.in_path, *WHO) and value is not None}
    head = 'curl -H "Authorization: Bearer $SIGNALBOX_TOKEN"'
    if route.method != "GET":
        return f'{head} -X {route.method} "$SIGNALBOX_API{path}" -d {shlex.quote(json.dumps(rest))}'
    texts = {name: _text(value) for name, value in rest.items()}
    return f'{head} "$SIGNALBOX_API{path}{"?" + urlencode(texts) if texts else ""}"'


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return json.dumps(value)
    return ",".join(value) if isinstance(value, list) else str(value)
