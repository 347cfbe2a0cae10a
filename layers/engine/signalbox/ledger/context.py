"""What a task receives, and what it answers."""

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
    metrics: TaskMetrics
    worker_id: str
    resources: Resources

    @property
    def settings(self) -> Settings:
        return self.resources.settings

    def settings_of(self, model: type[PackSettings]) -> PackSettings:
        """Return the settings of a pack's own; where they are wrong, the run fails with a list of all faults."""
        return self.resources.settings_of(model)

    @property
    def clients(self) -> Clients:
        """Return the clients of AWS, each made on first use."""
        return self.resources.clients

    @property
    def invoker(self) -> FunctionInvoker:
        """Return what hands runs to the stack's functions."""
        return self.resources.invoker

    @property
    def log(self) -> Logger:
        return self.resources.log

    @property
    def all_tasks(self) -> TaskRegistry:
        """Return the tasks of all packs, the disabled ones with them."""
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
        """Return what publishes jobs that were changed or submitted, once that is committed."""
        return self.resources.publisher

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
