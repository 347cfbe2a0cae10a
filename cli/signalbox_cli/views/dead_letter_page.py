"""Show one dead letter as text: why it failed, what was tried, and what was decided. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from rich.text import Text

from signalbox_cli.views.table import Column, Row, table
from signalbox_cli.views.times import show_age, show_duration, show_instant

_Facts = Mapping[str, Any]
_COLUMNS = (Column("attempt", right=True), Column("at"), Column("status"), Column("took", right=True))


def letter_page(letter: _Facts, width: int, clock: datetime) -> list[Text]:
    facts = [(name, value) for name, value in _facts(letter, clock) if value]
    size = max(len(name) for name, _ in facts)
    attempts = [_attempt(one) for one in letter["execution_history"] or []]
    return [
        Text(f"dead letter {letter['id']} of {letter['job_type']} is {letter['status']}", style="bold"),
        *(Text(f"  {name:{size}}  {value}") for name, value in facts),
        *([Text(), *table(_COLUMNS, attempts, width)] if attempts else []),
        *([Text()] if letter["audit"] else []),
        *(Text(_decision(one)) for one in letter["audit"]),
    ]


def _facts(letter: _Facts, clock: datetime) -> Iterator[tuple[str, str]]:
    job, state = letter["original_job_id"], letter.get("job_status")
    yield "job", f"{job}, now {state}" if job and state else job or ""
    yield "why", f"{letter['failure_reason']}, after {letter['total_attempts']} attempts"
    yield "error", f"{letter['error_type']}: {letter['final_error_message']}" if letter["error_type"] else ""
    yield "severity", letter["severity"]
    yield "kind", letter["fingerprint"]
    yield "tenant", letter["tenant"] or ""
    yield "failed", f"{show_instant(letter['last_failed_at'])}, {show_age(letter['last_failed_at'], clock)}"
    yield "version", letter.get("version") or ""
    yield "regressed", show_instant(letter["regressed_at"]) if letter.get("regressed_at") else ""
    yield "redriven", f"{letter['redrives']} times" if letter["redrives"] else ""
    yield "decided", letter["resolution_notes"] or ""
    yield "payload", json.dumps(letter["payload"], ensure_ascii=False)[:400]


def _attempt(one: _Facts) -> Row:
    """Return the row of an attempt, from the job's executions or the dead letter's copy of them."""
    number, took = one.get("attempt_number") or one.get("attempt"), one.get("duration_ms")
    error, message = one.get("error_code") or one.get("error"), one.get("error_message") or one.get("message")
    cells = [str(number), show_instant(one["started_at"]), one["status"], "" if took is None else show_duration(took)]
    return Row(cells, f"{error}: {message}" if error else "")


def _decision(one: _Facts) -> str:
    reason = (one["detail"] or {}).get("reason")
    return f"{show_instant(one['at'])}  {one['action']} by {one['actor']}" + (f": {reason}" if reason else "")
