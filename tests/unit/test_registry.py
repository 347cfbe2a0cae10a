"""The registry finds or explains names, and imports no task before it runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

import pytest

from signalbox.errors import TaskUnknown
from signalbox.ledger.ledger import TRANSITIONS, RunStatus
from signalbox.packs.job_type import JobType
from signalbox.packs.registries import JobTypeRegistry, TaskRegistry
from signalbox.packs.suggest import nearest
from signalbox.packs.task import Task
from signalbox.tasks import TASKS


def test_an_unknown_task_is_answered_with_the_nearest() -> None:
    with pytest.raises(TaskUnknown, match="task 'swep_run' is not registered; did you mean 'sweep_runs'"):
        TaskRegistry(TASKS).find("swep_run")


def test_where_no_task_is_near_it_is_said_what_lists_them() -> None:
    with pytest.raises(TaskUnknown, match="task 'xyzzy' is not registered; `signalbox slots` lists the tasks"):
        TaskRegistry(TASKS).find("xyzzy")


@pytest.mark.parametrize(
    ("name", "names", "said"),
    [
        ("delay", ["delay_seconds", "at"], "; did you mean 'delay_seconds'?"),
        ("xyzzy", ["sweep_runs", "sync_stripe"], "; known are sweep_runs, sync_stripe"),
        ("x", map(str, range(30)), "; known are 0, 1, 10, 11, 12, 13, 14, 15, 16, 17 and 20 more"),
        ("x", [], "; no names are accepted here"),
    ],
)
def test_only_a_near_name_is_suggested(name: str, names: Iterable[str], said: str) -> None:
    assert nearest(name, names) == said


def test_a_name_registered_twice_is_refused_with_both_places() -> None:
    twice = [Task("a", "one", "pack.one"), Task("a", "other", "pack.other")]
    with pytest.raises(ValueError, match=r"\'a\' is registered twice: in pack\.one and in pack\.other"):
        TaskRegistry(twice)
    with pytest.raises(ValueError, match="job type 'a' is registered twice"):
        JobTypeRegistry([JobType("a", "one", "pack.one"), JobType("a", "other", "pack.other")])


def test_registering_a_task_imports_nothing_of_it() -> None:
    code = (
        "import sys; from signalbox.engine_pack import registry_of; registry_of([]);"
        "print([m for m in sys.modules if m.startswith('signalbox.tasks.')])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_only_a_run_at_work_can_become_anything() -> None:
    assert {status for status, targets in TRANSITIONS.items() if targets} == {RunStatus.RUNNING}
