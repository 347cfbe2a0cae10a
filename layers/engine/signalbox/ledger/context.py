"""What a task receives, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from psycopg.pq import TransactionStatus

from signalbox.aws.clients import Clients
from signalbox.aws.invoke_async import FunctionInvoker
from signalbox.budget import Budget
from signalbox.packs.registries import JobTypeRegistry, TaskRegistry
from signalbox.postgres.connection import Connection
from signalbox.runtime.log import Logger
from signalbox.runtime.metrics import TaskMetrics
from signalbox.runtime.settings import Settings

if TYPE_CHECKING:
    from signalbox.publish.publisher import Publisher
    from signalbox.submit.new_job import NewJob, Submitted


@dataclass(frozen=True, slots=True)
class Context:
    """One run's view of the world. Time enters as `now`; a task never asks the clock.

    The connection is the same all through: one that breaks fails the run, and never does the rest of a transaction
    commit on another.
    """

    task: str
    slot: datetime
    now: datetime
    params: Any  # the task's own Params model, or None
    budget: Budget
    db: Connection  # each statement commits by itself but for those in `with db.transaction()`
    clients: Clients
    invoker: FunctionInvoker
    log: Logger
    metrics: TaskMetrics
    enabled_tasks: TaskRegistry  # the tasks that this stack runs
    all_tasks: TaskRegistry  # those, and the disabled ones
    worker_id: str
    job_types: JobTypeRegistry  # the job types that it runs
    settings: Settings

    @property
    def publisher(self) -> Publisher:
        """For jobs that were changed or submitted, once that is committed."""
        from signalbox.publish.publisher import Publisher  # few tasks change a job

        return Publisher(self.clients, self.invoker.stack, self.settings.event_bus, self.log, self.settings.job_events)

    def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        """Stores jobs, all or none, and sends them. In a transaction of the task's they come and go with it, and
        dispatch_jobs sends them, within a minute."""
        from signalbox.submit.insert import submit

        submitted = submit(self.db, self.job_types, jobs, self.now)
        if self.db.info.transaction_status == TransactionStatus.IDLE:
            self.publisher.publish_submitted(submitted)
        return submitted


@dataclass(frozen=True, slots=True)
class Done:
    """The run did its work, as far as its budget went."""

    items: int = 0
    more: bool = False  # work is left: the slot goes on in a continuation
    reason: str | None = None
    detail: dict[str, Any] | None = None  # what the answer tells beyond the items; the ledger does not keep it

    def __post_init__(self) -> None:
        # A task's own code may not be type-checked, and what comes of it goes into the ledger.
        if type(self.items) is not int or self.items < 0:
            raise ValueError(f"a task answered {self.items!r} as its items: a whole number from 0 on was expected")


@dataclass(frozen=True, slots=True)
class Skipped:
    """There was nothing that the run could do, and that is no fault."""

    reason: str


Outcome = Done | Skipped
