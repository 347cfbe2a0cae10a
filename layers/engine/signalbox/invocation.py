"""Describe one invocation of a function, and what its execution environment keeps between invocations."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from os import urandom
from typing import TYPE_CHECKING, TypeVar

from signalbox.access.caller import Caller
from signalbox.aws.clients import Clients
from signalbox.aws.invoke_async import FunctionInvoker
from signalbox.packs.environment import EnvironmentSettings
from signalbox.packs.pack import Pack
from signalbox.packs.registries import JobTypeRegistry, TaskRegistry
from signalbox.postgres.async_connection import AsyncDatabasePool
from signalbox.postgres.connection import Database
from signalbox.postgres.pool import DatabasePool
from signalbox.runtime.log import Logger
from signalbox.runtime.settings import Settings

if TYPE_CHECKING:
    from signalbox.publish.publisher import Publisher

PackSettings = TypeVar("PackSettings", bound=EnvironmentSettings)


@dataclass(frozen=True, slots=True)
class Invocation:
    """Describe one invocation, as Lambda reports it."""

    request_id: str
    clock: datetime  # read once, by the handler
    ends_at: float  # on the monotonic clock
    token: str = field(default_factory=lambda: urandom(4).hex())
    # Who asks by the HTTP API. None invokes the function itself, which IAM allows or not, and may ask for everything.
    caller: Caller | None = None

    @staticmethod
    def of(request_id: str, clock: datetime, seconds_left: float) -> Invocation:
        return Invocation(request_id, clock, time.monotonic() + seconds_left)

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.ends_at - time.monotonic())

    @property
    def tenant(self) -> str | None:
        """Return the tenant whose jobs alone the caller may meet, or None for one who may meet all."""
        return self.caller.tenant if self.caller else None

    @property
    def worker_id(self) -> str:
        """Return an id of this attempt alone: Lambda repeats request ids, and may deliver one twice at once."""
        return f"{self.request_id}/{self.token}"


@dataclass(frozen=True, slots=True)
class Resources:
    """Hold what the runs of an execution environment share."""

    settings: Settings
    tasks: TaskRegistry
    database: Database
    pool: DatabasePool  # that jobs borrow from
    async_pool: AsyncDatabasePool  # that `async def` jobs borrow from
    clients: Clients
    log: Logger
    job_types: JobTypeRegistry
    packs: tuple[Pack, ...]
    node: str = ""  # the execution environment, as its log stream names it
    readers: DatabasePool | None = None  # of a log-in that can only read, where the stack has one
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def invoker(self) -> FunctionInvoker:
        return FunctionInvoker(self.clients, self.settings.stack)

    @property
    def publisher(self) -> Publisher:
        from signalbox.publish.publisher import Publisher  # few invocations change a job

        return Publisher(self.clients, self.settings.stack, self.settings.event_bus, self.log, self.settings.job_events)

    def settings_of(self, model: type[PackSettings]) -> PackSettings:
        """Return the settings of a pack."""
        return model.read(self.environ)

    def enabled(self) -> TaskRegistry:
        """Return the tasks that this stack runs."""
        disabled = self.settings.disabled_tasks
        if not disabled:
            return self.tasks
        return TaskRegistry(task for task in self.tasks if task.name not in disabled)
