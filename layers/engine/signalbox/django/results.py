"""Make Django's result of a task from the rows of its job and of the job's attempts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.utils.module_loading import import_string

import signalbox
from signalbox.django.framework import Task, TaskError, TaskResult, TaskResultStatus
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
_STATUS = {
    "running": TaskResultStatus.RUNNING,
    "completed": TaskResultStatus.SUCCESSFUL,
    "failed": TaskResultStatus.FAILED,
    "cancelled": TaskResultStatus.FAILED,
}
FAILED = ("failed", "timeout", "lost")  # attempts that have an error


def read_result(connection: Any, id_: UUID, backend: str) -> TaskResult | None:
    """Return the result of one task, if the backend has submitted it."""
    with connection.cursor() as cursor:
        cursor.execute(SQL["read"], {"id": id_, "backend": backend})
        row = cursor.fetchone()
    if row is None:
        return None
    payload, metadata, status, value, run_after, created_at, began_at, started_at, ended_at, worker, attempts = row
    payload, attempts = _from_json(payload), _from_json(attempts)
    result = TaskResult(
        task=_task_of(payload, _from_json(metadata), run_after),
        id=str(id_),
        status=_STATUS.get(status, TaskResultStatus.READY),
        enqueued_at=created_at,
        started_at=began_at,
        finished_at=ended_at,
        last_attempted_at=started_at,
        args=payload["args"],
        kwargs=payload["kwargs"],
        backend=backend,
        errors=[_error_of(attempt) for attempt in attempts if attempt["status"] in FAILED],
        worker_ids=[attempt["worker"] for attempt in attempts] + ([worker] if worker else []),
    )
    object.__setattr__(result, "_return_value", _from_json(value))
    return result


def _task_of(payload: Mapping[str, Any], metadata: Mapping[str, Any], run_after: Any) -> Task:
    task: Task = import_string(payload["task"])
    return task.using(
        priority=metadata["priority"],
        queue_name=metadata["queue_name"],
        run_after=run_after,
        backend=payload["backend"],
    )


def _error_of(attempt: Mapping[str, Any]) -> TaskError:
    """Name the error's class by its path. Only its last line is kept of a traceback."""
    kind = attempt["type"] or "Exception"
    words = f"{kind}: {attempt['message']}" + (f" ({attempt['at']})" if attempt["at"] else "")
    return TaskError(exception_class_path=_path_of(kind), traceback=words)


def _path_of(kind: str) -> str:
    """Return the path of an error's class. The engine's own errors and Python's are known by name alone."""
    if "." in kind:
        return kind
    return f"signalbox.{kind}" if kind in signalbox.__all__ else f"builtins.{kind}"


def _from_json(value: Any) -> Any:
    """Parse jsonb that Django leaves as text; another reader on the same connection may have parsed it."""
    return json.loads(value) if isinstance(value, str) else value
