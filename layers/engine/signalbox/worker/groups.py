"""Decide how many jobs of a kind one worker runs side by side, and which runner runs them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from signalbox.packs.registries import JobTypeRegistry, RegisteredJobType

# Jobs of one kind that take this long together begin with one statement. A crash at that moment charges also those
# whose code it did not reach.
CHUNK_SECONDS = 0.02


class Runner(Enum):
    """Name what runs a type's jobs."""

    MAIN_THREAD = "main thread"  # types that compute, and those that need the reliable time-out of a signal
    THREADS = "threads"
    LOOP = "event loop"


@dataclass(slots=True)
class TypeGroup:
    """Group jobs that share a limit: those of one type, or all that need the main thread."""

    name: str
    limit: int
    runner: Runner = Runner.THREADS
    at_work: int = 0
    seconds_each: float = 0.0  # recent average; 0: unknown

    @property
    def _in_a_chunk(self) -> int:
        return int(CHUNK_SECONDS / self.seconds_each) if self.seconds_each else 0

    @property
    def is_short(self) -> bool:
        """Return whether more of them end within a moment than run side by side."""
        return self._in_a_chunk > self.limit

    @property
    def room(self) -> int:
        return max(self.limit, self._in_a_chunk) - self.at_work

    def learn(self, seconds: float) -> None:
        self.seconds_each = 0.8 * self.seconds_each + 0.2 * seconds if self.seconds_each else seconds


class TypeGroups:
    """Hold an execution environment's groups, which know how long their jobs take."""

    def __init__(self, job_types: JobTypeRegistry, connections: int) -> None:
        self._job_types, self._connections = job_types, connections
        self._main = TypeGroup("main thread", 1, Runner.MAIN_THREAD)
        self._by_type: dict[str, TypeGroup] = {}

    def of(self, job_type: str) -> TypeGroup:
        group = self._by_type.get(job_type)
        if group is None:
            group = self._by_type[job_type] = self._make(job_type, self._job_types.by_name.get(job_type))
        return group

    def threads_needed(self) -> int:
        """Return how many threads the running jobs keep busy."""
        return sum(min(g.limit, g.at_work) for g in self._by_type.values() if g.runner is Runner.THREADS)

    def _make(self, job_type: str, known: RegisteredJobType | None) -> TypeGroup:
        if known is None:
            return TypeGroup(job_type, 10)
        if known.type.side_by_side == 1:
            return self._main
        try:
            runner = Runner.LOOP if known.is_async else Runner.THREADS
        except BaseException:  # its module can't be imported, or exits: each of its jobs will report that
            return TypeGroup(job_type, 10)
        limit = known.side_by_side
        return TypeGroup(job_type, min(limit, self._connections) if known.type.transactional else limit, runner)
