"""Define the tasks that this stack knows: names, schedules and policies, declared as values and looked up by name.

A task's module is named by a string and imported when the task is first run, so a stack with forty tasks starts as fast
as one with four.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from signalbox.packs.schedule import Schedule

MINUTE = "cron(* * * * ? *)"


class CatchUp(StrEnum):
    """Say what happens to slots that were missed."""

    ALL = "all"  # each one runs, oldest first
    LATEST = "latest"  # only the newest runs: it does the work of those before it
    SKIP = "skip"  # none runs: they are recorded, and the next slot does the work


class Overlap(StrEnum):
    """Say what happens when a slot comes while another slot of the same task is running."""

    ALLOW = "allow"  # both run, each with its own data
    FORBID = "forbid"  # the later one is recorded as missed, and the catch-up policy decides


@dataclass(frozen=True, slots=True)
class Task:
    """Describe one kind of scheduled maintenance."""

    name: str
    summary: str
    module: str  # holds a function of the task's name, and a model `Params` where it takes params
    schedule: str | None = None  # as in the rule; None: run only by hand or by other tasks
    function: Literal["archiver", "poller"] = "archiver"
    catch_up: CatchUp = CatchUp.SKIP
    max_lateness: timedelta = timedelta(days=1)  # a slot missed for longer is not caught up
    overlap: Overlap = Overlap.ALLOW
    retention: timedelta = timedelta(days=90)  # of its runs in the ledger
    stand_in: bool = False  # gives way to a pack's task of the same name

    def slot_of(self, instant: datetime) -> datetime:
        """Return the instant that a run at this time is for. A task without a schedule has a slot each minute."""
        return Schedule.parse(self.schedule or MINUTE).slot_of(instant)
