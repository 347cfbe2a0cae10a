"""Keep the job types and tasks that a stack knows, by name; each job type's module is imported when first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import Any

from signalbox.errors import JobTypeUnknown, TaskUnknown
from signalbox.packs.job_payload import JobPayload
from signalbox.packs.job_type import JobType
from signalbox.packs.pack import Pack
from signalbox.packs.suggest import nearest
from signalbox.packs.task import Task

LONGEST_KEY = 200


class RegisteredJobType:
    """Join one job type with what its module holds."""

    def __init__(self, job_type: JobType, tasks: TaskRegistry | None = None) -> None:
        self.type = job_type
        self._tasks = tasks

    @cached_property
    def model(self) -> type[JobPayload]:
        model: type[JobPayload] = getattr(self._module, self.type.model_name)
        return model

    @cached_property
    def perform(self) -> Callable[[Any], Any]:
        perform: Callable[[Any], Any] = getattr(self._module, self.type.name)
        return perform

    @cached_property
    def is_async(self) -> bool:
        return iscoroutinefunction(self.perform)

    def cap_key(self, payload: JobPayload, tenant: str | None) -> str:
        """Return the key that the type's own cap counts a job by, where it counts by more than the type."""
        by_key = self.type.cap is not None and self.type.cap.per == "key"
        own = f" {self._module.cap_key(payload)}" if by_key else ""
        return f"{self.type.name} {tenant or '-'}{own}"[:LONGEST_KEY]

    @property
    def side_by_side(self) -> int:
        """Return how many of its jobs one worker runs at once."""
        return self.type.side_by_side or (100 if self.is_async else 10)

    @cached_property
    def upgrade(self) -> Callable[[dict[str, Any], int], dict[str, Any]] | None:
        """Return the function that upgrades a payload of an older version."""
        return getattr(self._module, "upgrade", None)

    @cached_property
    def shapes_jobs(self) -> bool:
        """Say whether the type makes lane, name or tags of the payload."""
        return bool(self.type.route or self.type.job_name or self.type.tags)

    @property
    def has_check(self) -> bool:
        """Say whether the type's module refuses payloads by what this stack can run."""
        return self._check is not None

    def check(self, payload: JobPayload) -> None:
        """Refuse a payload that this stack can't run, where the type's module has a `check` and the tasks are known."""
        if self._tasks is not None and self._check is not None:
            self._check(payload, self._tasks)

    @cached_property
    def _check(self) -> Callable[[JobPayload, TaskRegistry], None] | None:
        return getattr(self._module, "check", None)

    @cached_property
    def _module(self) -> Any:
        return import_module(self.type.module)


class JobTypeRegistry:
    """Hold the job types of the engine and the packs; with `tasks`, refuse jobs that would run an unknown task."""

    @staticmethod
    def of(packs: Sequence[Pack], tasks: TaskRegistry | None = None) -> JobTypeRegistry:
        """Return the types of these packs, with their other names."""
        registry = JobTypeRegistry((one for pack in packs for one in pack.job_types), tasks)
        registry.aliases = {name: one for pack in packs for name, one in pack.aliases.items()}
        registry.reserved = {name: why for pack in packs for name, why in pack.reserved.items()}
        for name, target in registry.aliases.items():
            if target not in registry.by_name or name in registry.by_name:
                raise ValueError(
                    f"'{name}' can't be another name of job type '{target}': a type has it, or none has that"
                )
        return registry

    def __init__(self, types: Iterable[JobType], tasks: TaskRegistry | None = None) -> None:
        self.aliases: Mapping[str, str] = {}
        self.reserved: Mapping[str, str] = {}
        by_name: dict[str, RegisteredJobType] = {}
        for job_type in types:
            if job_type.name in by_name:
                raise ValueError(f"job type '{job_type.name}' is registered twice")
            by_name[job_type.name] = RegisteredJobType(job_type, tasks)
        self.by_name: Mapping[str, RegisteredJobType] = MappingProxyType(by_name)

    def __iter__(self) -> Iterator[JobType]:
        return (known.type for known in self.by_name.values())

    def find(self, name: str) -> RegisteredJobType:
        """Return the type, also by another name of it, or raise an error that names the nearest one."""
        if known := self.by_name.get(name) or self.by_name.get(self.aliases.get(name, "")):
            return known
        if why := self.reserved.get(name):
            raise JobTypeUnknown(f"there is no job type '{name}': {why}")
        listed = "docs/job-types.md lists the engine's, and each pack's JOB_TYPES its own"
        raise JobTypeUnknown(f"job type '{name}' is not registered{nearest(name, self.by_name, listed)}")


class TaskRegistry:
    """Hold the tasks of the engine and of the packs that a stack runs."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        by_name: dict[str, Task] = {}
        for task in tasks:
            known = by_name.get(task.name)
            if known is not None and not known.stand_in:
                raise ValueError(f"task '{task.name}' is registered twice: in {known.module} and in {task.module}")
            by_name[task.name] = task
        self.by_name: Mapping[str, Task] = MappingProxyType(by_name)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.by_name.values())

    def names(self) -> list[str]:
        return sorted(self.by_name)

    def find(self, name: str) -> Task:
        """Return the task, or raise an error that names the nearest one."""
        if task := self.by_name.get(name):
            return task
        listed = "`signalbox slots` lists the tasks"
        raise TaskUnknown(f"task '{name}' is not registered{nearest(name, self.by_name, listed)}")
