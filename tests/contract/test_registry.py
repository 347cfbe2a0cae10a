"""Each task is a module on the registry's list, no more and no less, and so is its event."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from importlib import import_module

import pytest

from signalbox.engine_pack import registry_of
from signalbox.packs.schedule import Schedule
from signalbox.packs.task import Task
from tests.support.template import PACKS, ROOT

TASKS = list(registry_of(PACKS))

each_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


def test_modules_beside_the_tasks_and_registered_tasks_match() -> None:
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts[2:])
        for path in ROOT.glob("layers/*/*/tasks/*.py")
        if path.stem != "__init__"
    }

    # The engine's stand-ins too, which give way where a pack brings the task itself.
    assert {task.module for task in [*TASKS, *registry_of([])]} == modules


@each_task
def test_a_task_is_the_function_of_its_module_that_bears_its_name(task: Task) -> None:
    function = getattr(import_module(task.module), task.name)

    alone = [one.module for one in TASKS].count(task.module) == 1
    assert task.module.rpartition(".")[2] == task.name or not alone
    assert len(inspect.signature(function).parameters) == 1, "a task takes its context and nothing else"


@pytest.mark.parametrize("schedule", sorted({task.schedule for task in TASKS if task.schedule}))
def test_a_tasks_schedule_is_one_that_fires(schedule: str) -> None:
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)

    assert Schedule.parse(schedule).next_after(now) > now


@each_task
def test_a_task_says_what_it_does(task: Task) -> None:
    assert task.summary
    assert not task.summary.endswith(".")
