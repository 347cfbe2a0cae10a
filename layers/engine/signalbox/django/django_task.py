"""Run a task of a Django project, which `enqueue` has submitted.

The worker's function has the project's DJANGO_SETTINGS_MODULE, and its own connections to the project's databases.
"""

from __future__ import annotations

import django
import psycopg
from django.apps import apps
from django.db import connections
from django.utils.module_loading import import_string
from pydantic import Field, JsonValue

from signalbox.django.framework import Task, TaskContext, normalize_json
from signalbox.packs.job_payload import JobPayload
from signalbox.packs.outcome import Completed, JobFailed, Transient
from signalbox.postgres.error_details import without_details
from signalbox.worker.job_context import JobContext


class DjangoTask(JobPayload):
    """Name a task by its path, and the arguments of the call."""

    task: str = Field(min_length=1)
    args: list[JsonValue] = Field(default_factory=list)
    kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    backend: str = "default"


def django_task(context: JobContext) -> Completed:
    """Call the task. Its return value is the job's result, and its error that of the attempt."""
    if not apps.ready:
        django.setup()
    payload: DjangoTask = context.payload
    try:
        task: Task = import_string(payload.task)
        given = [_context_of(task.using(backend=payload.backend), context.job.id)] if task.takes_context else []
        return Completed(normalize_json(task.call(*given, *payload.args, **payload.kwargs)))
    except JobFailed:
        raise
    except Exception as error:
        raise _by_path(error) from error
    finally:
        connections.close_all()


def _context_of(task: Task, job_id: str) -> TaskContext:
    return TaskContext(task_result=task.get_backend().get_result(job_id))


def _by_path(error: Exception) -> Exception:
    """Return the error under the whole path of its class: a job keeps only the name, and Django needs the path."""
    kind, cause = type(error), error.__cause__
    words = without_details(cause) if isinstance(cause, psycopg.Error) else str(error)
    named: type[Exception] = type(f"{kind.__module__}.{kind.__qualname__}", (Transient,), {})
    return named(words).with_traceback(error.__traceback__)
