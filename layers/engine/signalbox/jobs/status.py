"""Define a job's states and transitions in one table, which the database's trigger repeats and the docs draw."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class JobStatus(StrEnum):
    """Name the state of a job. Completed and cancelled are final."""

    PENDING = "pending"  # waits for its time, or for other jobs
    QUEUED = "queued"  # on its way through a lane
    RUNNING = "running"  # a worker holds its lease
    COMPLETED = "completed"
    FAILED = "failed"  # by an attempt, or by a job that it waits for; has a dead letter, and only a redrive restarts it
    CANCELLED = "cancelled"
    PAUSED = "paused"  # until somebody resumes it, or what it belongs to


_S = JobStatus
TRANSITIONS: Mapping[JobStatus, frozenset[JobStatus]] = {
    _S.PENDING: frozenset({_S.QUEUED, _S.FAILED, _S.CANCELLED, _S.PAUSED}),
    _S.QUEUED: frozenset({_S.RUNNING, _S.PENDING, _S.CANCELLED, _S.PAUSED}),
    _S.RUNNING: frozenset({_S.COMPLETED, _S.PENDING, _S.FAILED, _S.CANCELLED}),
    _S.PAUSED: frozenset({_S.PENDING, _S.FAILED, _S.CANCELLED}),
    _S.FAILED: frozenset({_S.PENDING}),
    _S.COMPLETED: frozenset(),
    _S.CANCELLED: frozenset(),
}
FINAL = frozenset({_S.COMPLETED, _S.FAILED, _S.CANCELLED})
