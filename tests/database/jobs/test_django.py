"""A Django project submits tasks in its transactions, and reads results after the worker ran them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import django
import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction
from psycopg.conninfo import conninfo_to_dict

from signalbox import JobRefused, Permanent
from signalbox.django.backend import SignalboxBackend, client_of, job_priority
from signalbox.django.framework import BaseTaskBackend, TaskResult, TaskResultDoesNotExist, TaskResultStatus
from signalbox.django.pack import DJANGO
from signalbox.testing.rows import count
from signalbox.testing.stage import Stage

JOBS = "signalbox.jobs"
REFUSALS = import_module(f"{BaseTaskBackend.__module__.partition('.backends')[0]}.exceptions")

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.support.django_project.settings"
django.setup()

from tests.support.django_project.tasks import OutOfStock, add, add_slowly, fail, return_attempt  # noqa: E402


class Project:
    """Hold the project and its stack's worker."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.lanes = stage.with_packs(DJANGO), stage.aws

    def work(self, result: TaskResult) -> TaskResult:
        """Work on the messages that have come, and read the result again."""
        self.stage.work(*(message["job_id"] for message in self.lanes.take()))
        result.refresh()
        return result


@pytest.fixture
def project(dsn: str, stage: Stage) -> Iterator[Project]:
    parts = conninfo_to_dict(dsn)
    given = {"NAME": parts["dbname"], "USER": parts["user"], "HOST": parts["host"], "PORT": parts.get("port", "")}
    connections.databases["default"].update(given)
    yield Project(stage)
    client_of.cache_clear()
    connections.close_all()
    del connections["default"]


def test_task_is_sent_after_the_commit_and_run(project: Project, db: psycopg.Connection) -> None:
    with transaction.atomic():
        result = add.enqueue(1, other=2)
        assert (count(db, JOBS), len(project.lanes.sent)) == (0, 0)
    assert len(project.lanes.sent) == 1
    assert add.get_result(result.id).status == TaskResultStatus.READY

    done = project.work(result)
    assert (done.status, done.attempts, done.errors) == (TaskResultStatus.SUCCESSFUL, 1, [])
    assert done.return_value == {"sum": 3, "database": db.info.dbname}
    times = [done.enqueued_at, done.started_at, done.last_attempted_at, done.finished_at]
    assert times == sorted(filter(None, times))


def test_rollback_takes_the_task_back(project: Project, db: psycopg.Connection) -> None:
    with transaction.atomic():
        result = add.enqueue(1)
        transaction.set_rollback(True)
    assert (count(db, JOBS), len(project.lanes.sent)) == (0, 0)
    with pytest.raises(TaskResultDoesNotExist):
        add.get_result(result.id)


def test_savepoint_takes_its_own_tasks_back(project: Project, db: psycopg.Connection) -> None:
    with transaction.atomic():
        add.enqueue(1)
        with transaction.atomic():
            add.enqueue(2)
            transaction.set_rollback(True)
    assert (count(db, JOBS), len(project.lanes.sent)) == (1, 1)


@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ("own", OutOfStock, "nothing is left"),
        ("python", ValueError, "no such way to fail"),
        ("permanent", Permanent, "never"),
    ],
)
def test_failed_task_has_its_error(project: Project, how: str, kind: type[Exception], words: str) -> None:
    failed = project.work(fail.enqueue(how))
    assert (failed.status, failed.attempts, failed.is_finished) == (TaskResultStatus.FAILED, 1, True)
    [error] = failed.errors
    assert error.exception_class is kind
    assert words in error.traceback
    assert "tasks.py" in error.traceback
    with pytest.raises(ValueError, match="Task failed"):
        _ = failed.return_value


def test_error_of_the_database_quotes_no_row(project: Project) -> None:
    [error] = project.work(fail.enqueue("database")).errors
    assert error.exception_class.__name__ == "IntegrityError"
    assert "job_groups_pkey" in error.traceback
    assert "secret" not in error.traceback


def test_backend_may_allow_further_attempts(project: Project, db: psycopg.Connection) -> None:
    result = project.work(fail.using(backend="patient").enqueue("own"))
    assert (result.status, len(result.errors)) == (TaskResultStatus.READY, 1)
    db.execute("UPDATE signalbox.jobs SET scheduled_for = now()")
    while project.lanes.sent:
        project.work(result)
        db.execute("UPDATE signalbox.jobs SET scheduled_for = now() WHERE status = 'pending'")
    assert (result.status, result.attempts, len(result.errors)) == (TaskResultStatus.FAILED, 3, 3)


def test_coroutine_is_a_task(project: Project) -> None:
    assert project.work(add_slowly.enqueue(1, 2)).return_value == 3


def test_task_knows_its_own_result(project: Project) -> None:
    assert project.work(return_attempt.enqueue()).return_value == ["RUNNING", 1]


def test_cancelled_task_has_failed(project: Project, db: psycopg.Connection) -> None:
    result = add.enqueue(1)
    db.execute(
        "UPDATE signalbox.jobs SET status = 'cancelled', send_at = NULL, completed_at = now(), updated_at = now()"
    )
    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 0)


def test_task_waits_for_its_time(project: Project, db: psycopg.Connection) -> None:
    at = datetime.now(UTC) + timedelta(hours=1)
    result = add.using(run_after=at).enqueue(1)
    assert len(project.lanes.sent) == 0
    assert db.execute("SELECT status, scheduled_for FROM signalbox.jobs").fetchall() == [("pending", at)]
    assert add.get_result(result.id).task.run_after == at


@pytest.mark.parametrize(
    ("priority", "queue", "stored"),
    [
        (0, "default", (5, "normal")),
        (100, "default", (1, "high")),
        (-100, "low", (10, "low")),
        (0, "mail", (5, "high")),
    ],
)
def test_priority_and_queue_choose_the_lane(
    project: Project, db: psycopg.Connection, priority: int, queue: str, stored: tuple[int, str]
) -> None:
    result = add.using(priority=priority, queue_name=queue).enqueue(1)
    assert db.execute("SELECT priority, lane FROM signalbox.jobs").fetchall() == [stored]
    assert (result.task.priority, add.get_result(result.id).task.queue_name) == (priority, queue)


def test_priorities_keep_their_order() -> None:
    ours = [job_priority(theirs) for theirs in range(-100, 101)]
    assert ours == sorted(ours, reverse=True)
    assert set(ours) == set(range(1, 11))


def test_results_of_other_tasks_are_not_given_out(project: Project) -> None:
    result = add.enqueue(1)
    with pytest.raises(REFUSALS.TaskResultMismatch):
        fail.get_result(result.id)
    with pytest.raises(TaskResultDoesNotExist):
        add.using(backend="patient").get_result(result.id)
    with pytest.raises(TaskResultDoesNotExist):
        add.get_result("no id")


def test_arguments_are_json(project: Project) -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        fail.enqueue(datetime.now(UTC))
    with pytest.raises(JobRefused, match="NUL"):
        fail.enqueue("\0")


def test_unknown_queue_is_refused() -> None:
    with pytest.raises(REFUSALS.TaskException, match="Queue 'letters' is not valid"):
        add.using(queue_name="letters")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"OPTIONS": {"STAKC": "signalbox"}}, "unknown option STAKC"),
        ({"QUEUES": ["default", "mail"]}, "LANES gives queue 'mail' none of the lanes"),
    ],
)
def test_mistaken_settings_are_refused(params: dict[str, Any], words: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=words):
        SignalboxBackend("default", params)
