"""Submit Django's tasks: `enqueue` stores a job in the transaction of the project's database.

    TASKS = {"default": {"BACKEND": "signalbox.django.backend.SignalboxBackend", "OPTIONS": {"STACK": "signalbox"}}}

A task is sent once the transaction is committed, and never if it is rolled back.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils import timezone

from signalbox.client.client import Client
from signalbox.django.framework import (
    BaseTaskBackend,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    normalize_json,
    task_enqueued,
)
from signalbox.django.pack import DJANGO
from signalbox.django.results import read_result
from signalbox.packs.job_type import Lane
from signalbox.submit.new_job import NewJob

OPTIONS = {"STACK", "DATABASE", "LANES", "MAX_ATTEMPTS"}
DEFAULT_QUEUE = "default"


class SignalboxBackend(BaseTaskBackend):  # type: ignore[misc] # Django has no types
    """Submit tasks as jobs of the type `django_task`, and read their results.

    The queue `default` uses the lane of each task's priority. Any other queue is a lane, by its own name or by the name
    that the option LANES gives it.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, {"QUEUES": [DEFAULT_QUEUE, *Lane], **params})
        if unknown := sorted(set(self.options) - OPTIONS):
            raise ImproperlyConfigured(f"TASKS['{alias}']: unknown option {unknown[0]}; known are {sorted(OPTIONS)}")
        self._lanes = dict.fromkeys(Lane) | {lane: lane for lane in Lane} | self.options.get("LANES", {})
        for queue in sorted(self.queues - {DEFAULT_QUEUE}):
            if self._lanes.get(queue) not in list(Lane):
                raise ImproperlyConfigured(f"TASKS['{alias}']: LANES gives queue '{queue}' none of the lanes {[*Lane]}")
        self._database = self.options.get("DATABASE", "default")

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Submit the task in the transaction that is open, or at once where there is none."""
        self.validate_task(task)
        given = {"args": normalize_json(args), "kwargs": normalize_json(kwargs)}
        job = NewJob(
            "django_task",
            {"task": task.module_path, "backend": self.alias, **given},
            priority=job_priority(task.priority),
            lane=self._lanes.get(task.queue_name),
            at=_aware(task.run_after),
            max_attempts=self.options.get("MAX_ATTEMPTS"),
            metadata={"queue_name": task.queue_name, "priority": task.priority},
        )
        [submitted] = client_of(self.options.get("STACK")).submit(connections[self._database], [job])
        result = TaskResult(
            task=task,
            id=submitted.id,
            status=TaskResultStatus.READY,
            enqueued_at=timezone.now(),
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            backend=self.alias,
            errors=[],
            worker_ids=[],
            **given,
        )
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult:
        """Return a task's result; if the task has failed, with the errors of all its attempts."""
        try:
            found = read_result(connections[self._database], UUID(result_id), self.alias)
        except ValueError:
            found = None
        if found is None:
            raise TaskResultDoesNotExist(result_id)
        return found


@cache
def client_of(stack: str | None) -> Client:
    """Return the client of the process: Django makes a backend for each thread."""
    return Client(stack, [DJANGO])


def job_priority(priority: int) -> int:
    """Return the job's priority, 1 first to 10, for one of Django's, 100 first to -100."""
    return 5 - round(priority * (4 if priority > 0 else 5) / 100)


def _aware(instant: Any) -> Any:
    return timezone.make_aware(instant) if instant is not None and timezone.is_naive(instant) else instant
