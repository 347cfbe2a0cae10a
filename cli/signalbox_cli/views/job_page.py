"""Show one job as text: its facts, and what happened to it, line by line in the order of time. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.text import Text

from signalbox_cli.views.job_table import unwell
from signalbox_cli.views.numbers import counted
from signalbox_cli.views.table import Column, Row, table
from signalbox_cli.views.times import show_age, show_duration, show_instant

_Facts = Mapping[str, Any]
_LONGEST_VALUE = 400
_COLUMNS = (Column("at"), Column("what"), Column("status"), Column("took", right=True))


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """Describe one thing that happened."""

    at: str
    what: str
    status: str = ""
    took: str = ""
    note: str = ""


def job_page(found: _Facts, width: int, clock: datetime) -> list[Text]:
    """Return the head, the facts, the timeline, and the related jobs."""
    job = found["job"]
    facts = [(name, value) for name, value in _facts(found, clock) if value not in (None, "", [], {})]
    size = max(len(name) for name, _ in facts)
    return [
        Text(f"job {job['id']} of {job['job_type']} is {job['status']}", style="bold"),
        *(Text(f"  {name:{size}}  {value}") for name, value in facts),
        Text(),
        *table(_COLUMNS, [_row(event) for event in timeline(found)], width),
        *_around("waits for", found["depends_on"]),
        *_around("waited for by", found["dependents"]),
        *_around("has submitted", found["children"]),
    ]


def timeline(found: _Facts) -> list[TimelineEvent]:
    """Return everything with a time, oldest first."""
    job = found["job"]
    events = [
        TimelineEvent(job["created_at"], "submitted", note=f"by {job['created_by']}" if job["created_by"] else "")
    ]
    events += [_attempt(one) for one in found["executions"]]
    events += [_order(one) for one in found["orders"]]
    if job["status"] == "cancelled":
        events.append(TimelineEvent(job["completed_at"], "ended", "cancelled", note=_error(job["error_details"])))
    if dead := found["dead_letter"]:
        why = f"{dead['failure_reason']}; `signalbox dead-letters show {dead['id']}`"
        events.append(TimelineEvent(dead["last_failed_at"], "dead letter", dead["status"], note=why))
    return sorted(events, key=lambda event: datetime.fromisoformat(event.at))


def _attempt(one: _Facts) -> TimelineEvent:
    waited = _waited(one)
    notes = [*([f"waited {waited}"] if waited else []), *([f"on {one['worker_id']}"] if one["worker_id"] else [])]
    if one["error_code"]:
        notes = [f"{one['error_code']}: {one['error_message']}"]
    took = "" if one["duration_ms"] is None else show_duration(one["duration_ms"])
    return TimelineEvent(one["started_at"], f"attempt {one['attempt_number']}", one["status"], took, ", ".join(notes))


def _waited(one: _Facts) -> str:
    if not one["queued_at"]:
        return ""
    waited = datetime.fromisoformat(one["started_at"]) - datetime.fromisoformat(one["queued_at"])
    return show_duration(max(0.0, waited.total_seconds() * 1000))


def _order(one: _Facts) -> TimelineEvent:
    reason = (one["detail"] or {}).get("reason")
    return TimelineEvent(one["at"], one["action"], note=f"by {one['actor']}" + (f": {reason}" if reason else ""))


def _row(event: TimelineEvent) -> Row:
    return Row([show_instant(event.at), event.what, event.status, event.took], event.note)


def _facts(found: _Facts, clock: datetime) -> Iterator[tuple[str, Any]]:
    job = found["job"]
    yield "name", job["job_name"]
    yield "lane", f"{job['lane']}, priority {job['priority']}, {job['job_category']}"
    for name, column in (("tenant", "tenant"), ("subject", "subject_id"), ("correlation", "correlation_id"),
                         ("key", "idempotency_key"), ("cap key", "cap_key")):  # fmt: skip
        yield name, job[column]
    yield "tags", ", ".join(job["tags"] or [])
    yield "created", f"{show_instant(job['created_at'])}, {show_age(job['created_at'], clock)}"
    yield "attempts", f"{job['attempts']} of {job['max_attempts']}, each {show_duration(job['timeout_ms'])} at most"
    yield "took", "" if job["duration_ms"] is None else show_duration(job["duration_ms"])
    yield "throttled", _throttled(job)
    yield "progress", _progress(job)
    beat = job["heartbeat_at"]
    yield "heartbeat", show_age(beat, clock) if beat and job["status"] == "running" else ""
    yield "waits", _waits(found["waits"])
    yield "asked to stop", job["cancel_requested_at"] and show_instant(job["cancel_requested_at"])
    yield "error", _error(job["error_details"]) if job["status"] != "completed" else ""
    yield "group", _group(found["group"])
    yield "schedule", (found["schedule"] or {}).get("name")
    yield "parent", job["parent_job_id"]
    yield "payload", _value(job["payload"])
    yield "result", _value(job["result"])
    described = {one["key"]: one for one in found["files"]}
    for name in job["output_files"] or []:
        yield "file", name if name not in described else f"{name}, {_file(described[name])}"


def _file(one: _Facts) -> str:
    until = f", until {show_instant(one['kept_until'])}" if one["kept_until"] else ""
    return f"{one['bytes']:,} bytes of {one['content_type']}{until}"


def _waits(why: _Facts | None) -> str:
    """Say why it does not run, since when and until when."""
    if why is None:
        return ""
    until = f", until {show_instant(why['until'])}" if why["until"] else ""
    return f"{why['text']}, since {show_instant(why['since'])}{until}"


def _throttled(job: _Facts) -> str:
    """Say how often in a row the job was throttled; for a completed job that no longer matters."""
    if not job["throttles"] or job["status"] == "completed":
        return ""
    return f"{counted(job['throttles'], 'time')} since {show_instant(job['throttled_since'])}"


def _progress(job: _Facts) -> str:
    if job["status"] == "completed" or (job["status"] != "running" and not job["progress_message"]):
        return ""  # a message from an earlier piece would contradict the result
    trouble = "".join(f", {one}" for one in unwell(job))
    return f"{job['progress_percent']} %{trouble} {job['progress_message'] or ''}".rstrip()


def _error(error: _Facts | None) -> str:
    return f"{error.get('type')}: {error.get('message')}" if error else ""


def _group(group: _Facts | None) -> str:
    if not group:
        return ""
    ended = group["completed"] + group["failed"] + group["cancelled"]
    failed = f", {group['failed']:,} failed" if group["failed"] else ""
    return f"{group['id']}: {ended:,} of {group['total']:,} have ended{failed}"


def _value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if value else ""
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}… (--json shows all)"


def _around(what: str, jobs: Sequence[_Facts]) -> Iterator[Text]:
    for place, job in enumerate(jobs):
        how = job.get("dependency_type")
        policy = f", {how}, else {job['on_failure']}" if how else ""
        yield Text(f"{'' if place else chr(10)}{what} {job['id']} of {job['job_type']}: {job['status']}{policy}")
