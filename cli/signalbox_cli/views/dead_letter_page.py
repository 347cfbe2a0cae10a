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
    yield "where", json.dumps(letter["metadata"], ensure_ascii=False)[:400] if letter.get("metadata") else ""
    yield "payload", json.dumps(letter["payload"], ensure_ascii=False)[:400]


def _attempt(one: _Facts) -> Row:
    cells = [
        str(one["attempt_number"]),
        show_instant(one["started_at"]),
        one["status"],
        show_duration(one["duration_ms"]),
    ]
    return Row(cells, f"{one['error_code']}: {one['error_message']}" if one["error_code"] else "")


def _decision(one: _Facts) -> str:
    reason = (one["detail"] or {}).get("reason")
    return f"{show_instant(one['at'])}  {one['action']} by {one['actor']}" + (f": {reason}" if reason else "")
