"""Explain why a job does not run: one reason, with what holds it. The SQL function explain_job decides which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.rows import dict_row

from signalbox.errors import JobUnknown
from signalbox.operate.short_ids import require_id
from signalbox.postgres.connection import Connection
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_TEXTS = {
    "ended": "is {status}",
    "running": "is at work on {key}",
    "paused": "is paused by {by}; `signalbox resume jobs {key}` lets it continue",
    "pause": "{kind} '{key}' is paused by {by}{reason}; `signalbox resume {kind} {key}` lets it continue",
    "parent": "waits for job {key} of {job_type}, which is {status}{others}",
    "group": "waits for the group '{key}': {left:,} of its {total:,} jobs have not ended",
    "suspect": "its last worker died; it starts at the next free place, alone",
    "time": "{cause}{error}",
    "signal": "waits for the signal '{key}'; `signalbox signal {key}` sends it",
    "cap": "held by the cap of {kind} '{key}': {running:,} of {max_running:,} at work, {before:,} held before it",
    "rate": "held by the rate of {kind} '{key}', {before:,} held before it",
    "dispatch": "is due; dispatch_jobs sends it within a minute",
    "lane": "is queued in the lane {key}, {before:,} before it",
    "no_worker": "no worker takes jobs of the lane {key}; `signalbox doctor` says why",
}
# What a caller who is bound to a tenant reads, where the reason names jobs or figures beyond it.
_OF_THE_STACK = {
    "parent": "waits for another job",
    "group": "waits for its group",
    "pause": "is paused with others",
    "cap": "is held by a cap",
    "rate": "is held by a rate",
    "lane": "is queued",
    "no_worker": "is queued",
}
_CAUSES = {
    "submitted": "was submitted for a later time",
    "retry": "is tried again after an error",
    "throttled": "is tried again when the service allows it",
    "snooze": "continues later, as its code asked",
}


def explain_job(db: Connection, id_: str, tenant: str | None = None) -> dict[str, Any]:
    """Return the reason with a sentence, since when, until when if that is known, and what to look at.

    A tenant does not learn which job of another one is waited for, nor figures and reasons of the whole stack.
    """
    with db.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(SQL["explain"], {"id": require_id("job", id_)}).fetchone()
    if found is None:
        raise JobUnknown(f"no job has the id {id_}; it may have been pruned: `signalbox jobs` lists those there are")
    if tenant is not None and found["reason"] in _OF_THE_STACK:
        found |= {"kind": None, "key": None, "detail": {}}
        return json_row(found) | {"text": _OF_THE_STACK[found["reason"]]}
    return json_row(found) | {"text": _text_of(found["reason"], found["kind"], found["key"], found["detail"])}


def _text_of(reason: str, kind: str | None, key: str | None, detail: Mapping[str, Any]) -> str:
    """Return the reason as a sentence; the times stand beside it."""
    values = {name: value for name, value in detail.items() if value is not None}
    if reason == "time":
        values["cause"] = _CAUSES[detail["cause"]]
    for name in ("reason", "error"):
        values[name] = f": {detail[name]}" if detail.get(name) else ""
    values["others"] = f", and for {detail['unmet'] - 1:,} more" if detail.get("unmet", 1) > 1 else ""
    return _TEXTS[reason].format_map({"by": "somebody", **values, "kind": kind, "key": key})
