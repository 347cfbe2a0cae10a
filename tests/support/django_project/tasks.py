"""Define the project's tasks."""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

from django.db import connection

from signalbox import Permanent

try:
    from django.tasks import TaskContext, task
except ModuleNotFoundError:
    from django_tasks import TaskContext, task


class OutOfStock(Exception):
    """Stand for an error of the project's own."""


@task
def add(one: int, other: int = 1) -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database()")
        return {"sum": one + other, "database": cursor.fetchone()[0]}


@task()
async def add_slowly(one: int, other: int) -> int:
    return one + other


@task(takes_context=True)
def return_attempt(context: TaskContext) -> tuple[str, int]:
    return context.task_result.status, context.attempt


@task
def fail(how: str) -> None:
    match how:
        case "own":
            raise OutOfStock("nothing is left")
        case "permanent":
            raise Permanent("never")
        case "database":
            with connection.cursor() as cursor:
                cursor.execute("INSERT INTO signalbox.job_groups (id) VALUES ('secret'), ('secret')")
    raise ValueError("no such way to fail")
