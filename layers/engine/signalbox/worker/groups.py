"""How many jobs of a kind one worker runs side by side, and who runs them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from signalbox.jobs.catalogue import Catalogue, Known
from signalbox.worker.core import Group


class Runner(Enum):
    """Who runs a type's jobs."""

    MAIN_THREAD = "main thread"  # types that compute, and those that need the sure time-out of a signal
    THREADS = "threads"
    LOOP = "event loop"


@dataclass(slots=True)
class JobGroup(Group):
    """Jobs that share a limit, and their runner."""

    runner: Runner = Runner.THREADS


class Groups:
    """Of an execution environment: they know how long their jobs take."""

    def __init__(self, catalogue: Catalogue, connections: int) -> None:
        self._catalogue, self._connections = catalogue, connections
        self._main = JobGroup("main thread", 1, runner=Runner.MAIN_THREAD)
        self._by_type: dict[str, JobGroup] = {}

    def of(self, job_type: str) -> JobGroup:
        group = self._by_type.get(job_type)
        if group is None:
            group = self._by_type[job_type] = self._make(job_type, self._catalogue.types.get(job_type))
        return group

    def threads_needed(self) -> int:
        """How many threads what is at work keeps busy."""
        return sum(min(g.limit, g.at_work) for g in self._by_type.values() if g.runner is Runner.THREADS)

    def _make(self, job_type: str, known: Known | None) -> JobGroup:
        if known is None:
            return JobGroup(job_type, 10)
        if known.type.side_by_side == 1:
            return self._main
        try:
            runner = Runner.LOOP if known.is_async else Runner.THREADS
        except Exception:  # its module can't be imported, which each of its jobs will say
            return JobGroup(job_type, 10)
        limit = known.side_by_side
        return JobGroup(job_type, min(limit, self._connections) if known.type.transactional else limit, runner=runner)
