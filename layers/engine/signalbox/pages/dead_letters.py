"""Show the kinds of failure as an inbox, one kind with its dead letters, and one dead letter with an editor."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from signalbox.dead_letters.letters import OPEN
from signalbox.errors import Refused
from signalbox.operate.redaction import REDACTED
from signalbox.pages.charts import bars
from signalbox.pages.commands import command_of
from signalbox.pages.visit import Shown, Visit

_SHOWN = 50


def show_kinds(visit: Visit) -> Shown:
    params = visit.params("list_dead_letters", visit.query)
    params.pop("by_kind", None)
    if params.get("status") is None and not visit.query.get("all"):
        params["status"] = [str(status) for status in OPEN]
    found = visit.operate("list_dead_letters", **params, by_kind=True)
    values = {
        "kinds": [(kind, _trend(kind)) for kind in found["kinds"]],
        "more": found["more"],
        "all": visit.query.get("all", ""),
    }
    shown = {name: value for name, value in params.items() if name != "status"}
    return Shown("dead_letters.html", "Dead letters", values, [command_of("list_dead_letters", shown, by_kind=True)])


def show_kind(visit: Visit) -> Shown:
    print_ = visit.in_path["fingerprint"]
    kinds = visit.operate("list_dead_letters", by_kind=True, fingerprint=print_)["kinds"]
    listed = visit.operate("list_dead_letters", fingerprint=print_, before=visit.query.get("before"), limit=_SHOWN)
    values = {
        "kind": kinds[0] if kinds else None,
        "trend": _trend(kinds[0]) if kinds else [],
        "listed": listed,
        "preview": visit.preview_of("redrive"),
    }
    commands = [command_of("list_dead_letters", {"fingerprint": print_})]
    if visit.preview_of("redrive"):
        rate = visit.params("redrive", visit.form).get("rate_per_minute")
        commands.append(command_of("redrive", {"fingerprint": print_, "rate_per_minute": rate}))
    return Shown("kind.html", "A kind of failure", values, commands)


def show(visit: Visit) -> Shown:
    found = visit.operate("show_dead_letter", id=visit.in_path["id"])["dead_letter"]
    original = _text(found["payload"])
    edited = visit.form.get("payload", original)
    values = {
        "letter": found,
        "preview": visit.preview_of("redrive"),
        "payload": edited,
        "difference": _difference(original, edited),
        "can_edit": found["source"] == "job" and REDACTED not in original,
        "schema": _schema(visit, found["job_type"]),
    }
    title = f"Dead letter of {found['job_type'] or found['source']}"
    return Shown("dead_letter.html", title, values, [command_of("show_dead_letter", {"id": found["id"]})])


def _trend(kind: Mapping[str, Any]) -> Sequence[Any]:
    return bars([(0, count) for count in kind["trend"]])


def _schema(visit: Visit, job_type: str | None) -> str:
    """Return the schema of the type's payload; a type that is no longer known has none."""
    with suppress(Refused):
        if job_type:
            return _text(visit.operate("show_job_type", name=job_type)["job_type"]["payload_schema"])
    return ""


def _difference(original: str, edited: str) -> list[str]:
    """Return how the edited payload differs, line by line, without the head of a patch."""
    with suppress(ValueError, RecursionError):
        edited = _text(json.loads(edited))
    lines = difflib.unified_diff(original.splitlines(), edited.splitlines(), lineterm="", n=2)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def _text(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
