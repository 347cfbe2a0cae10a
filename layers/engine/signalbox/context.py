"""What a task receives, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from signalbox.budget import Budget
from signalbox.clients import Clients
from signalbox.database import Connection, Database
from signalbox.handoff import Handoff
from signalbox.log import Logger
from signalbox.metrics import TaskMetrics
from signalbox.registry import Registry


@dataclass(frozen=True, slots=True)
class Context:
    """One run's view of the world. Time enters as `now`; a task never asks the clock."""

    task: str
    slot: datetime
    now: datetime
    params: Any  # the task's own Params model, or None
    budget: Budget
    database: Database
    clients: Clients
    handoff: Handoff
    log: Logger
    metrics: TaskMetrics
    registry: Registry  # every task of this stack, the disabled ones left out
    worker_id: str

    @property
    def db(self) -> Connection:
        """The connection; each statement commits by itself but for those in `with db.transaction()`."""
        return self.database.connection()


@dataclass(frozen=True, slots=True)
class Done:
    """The run did its work, as far as its budget went."""

    items: int = 0
    more: bool = False  # work is left: the slot goes on in a continuation
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """There was nothing that the run could do, and that is no fault."""

    reason: str


Outcome = Done | Skipped


def drain(budget: Budget, step: Callable[[], int], *, size: int) -> Done:
    """Repeats a step that works on at most `size` items and commits, until one finds fewer or the budget is spent."""
    items = 0
    while not budget.spent:
        found = step()
        items += found
        if found < size:
            return Done(items)
    return Done(items, more=True)
