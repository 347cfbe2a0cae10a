"""Show jobs as a table, one line a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.text import Text

from signalbox_cli.views.table import Column, Row, table
from signalbox_cli.views.times import show_age, show_duration, show_instant, show_span

Job = dict[str, Any]
_COLUMNS = (
    Column("id", ids=18),  # jobs of one minute have the first eight characters in common
    Column("type"),
    Column("status"),
    Column("lane", spare=2),
    Column("tenant"),
    Column("attempts", right=True, spare=3),
    Column("took", right=True, spare=1),
    Column("created"),
)


def job_table(jobs: Sequence[Job], width: int, clock: datetime) -> list[Text]:
    """Return one line per job, in the order given; leave out the tenant if no job has one."""
    rows = [_row(job, clock) for job in jobs]
    kept = [at for at, column in enumerate(_COLUMNS) if column.name != "tenant" or any(row.cells[at] for row in rows)]
    columns = [_COLUMNS[at] for at in kept]
    return table(columns, [Row([row.cells[at] for at in kept], row.note) for row in rows], width)


def _row(job: Job, clock: datetime) -> Row:
    took = job["duration_ms"]
    cells = [
        job["id"],
        job["job_type"],
        job["status"],
        job["lane"],
        job["tenant"] or "",
        f"{job['attempts']}/{job['max_attempts']}",
        "" if took is None else show_duration(took),
        show_age(job["created_at"], clock),
    ]
    return Row(cells, "; ".join(notes_of(job, clock)))


def notes_of(job: Job, clock: datetime) -> list[str]:
    """Return what the job's state alone does not tell."""
    notes = [job["job_name"]] if job["job_name"] else []
    if job["status"] == "running":
        notes += _running(job)
    elif job["status"] == "paused":
        notes.append(f"by {job['paused_by']}" if job["paused_by"] else "with what it belongs to")
    elif job["status"] == "pending":
        notes += _pending(job, clock)
    if job["error_type"] and job["status"] != "completed":
        notes.append(f"{job['error_type']}: {job['error_message']}")
    return notes


def _running(job: Job) -> list[str]:
    percent = [f"{job['progress_percent']} %"] if job["progress_percent"] else []
    message = [job["progress_message"]] if job["progress_message"] else []
    return [*unwell(job), *percent, *message, *(["is asked to stop"] if job["cancel_requested_at"] else [])]


def unwell(job: Mapping[str, Any]) -> list[str]:
    """Say what is wrong with the worker of a running job, if anything."""
    silent = job["silent_seconds"]
    found = [job["health_status"]] if job["health_status"] not in (None, "HEALTHY") else []
    return found if silent is None else [*found, f"silent for {show_span(timedelta(seconds=silent))}"]


def _pending(job: Job, clock: datetime) -> list[str]:
    if job["unmet_dependencies"]:
        return [f"waits for {job['unmet_dependencies']:,} others"]
    if held_by := job.get("held_by"):
        kind, _, key = held_by.partition(":")
        return [f"held by the cap of {kind} '{key}'"]
    at = job["scheduled_for"]
    if at is None or datetime.fromisoformat(at) <= clock:
        return ["is due"]
    return [f"not before {show_instant(at)}"]
