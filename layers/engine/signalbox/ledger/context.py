"""Define what a task receives, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from psycopg.pq import TransactionStatus

from signalbox.aws.clients import Clients
from signalbox.aws.invoke_async import FunctionInvoker
from signalbox.budget import Budget
from signalbox.packs.environment import EnvironmentSettings
from signalbox.packs.registries import JobTypeRegistry, TaskRegistry
from signalbox.postgres.connection import Connection
from signalbox.runtime.log import Logger
from signalbox.runtime.metrics import TaskMetrics
from signalbox.runtime.settings import Settings

if TYPE_CHECKING:
    from signalbox.invocation import Resources
    from signalbox.publish.publisher import Publisher
    from signalbox.submit.new_job import NewJob, Submitted

PackSettings = TypeVar("PackSettings", bound=EnvironmentSettings)


@dataclass(frozen=True, slots=True)
class Context:
    """Hold one run's view of the world. Time enters as `now`; a task never asks the clock.

    The connection stays the same throughout. If it breaks, the run fails; the rest of a transaction never commits on
    another one.
    """

    task: str
    slot: datetime
    now: datetime
    params: Any  # the task's own Params model, or None
    budget: Budget
    db: Connection  # each statement commits by itself, except in `with db.transaction()`
    metrics: TaskMetrics
    worker_id: str
    resources: Resources
    cursor: str | None = None  # in a continuation: where the run before ended, as it said in Done

    @property
    def settings(self) -> Settings:
        return self.resources.settings

    def settings_of(self, model: type[PackSettings]) -> PackSettings:
        """Return the settings of a pack. Where they are wrong, the run fails with a list of all faults."""
        return self.resources.settings_of(model)

    @property
    def clients(self) -> Clients:
        """Return the clients of AWS, each made on first use."""
        return self.resources.clients

    @property
    def invoker(self) -> FunctionInvoker:
        """Return the invoker, which hands runs to the stack's functions."""
        return self.resources.invoker

    @property
    def log(self) -> Logger:
        return self.resources.log

    @property
    def all_tasks(self) -> TaskRegistry:
        """Return the tasks of all packs, including the disabled ones."""
        return self.resources.tasks

    @property
    def enabled_tasks(self) -> TaskRegistry:
        """Return the tasks that this stack runs."""
        return self.resources.enabled()

    @property
    def job_types(self) -> JobTypeRegistry:
        """Return the types of the jobs that this stack runs."""
        return self.resources.job_types

    @property
    def publisher(self) -> Publisher:
        """Return the publisher of jobs that were changed or submitted, for use after the commit."""
        return self.resources.publisher

    def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        """Store jobs, all or none, and send them; in a transaction, dispatch_jobs sends them after the commit."""
        from signalbox.submit.insert import submit

        submitted = submit(self.db, self.job_types, jobs, self.now)
        if self.db.info.transaction_status == TransactionStatus.IDLE:
            self.publisher.publish_submitted(submitted)
        return submitted


@dataclass(frozen=True, slots=True)
class Done:
    """Report that the run did its work, as far as its budget went."""

    items: int = 0
    more: bool = False  # work is left: a continuation of the slot does it
    reason: str | None = None
    detail: dict[str, Any] | None = None  # further facts for the answer; the ledger does not keep them
    cursor: str | None = None  # with `more`: where the continuation begins

    def __post_init__(self) -> None:
        # A task's own code may not be type-checked, and its result goes into the ledger.
        if type(self.items) is not int or self.items < 0:
            raise ValueError(f"a task returned {self.items!r} as its items: a whole number of at least 0 was expected")


@dataclass(frozen=True, slots=True)
class Skipped:
    """Report that there was nothing for the run to do, which is no fault."""

    reason: str


Outcome = Done | Skipped
