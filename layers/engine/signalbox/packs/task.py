"""Which tasks this stack knows: names, schedules and policies, declared as values and looked up by name.

A task's module is named by a string and imported when the task is first run, so a stack with forty tasks starts as
fast as one with four.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from signalbox.errors import TaskUnknown
from signalbox.packs.schedule import Schedule

MINUTE = "cron(* * * * ? *)"
_NEAR = 0.6  # of difflib's ratio
_MOST_LISTED = 10


class CatchUp(StrEnum):
    """What happens to slots that were missed."""

    ALL = "all"  # each one runs, oldest first
    LATEST = "latest"  # only the newest runs: it does the work of those before it
    SKIP = "skip"  # none runs: they are recorded, and the next slot does the work


class Overlap(StrEnum):
    """What happens when a slot comes while another slot of the same task is at work."""

    ALLOW = "allow"  # both run, each with its own data
    FORBID = "forbid"  # the later one is recorded as missed, and the catch-up policy decides


@dataclass(frozen=True, slots=True)
class Task:
    """One kind of scheduled maintenance."""

    name: str
    summary: str
    module: str  # holds a function of the task's name, and a model `Params` where it takes params
    schedule: str | None = None  # as in the rule; None: by hand or by other tasks only
    function: Literal["archiver", "poller"] = "archiver"
    catch_up: CatchUp = CatchUp.SKIP
    max_lateness: timedelta = timedelta(days=1)  # a slot missed for longer is not caught up
    overlap: Overlap = Overlap.ALLOW
    retention: timedelta = timedelta(days=90)  # of its runs in the ledger
    stand_in: bool = False  # gives way to a pack's task of the same name

    def slot_of(self, instant: datetime) -> datetime:
        """The instant that a run at this time is for; a task without a schedule has a slot each minute."""
        return Schedule.parse(self.schedule or MINUTE).slot_of(instant)


class Registry:
    """The tasks of the engine and of the packs that a stack runs."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        by_name: dict[str, Task] = {}
        for task in tasks:
            known = by_name.get(task.name)
            if known is not None and not known.stand_in:
                raise ValueError(f"task '{task.name}' is registered twice: in {known.module} and in {task.module}")
            by_name[task.name] = task
        self.tasks: Mapping[str, Task] = MappingProxyType(by_name)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks.values())

    def names(self) -> list[str]:
        return sorted(self.tasks)

    def find(self, name: str) -> Task:
        """The task, or an error that names the nearest one."""
        if task := self.tasks.get(name):
            return task
        listed = "`signalbox slots` lists the tasks"
        raise TaskUnknown(f"task '{name}' is not registered{nearest(name, self.tasks, listed)}")


def nearest(name: str, known: Iterable[str], listed: str | None = None) -> str:
    """The end of a sentence about an unknown name: the known one it was probably meant to be, or which there are.

    `listed` says what lists them, where there are too many for a line.
    """
    from difflib import get_close_matches

    names = sorted(known)
    begun = [one for one in names if name and one.startswith(name)]
    if close := get_close_matches(name, names, n=1, cutoff=_NEAR) or begun:
        return f"; did you mean '{close[0]}'?"
    if len(names) > _MOST_LISTED:
        return f"; {listed or _some(names)}"
    return f"; known are {', '.join(names)}" if names else "; none is taken here"


def _some(names: list[str]) -> str:
    return f"known are {', '.join(names[:_MOST_LISTED])} and {len(names) - _MOST_LISTED} more"
