"""What is asked of a stack: so many jobs a day, in so many hours, each so long; and what follows for its lane.

Batches fill with what arrives: a submit of many brings its own company, and where jobs come one by one, a poller that
has one waits for others for its lane's window. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from local.cost.figures import figures
from local.cost.stack import Function, Lane, Stack

SECONDS_A_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Load:
    """Given; what is None is derived."""

    jobs_a_day: float
    job_ms: float | None = None
    batch: float | None = None  # jobs that a worker finds at once
    submitted_at_once: int = 1
    busy_hours: float = 24.0
    job_types: int = 5
    lane: str = "normal"


@dataclass(frozen=True, slots=True)
class Work:
    """The load on one stack's lane."""

    load: Load
    stack: Stack

    @property
    def lane(self) -> Lane:
        return self.stack.lane(self.load.lane)

    @property
    def worker(self) -> Function:
        return self.stack.functions[self.lane.function]

    @property
    def jobs_a_second(self) -> float:
        """While they come."""
        return self.load.jobs_a_day / (self.load.busy_hours * 3600)

    @property
    def jobs_a_month(self) -> float:
        return self.load.jobs_a_day * figures()["hours_a_month"] / 24

    @property
    def batch(self) -> float:
        """Jobs that an invocation finds: those of one submit, and those that come while its poller waits."""
        company = self.load.submitted_at_once + self.jobs_a_second * self.lane.window_seconds / figures()["pollers"]
        return max(1.0, min(self.load.batch or company, self.lane.batch_size))

    @property
    def job_ms(self) -> float:
        """The job's own part: as given, else that of a transactional job with one statement."""
        if self.load.job_ms is not None:
            return self.load.job_ms
        known = figures()
        server, trips = known["transactional_job_server_ms"], known["transactional_job_round_trips"]
        return known["transactional_job_cpu_ms"] / core_share(self.worker) + server + trips * known["round_trip_ms"]

    @property
    def batch_ms(self) -> float:
        """An invocation, from its claim to its last event."""
        return batch_ms(self.worker, self.batch, self.job_ms, self.stack.events)

    @property
    def workers(self) -> float:
        """That are at work at once while jobs come, in the mean."""
        return self.jobs_a_second / self.batch * self.batch_ms / 1000

    @property
    def invocations(self) -> float:
        return self.jobs_a_month / self.batch


EVENTS_OF_A_JOB = {"all": 3, "ends": 1, "none": 0}  # queued, running, completed


def batch_ms(worker: Function, jobs: float, job_ms: float, events: str) -> float:
    """How long a worker takes for so many jobs at once."""
    known, share = figures(), core_share(worker)
    claim_and_finish = known["batch_cpu_ms"] / share + known["batch_server_ms"] + 2 * known["round_trip_ms"]
    one = known["job_cpu_ms"] / share + known["job_server_ms"] + job_ms
    return claim_and_finish + jobs * one + _telling_ms(jobs, events)


def _telling_ms(jobs: float, events: str) -> float:
    """The worker tells of all but the submit, ten changes a call and eight calls at once."""
    told = jobs * min(2, EVENTS_OF_A_JOB[events])
    calls = ceil(told / figures()["messages_a_receive"])
    return ceil(calls / figures()["calls_at_once"]) * figures()["send_ms"]


def core_share(function: Function) -> float:
    """Of one core; a job uses no second one."""
    return min(1.0, function.memory_mb / figures()["one_core_mb"])
